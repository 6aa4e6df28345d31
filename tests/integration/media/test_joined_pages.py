"""A clip that was cut in pages beside the same clip cut in one piece."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from subprocess import run

import av
import numpy as np
import pytest

from tests.integration.media.clips import LocalSource, shown
from tests.integration.media.matrix import (
    AAC,
    FADING,
    KEEP_SOME,
    NTSC,
    OPUS,
    SILENT,
    STILL,
    Input,
    h264,
    late,
    open_h264,
    vp9,
    x265,
)
from tests.integration.media.watching import complaints, lag_seconds, watch, watch_by_another
from worker.domain.media import ClipFile, ClipRange, Mode, Probe, Quality
from worker.media.cut import Style
from worker.media.encoding import CPU, VideoEncoder
from worker.media.joining import PageJoiner
from worker.media.pages import PageCutter, PicturePage
from worker.media.probe import probe
from worker.media.process import Limits
from worker.media.source import ReadableSource

LIMITS = Limits(wall_seconds=30, stall_seconds=15)
SMALL = ("-s", "160x92")
STEREO = (*AAC, "-ar", "44100", "-ac", "2")
#: a frame each 20 s, with sound in between
SLIDES = ("-vf", "select='not(mod(n,25))',setpts=PTS*20", "-fps_mode", "vfr", "-af", "apad=whole_dur=80")

THIRDS = (1.411, 2.34567)
CASES = (
    (Input("mp4 25 fps"), THIRDS),
    (Input("mp4 ntsc", h264(30, 2), fps=NTSC, start=0.7123, end=3.3337), THIRDS),
    (Input("mp4 30 fps with a pyramid of three", h264(30, 3), fps=30), (0.9, 1.0, 1.37, 2.0, 2.9)),
    (Input("mp4 open gop", open_h264(25, 3)), (0.97, 1.9, 1.95, 2.96)),
    (Input("mp4 fading, without b-frames", h264(25, 0), more=FADING), (1.0, 2.0, 3.0)),
    (Input("mp4 in pages of a few frames", h264(25, 2)), tuple(0.7 + 0.13 * n for n in range(1, 20))),
    (Input("mp4 whole", h264(25, 2), start=0.0, end=4.0), (2.0,)),
    (Input("mp4 variable frame rate", h264(12, 2), fps=30, more=KEEP_SOME), (1.2, 1.5, 2.22, 2.6)),
    (Input("mp4 still at the start", h264(12, 2), more=STILL, start=1.2), (1.5, 2.0, 2.9)),
    (Input("mp4 still in the middle", h264(12, 2), more=STILL, start=0.3), (0.9, 1.7, 2.1)),
    (Input("mp4 slides", h264(12, 2), AAC, more=SLIDES, start=5.0, end=75.0), (18.0, 25.5, 38.0, 51.0, 55.0, 70.0)),
    (Input("mp4 late video", more=late("video", "1.1"), start=0.0, end=3.5), (0.4, 1.05, 2.0)),
    (Input("mp4 late audio", more=late("audio", "1.2")), THIRDS),
    (Input("mp4 turned", before=("-display_rotation:v:0", "90"), video=("-c:v", "copy"), quarter_turns=-1), THIRDS),
    (Input("mp4 without sound", audio=SILENT, has_audio=False), THIRDS),
    (Input("mp4 fragmented", audio=STEREO, more=("-movflags", "+frag_keyframe+empty_moov")), THIRDS),
    (Input("mp4 interlaced", h264(25, 2, "-flags", "+ildct+ilme")), THIRDS),
    (Input("mkv ntsc pyramid", h264(30, 3), container="mkv", fps=NTSC), THIRDS),
    (Input("mkv late video", container="mkv", more=late("video", "0.4"), start=0.1), (0.3, 0.9, 2.0)),
    (Input("ts", container="ts", fps=30), THIRDS),
    (Input("ts late audio", container="ts", more=late("audio", "1.2")), (1.3,)),
    (Input("ts open gop", open_h264(25, 3), container="ts"), (0.96, 1.95)),
    (Input("hevc open gop mkv", x265(25, "open-gop=1"), container="mkv", fps=30), (1.05, 1.95)),
    (Input("vp9 webm", vp9(25), OPUS, "webm"), THIRDS),
    (Input("mpeg4 avi", ("-c:v", "mpeg4", "-q:v", "3", "-g", "25"), ("-c:a", "libmp3lame"), "avi"), THIRDS),
)  # fmt: skip


@dataclass(frozen=True)
class Split:
    """One job that was split, and made."""

    pages: list[PicturePage]
    sound: Path | None
    clip: ClipFile


@pytest.fixture
def made(sample, remux):
    def make(given: Input) -> LocalSource:
        base = sample(seconds=4, fps=given.fps, gop=25)
        more = [str(base.path) if option == "BASE" else option for option in given.more]
        size = () if "copy" in given.video else SMALL
        return remux(base, f"source.{given.container}", *more, *size, *given.video, *given.audio, before=given.before)

    return make


@pytest.fixture
def cut_pages(ffmpeg_path, tmp_path):
    """Each page by a cutter of its own, as different workers do it."""

    async def cut(
        source: ReadableSource,
        probed: Probe,
        clip: ClipRange,
        borders: Sequence[float],
        *,
        max_height: int | None = None,
        encoders: Sequence[VideoEncoder] = (CPU,),
    ) -> list[PicturePage]:
        slices = [ClipRange(*ends) for ends in pairwise((clip.start_seconds, *borders, clip.end_seconds))]
        gate = asyncio.Semaphore(2)

        async def one(number: int, page: ClipRange) -> PicturePage:
            async with gate:
                return await PageCutter(
                    ffmpeg_path, limits=LIMITS, encoder=encoders[number % len(encoders)]
                ).cut_pictures(
                    source,
                    probed,
                    clip,
                    page,
                    work_path=tmp_path / f"page-{max_height}-{number}.mp4",
                    max_height=max_height,
                    quality=Quality.GOOD,
                )

        async with asyncio.TaskGroup() as tasks:
            made = [tasks.create_task(one(*each)) for each in enumerate(slices)]
        return [each.result() for each in made]

    return cut


@pytest.fixture
def split(cutter, cut_pages, tmp_path):
    async def make(source: LocalSource, probed: Probe, span: ClipRange, borders: Sequence[float], **options) -> Split:
        sound = tmp_path / "sound.m4a" if probed.audio is not None else None
        if sound is not None:
            await cutter.cut(source, probed, span, mode=Mode.AUDIO, work_path=sound)
        pages = await cut_pages(source, probed, span, borders, **options)
        joined = await PageJoiner(limits=LIMITS).join(
            pages, sound, probe=probed, clip=span, work_path=tmp_path / "joined.mp4"
        )
        return Split(pages, sound, joined)

    return make


def picture_ticks(path: Path) -> list[tuple[int, int]]:
    """When each picture is decoded and shown."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        ticks = [(packet.dts, packet.pts) for packet in container.demux(stream) if packet.size]
        assert stream.time_base.denominator == 120_000
    return ticks


