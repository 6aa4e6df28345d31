"""Copies: nothing is encoded, nothing is missing, nothing is hidden unless asked for."""

import av
import pytest

from tests.integration.media.clips import LocalSource, shown
from worker.domain.media import ClipRange, Mode
from worker.errors import ClipFailed, UpstreamFailure
from worker.media.cut import Style
from worker.media.probe import probe


async def copy(cutter, source, work_path, start=1.5, end=3.0, **style):
    probed = await probe(source)
    return await cutter.cut(
        source, probed, ClipRange(start, end), mode=Mode.COPY, work_path=work_path, style=Style(**style)
    )


def stored_times(path):
    with av.open(str(path)) as container:
        return sorted(float(packet.pts * packet.time_base) for packet in container.demux(video=0) if packet.size)


@pytest.mark.parametrize(("gop", "start", "first"), [(30, 1.5, 30), (30, 2.0, 60), (45, 4.4, 90), (250, 3.0, 0)])
async def test_copy_tells_where_it_really_starts_and_ends(cutter, sample, work_path, gop, start, first):
    clip = await copy(cutter, sample(gop=gop), work_path, start, start + 1)
    picture = shown(clip.path)
    assert (clip.mode, clip.start_seconds) == (Mode.COPY, pytest.approx(first / 30, abs=0.001))
    assert (picture.numbers[0], picture.times[0]) == (first, pytest.approx(0.0, abs=0.001))
    assert start + 1 - 0.001 <= clip.end_seconds <= start + 1.2
    assert clip.end_seconds - clip.start_seconds == pytest.approx(len(picture.numbers) / 30, abs=0.001)
    assert (clip.frames, clip.frames_reencoded) == (len(picture.numbers), 0)


@pytest.mark.parametrize("b_frames", [0, 2, 3, 7])
@pytest.mark.parametrize("end", [2.5, 2.5333, 2.5666, 2.6, 2.6333])
async def test_copy_has_no_hole_wherever_it_ends(cutter, sample, work_path, b_frames, end):
    clip = await copy(cutter, sample(seconds=4, gop=90, b_frames=b_frames), work_path, 0.2, end)
    numbers = shown(clip.path).numbers
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= round(end * 30)


@pytest.mark.parametrize("is_hidden", [False, True])
async def test_nothing_lies_before_the_start_unless_asked_for(cutter, sample, work_path, is_hidden):
    clip = await copy(cutter, sample(), work_path, 1.5, 3.0, is_lead_hidden=is_hidden)
    picture = shown(clip.path)
    assert (picture.numbers[0], picture.times[0]) == (45 if is_hidden else 30, pytest.approx(0.0, abs=0.001))
    assert stored_times(clip.path)[0] == pytest.approx(-0.5 if is_hidden else 0.0, abs=0.001)
    assert (clip.start_seconds, clip.frames) == (1.5 if is_hidden else 1.0, len(picture.numbers))


async def test_open_group_starts_with_its_keyframe_and_not_with_pictures_that_need_the_last_one(
    cutter, sample, remux, work_path
):
    opened = ("-c:v", "libx264", "-g", "30", "-bf", "3", "-sc_threshold", "0", "-x264-params", "open-gop=1")
    source = remux(sample(), "open.mp4", *opened, "-preset", "ultrafast", "-c:a", "copy")
    clip = await copy(cutter, source, work_path, 2.5, 4.0)
    picture, times = shown(clip.path), stored_times(clip.path)
    assert picture.numbers == list(range(picture.numbers[0], picture.numbers[0] + len(times)))
    assert picture.numbers[0] == round(clip.start_seconds * 30) <= 75
    assert times[0] == pytest.approx(0.0, abs=0.001)


@pytest.mark.parametrize("name", ["source.ts", "source.mkv", "source.mov"])
async def test_copy_of_other_containers_starts_at_the_keyframe_before(cutter, sample, remux, work_path, name):
    source = remux(sample(), name, "-c", "copy")
    offset = (await probe(source)).video.start_seconds
    clip = await copy(cutter, source, work_path, 2.7 + offset, 4.0 + offset)
    numbers = shown(clip.path).numbers
    assert numbers == list(range(60, 60 + len(numbers)))
    assert len(numbers) >= 60


async def test_copied_hevc_has_the_name_apple_players_know(cutter, sample, remux, work_path):
    x265 = ("-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:keyint=30:pools=1", "-t", "2")
    clip = await copy(cutter, remux(sample(), "hevc.mkv", *x265, "-c:a", "copy"), work_path, 1.2, 1.8)
    with av.open(str(clip.path)) as container:
        assert container.streams.video[0].codec_context.codec_tag == "hvc1"
    assert shown(clip.path).numbers[0] == 30


async def test_copy_of_sound_alone_is_right_to_a_packet(cutter, sample, remux, work_path):
    clip = await copy(cutter, remux(sample(), "sound.m4a", "-vn", "-c", "copy"), work_path, 1.5, 3.0)
    assert (clip.has_video, clip.frames) == (False, 0)
    assert clip.start_seconds == pytest.approx(1.5, abs=0.022)
    assert clip.start_seconds <= 1.5
    assert clip.duration_seconds == pytest.approx(1.5, abs=0.05)


async def test_copy_of_what_mp4_cannot_hold_says_so(cutter, sample, remux, work_path):
    source = remux(sample(), "source.mkv", "-an", "-c:v", "huffyuv", "-t", "1")
    with pytest.raises(ClipFailed, match="MP4 does not hold the codec huffyuv; use mode exact"):
        await copy(cutter, source, work_path, 0.0, 1.0)


async def test_reading_that_broke_off_is_named_by_the_source(cutter, sample, work_path):
    class Broken(LocalSource):
        def failure(self):
            return UpstreamFailure("the origin hung up")

    with pytest.raises(UpstreamFailure, match="hung up"):
        await cutter.cut(
            Broken(sample().path), await probe(sample()), ClipRange(1, 2), mode=Mode.COPY, work_path=work_path
        )


async def test_sound_before_a_picture_that_starts_late_is_copied_too(cutter, sample, remux, work_path):
    base = sample(seconds=4)
    late = ("-itsoffset", "0.5", "-i", str(base.path), "-map", "1:v", "-map", "0:a", "-c", "copy")
    clip = await copy(cutter, remux(base, "late.mp4", *late), work_path, 0.0, 2.0)
    with av.open(str(clip.path)) as container:
        sound = next(float(packet.pts * packet.time_base) for packet in container.demux(audio=0) if packet.size)
    assert (clip.start_seconds, sound) == (0.0, pytest.approx(0.0, abs=0.05))
    assert stored_times(clip.path)[0] == pytest.approx(0.5, abs=0.05)
    assert shown(clip.path).numbers[0] == 0
