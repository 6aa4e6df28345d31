"""Every kind of input, in every mode, frame by frame."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.integration.media.clips import LocalSource
from tests.integration.media.matrix import INPUTS, SMART_INPUTS, Input
from tests.integration.media.watching import Watched, complaints, lag_seconds, listen, watch, watch_by_another
from worker.domain.media import ClipRange, Mode
from worker.media.probe import probe

#: as the frames of a range are chosen
MARGIN_SECONDS = 0.001


@pytest.fixture
def made(sample, remux, tmp_path):
    def make(given: Input) -> LocalSource:
        base = sample(seconds=4, fps=given.fps, gop=25)
        more = [str(base.path) if option == "BASE" else option for option in given.more]
        passes = [["-pass", number, "-passlogfile", str(tmp_path / "pass")] for number in "12"]
        for added in passes if given.is_two_pass else [[]]:
            source = remux(
                base, f"source.{given.container}", *more, *given.video, *given.audio, *added, before=given.before
            )
        return source

    return make


def check_sound(source: LocalSource, clip: Path, span: ClipRange) -> None:
    original, heard = listen(source.path), listen(clip, is_clip=True)
    # a coder's first packet fades in, and a source's sound may start inside the range
    begin = max(heard.start_seconds, original.start_seconds - span.start_seconds) + 0.1
    end = span.duration_seconds - 0.1
    expected = original.between(span.start_seconds + begin, span.start_seconds + end)
    assert abs(lag_seconds(expected, heard.between(begin, end))) <= 0.001


def check_copied(original: Watched, shown: Watched, frames_reencoded: int) -> None:
    """What was not encoded anew is the same to the last bit, and lies in one piece."""
    digests = dict(zip(original.numbers, original.digests, strict=True))
    is_same = [digests[number] == digest for number, digest in zip(shown.numbers, shown.digests, strict=True)]
    assert is_same.count(False) <= frames_reencoded
    first = is_same.index(True)
    middle = is_same[first : len(is_same) - is_same[::-1].index(True)]
    assert all(middle)


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        *((given, mode) for given in INPUTS for mode in (Mode.SMART, Mode.EXACT)),
        *((given, Mode.SMART) for given in SMART_INPUTS),
    ],
    ids=lambda value: value.name if isinstance(value, Input) else value.value,
)
async def test_exactly_the_frames_of_the_range_in_order_and_in_time(
    cutter, ffmpeg_path, made, work_path, given: Input, mode: Mode
):
    source = made(given)
    probed = await probe(source)
    offset = probed.video.start_seconds if given.container == "ts" else 0.0
    span = ClipRange(given.start + offset, min(given.end + offset, probed.duration_seconds))
    clip = await cutter.cut(source, probed, span, mode=mode, work_path=work_path)

    is_smart = mode is Mode.SMART and not given.fallback
    assert clip.mode is (Mode.SMART if is_smart else Mode.EXACT), clip.fallback
    assert (given.fallback in clip.fallback) if mode is Mode.SMART else not clip.fallback

    original = watch(source.path)
    # only an exact clip is written upright; a copied picture is turned by the player
    turns = 0 if is_smart else given.quarter_turns
    shown = watch(work_path, quarter_turns=turns, is_clip=True)
    first, past = span.start_seconds - MARGIN_SECONDS, span.end_seconds - MARGIN_SECONDS
    wanted = [
        (number, time) for number, time in zip(original.numbers, original.times, strict=True) if first <= time < past
    ]
    held = [number for number, time in zip(original.numbers, original.times, strict=True) if time < first][-1:]
    if wanted[0][1] - span.start_seconds > 0.1 and held:
        wanted.insert(0, (held[0], span.start_seconds))
    assert shown.numbers == [number for number, _ in wanted]
    assert None not in shown.numbers
    assert shown.times == pytest.approx([time - span.start_seconds for _, time in wanted], abs=0.001)
    assert (clip.frames, clip.has_audio) == (len(wanted), given.has_audio)
    assert clip.frames_reencoded < clip.frames if is_smart else clip.frames_reencoded == clip.frames
    assert all(one < two for one, two in pairwise(shown.times))

    assert complaints(ffmpeg_path, work_path) == ""
    assert watch_by_another(ffmpeg_path, work_path, quarter_turns=turns) in (None, shown.numbers)
    if is_smart:
        check_copied(original, shown, clip.frames_reencoded)
    if given.has_audio:
        check_sound(source, work_path, span)