def decoded_sound(ffmpeg: Path, path: Path) -> bytes:
    command = [str(ffmpeg), "-v", "error", "-i", str(path), "-vn", "-f", "s16le", "-"]
    return run(command, capture_output=True, timeout=30, check=True).stdout


def check_times(whole: Path, joined: Path) -> None:
    expected, found = picture_ticks(whole), picture_ticks(joined)
    assert sorted(pts for _, pts in found) == sorted(pts for _, pts in expected)
    assert all(one < two for (one, _), (two, _) in pairwise(found))
    assert all(dts <= pts for dts, pts in found)


def check_sound(ffmpeg: Path, split: Split, whole: Path, *, is_timed_in_milliseconds: bool = False) -> None:
    """To the sample that of the sound's own file, and of the clip in one piece, at the same place."""
    heard = decoded_sound(ffmpeg, split.sound)
    assert decoded_sound(ffmpeg, split.clip.path) == heard
    original = decoded_sound(ffmpeg, whole)
    if is_timed_in_milliseconds:
        # where in such a millisecond sound begins is told by the packet that reading starts with
        assert len(original) == len(heard)
        assert abs(lag_seconds(*(np.frombuffer(each, np.int16).astype(float) for each in (original, heard)))) <= 0.001
    else:
        assert original == heard
    with av.open(str(split.clip.path)) as joined, av.open(str(whole)) as other:
        assert joined.streams.audio[0].start_time == other.streams.audio[0].start_time == 0


@pytest.mark.parametrize(("given", "borders"), CASES, ids=lambda value: value.name if isinstance(value, Input) else "")
async def test_joined_pages_are_the_clip_that_is_cut_in_one_piece(
    cutter, ffmpeg_path, made, split, work_path, given: Input, borders: Sequence[float]
):
    source = made(given)
    probed = await probe(source)
    offset = probed.video.start_seconds if given.container == "ts" else 0.0
    span = ClipRange(given.start + offset, min(given.end + offset, probed.duration_seconds))
    whole = await cutter.cut(source, probed, span, mode=Mode.EXACT, work_path=work_path)
    parts = await split(source, probed, span, [border + offset for border in borders])
    joined = parts.clip

    check_times(work_path, joined.path)
    expected = watch(work_path, quarter_turns=given.quarter_turns, is_clip=True)
    found = watch(joined.path, quarter_turns=given.quarter_turns, is_clip=True)
    assert found.numbers == expected.numbers
    assert None not in found.numbers
    assert found.times == expected.times
    assert complaints(ffmpeg_path, joined.path) == ""
    assert watch_by_another(ffmpeg_path, joined.path, quarter_turns=given.quarter_turns) == found.numbers
    if given.has_audio:
        check_sound(ffmpeg_path, parts, work_path, is_timed_in_milliseconds=given.container in {"mkv", "webm"})

    assert sum(page.frames for page in parts.pages) == joined.frames == joined.frames_reencoded
    assert joined.keyframe_gap_seconds <= whole.keyframe_gap_seconds
    measured = {"path": whole.path, "duration_seconds": whole.duration_seconds}
    assert replace(joined, keyframe_gap_seconds=whole.keyframe_gap_seconds, **measured) == whole
    assert joined.duration_seconds == pytest.approx(whole.duration_seconds, abs=1 / (probed.video.fps or 25))


async def test_pages_without_a_frame_of_their_own_are_no_files(made, cut_pages):
    given = next(given for given, _ in CASES if given.name == "mp4 slides")
    source = made(given)
    span = ClipRange(19.0, 62.0)
    pages = await cut_pages(source, await probe(source), span, [25.0, 39.5, 45.0, 55.0])
    assert [page.frames for page in pages] == [1, 0, 1, 0, 1]
    assert [page.path is None or page.path.exists() for page in pages] == [True] * 5
    assert [page.path is None for page in pages] == [False, True, False, True, False]


async def test_seek_that_lands_behind_the_keyframe_loses_no_frame(sample, remux, cut_pages):
    # a seek lands 12 s before the page and meets no keyframe
    source = remux(sample(seconds=20, gop=600), "long.ts", "-c", "copy")
    probed = await probe(source)
    begin = probed.video.start_seconds
    span = ClipRange(begin + 15.0, begin + 17.0)
    pages = await cut_pages(source, probed, span, [begin + 15.7, begin + 16.31])
    assert [number for page in pages for number in shown(page.path).numbers] == list(range(450, 510))


async def test_rendition_of_pages_takes_its_sound_from_the_clip(
    cutter, ffmpeg_path, sample, cut_pages, split, tmp_path, work_path
):
    source, span, borders = sample(seconds=4, gop=25), ClipRange(0.713, 3.3), [1.5, 2.2]
    probed = await probe(source)
    parts = await split(source, probed, span, borders)
    pages = await cut_pages(source, probed, span, borders, max_height=90)
    small = await PageJoiner(limits=LIMITS).join(
        pages, parts.clip.path, probe=probed, clip=span, work_path=tmp_path / "small.mp4"
    )
    whole = await cutter.cut(source, probed, span, mode=Mode.EXACT, work_path=work_path, style=Style(max_height=90))
    assert (small.width, small.height, small.frames) == (160, 90, parts.clip.frames)
    check_times(work_path, small.path)
    assert shown(small.path) == shown(whole.path)
    assert complaints(ffmpeg_path, small.path) == ""
    check_sound(ffmpeg_path, replace(parts, clip=small), work_path)


async def test_progress_of_pages_and_of_joining_rises_to_the_end(ffmpeg_path, sample, tmp_path):
    source, span = sample(seconds=4, gop=25), ClipRange(0.5, 3.5)
    probed = await probe(source)
    cut_at, joined_at = list[float](), list[float]()
    page = await PageCutter(ffmpeg_path, limits=LIMITS).cut_pictures(
        source, probed, span, span, work_path=tmp_path / "page.mp4", max_height=None, quality=Quality.GOOD,
        on_progress=cut_at.append,
    )  # fmt: skip
    await PageJoiner(limits=LIMITS).join(
        [page], None, probe=probed, clip=span, work_path=tmp_path / "joined.mp4", on_progress=joined_at.append
    )
    for seen in (cut_at, joined_at):
        assert seen == sorted(seen)
        assert seen[-1] == 1.0
