import wave
from dataclasses import replace

import av
import pytest

from tests.integration.media.clips import LocalSource, shown, track_seconds
from worker.domain.media import ClipRange, Mode
from worker.errors import ClipFailed, ClipTimeout, DiskFull, OutputCorrupt, SourceUnsupported, UpstreamFailure
from worker.media.cut import Cutter
from worker.media.probe import probe
from worker.media.process import Limits


async def cut(cutter, source, work_path, mode, start=1.5, end=3.0, **options):
    return await cutter.cut(
        source, await probe(source), ClipRange(start, end), mode=mode, work_path=work_path, **options
    )


@pytest.mark.parametrize(("gop", "start", "first"), [(30, 1.5, 30), (30, 2.0, 60), (45, 4.4, 90), (250, 3.0, 0)])
async def test_copy_tells_where_it_really_starts(cutter, sample, work_path, gop, start, first):
    clip = await cut(cutter, sample(gop=gop), work_path, Mode.COPY, start, start + 1)
    picture = shown(clip.path)
    assert (clip.mode, clip.start_seconds) == (Mode.COPY, pytest.approx(first / 30, abs=0.001))
    assert (picture.numbers[0], picture.times[0]) == (first, pytest.approx(0.0, abs=0.001))
    assert clip.end_seconds == pytest.approx(start + 1, abs=0.2)
    assert clip.frames_reencoded == 0


async def test_copy_of_a_transport_stream_starts_at_the_keyframe_before(cutter, sample, remux, work_path):
    source = remux(sample(), "source.ts", "-c", "copy")
    clip = await cut(cutter, source, work_path, Mode.COPY, 2.7, 4.0)
    assert shown(clip.path).numbers[0] == 60


async def test_copy_of_what_mp4_cannot_hold_says_so(cutter, sample, remux, work_path):
    source = remux(sample(), "source.mkv", "-an", "-c:v", "huffyuv", "-t", "1")
    with pytest.raises(ClipFailed, match="codec"):
        await cut(cutter, source, work_path, Mode.COPY, 0.0, 1.0)


@pytest.mark.parametrize("mode", [Mode.EXACT, Mode.SMART, Mode.AUDIO])
async def test_source_without_picture_is_cut_as_sound(cutter, sample, remux, work_path, mode):
    source = remux(sample(), "sound.m4a", "-vn", "-c", "copy")
    clip = await cut(cutter, source, work_path, mode)
    assert (clip.mode, clip.has_video, clip.has_audio, clip.frames) == (Mode.AUDIO, False, True, 0)
    assert clip.duration_seconds == pytest.approx(1.5, abs=0.025)


async def test_cover_art_is_not_taken_for_a_video(cutter, sample, remux, work_path):
    cover = remux(sample(), "cover.jpg", "-frames:v", "1")
    art = ("-i", str(cover.path), "-map", "0:a", "-map", "1:v", "-c", "copy", "-disposition:v", "attached_pic")
    source = remux(sample(), "album.m4a", *art)
    assert (await probe(source)).video is None
    assert not (await cut(cutter, source, work_path, Mode.EXACT)).has_video


async def test_source_without_sound_makes_a_silent_clip(cutter, sample, remux, work_path):
    source = remux(sample(), "silent.mp4", "-an", "-c", "copy")
    clip = await cut(cutter, source, work_path, Mode.EXACT)
    assert (clip.has_video, clip.has_audio) == (True, False)
    assert shown(clip.path).numbers == list(range(45, 90))
    assert track_seconds(clip) == {"video": pytest.approx(1.5, abs=0.001)}


async def test_sound_of_a_silent_source_is_refused(cutter, sample, remux, work_path):
    source = remux(sample(), "silent.mp4", "-an", "-c", "copy")
    with pytest.raises(SourceUnsupported, match="no sound"):
        await cut(cutter, source, work_path, Mode.AUDIO)


async def test_smart_says_that_it_was_cut_exactly(cutter, sample, work_path):
    assert (await cut(cutter, sample(), work_path, Mode.SMART)).mode is Mode.EXACT


async def test_poster_is_the_frame_at_its_time(cutter, sample, work_path, tmp_path):
    clip = await cut(cutter, sample(), work_path, Mode.EXACT)
    assert await cutter.make_poster(clip, tmp_path / "poster.jpg", at_seconds=0.5)
    assert shown(tmp_path / "poster.jpg").numbers == [60]


async def test_sound_alone_has_no_poster(cutter, sample, work_path, tmp_path):
    clip = await cut(cutter, sample(), work_path, Mode.AUDIO)
    assert not await cutter.make_poster(clip, tmp_path / "poster.jpg", at_seconds=0.5)


async def test_poster_behind_the_end_is_an_error_not_an_empty_file(cutter, sample, work_path, tmp_path):
    clip = await cut(cutter, sample(), work_path, Mode.EXACT)
    with pytest.raises((OutputCorrupt, ClipFailed)):
        await cutter.make_poster(clip, tmp_path / "poster.jpg", at_seconds=9.0)


async def test_speech_is_16_khz_mono_as_long_as_the_clip(cutter, sample, work_path, tmp_path):
    clip = await cut(cutter, sample(), work_path, Mode.EXACT)
    assert await cutter.extract_speech_wav(clip, tmp_path / "speech.wav")
    with wave.open(str(tmp_path / "speech.wav")) as speech:
        assert (speech.getframerate(), speech.getnchannels(), speech.getsampwidth()) == (16_000, 1, 2)
        assert speech.getnframes() / 16_000 == pytest.approx(1.5, abs=0.03)


async def test_silent_clip_has_no_speech(cutter, sample, remux, work_path, tmp_path):
    clip = await cut(cutter, remux(sample(), "silent.mp4", "-an", "-c", "copy"), work_path, Mode.EXACT)
    assert not await cutter.extract_speech_wav(clip, tmp_path / "speech.wav")


async def test_output_that_outgrows_its_limit_is_a_full_disk(ffmpeg_path, sample, work_path):
    small = Cutter(ffmpeg_path, limits=Limits(wall_seconds=30, file_bytes=20_000))
    with pytest.raises(DiskFull, match="20000 bytes"):
        await cut(small, sample(), work_path, Mode.EXACT)


async def test_cut_that_takes_too_long_is_stopped(ffmpeg_path, sample, work_path):
    hasty = Cutter(ffmpeg_path, limits=Limits(wall_seconds=0.05))
    with pytest.raises(ClipTimeout, match=r"0\.05 s"):
        await cut(hasty, sample(), work_path, Mode.EXACT)


async def test_reading_that_broke_off_is_named_by_the_source(cutter, sample, work_path):
    class Broken(LocalSource):
        def failure(self):
            return UpstreamFailure("the origin hung up")

    probed = await probe(sample())
    with pytest.raises(UpstreamFailure, match="hung up"):
        await cutter.cut(Broken(sample().path), probed, ClipRange(1, 2), mode=Mode.EXACT, work_path=work_path)


async def test_source_shorter_than_it_claims_never_becomes_a_short_clip(cutter, sample, work_path):
    boasting = replace(await probe(sample()), duration_seconds=60.0)
    with pytest.raises(OutputCorrupt, match="long instead of"):
        await cutter.cut(sample(), boasting, ClipRange(5, 20), mode=Mode.EXACT, work_path=work_path)


async def test_clip_carries_nothing_of_the_sources_metadata(cutter, sample, remux, work_path):
    source = remux(sample(), "tagged.mp4", "-c", "copy", "-metadata", "title=secret", "-metadata", "location=+52+13/")
    clip = await cut(cutter, source, work_path, Mode.EXACT)
    with av.open(str(clip.path)) as container:
        assert "secret" not in str(container.metadata)
        assert not {"title", "location"} & set(container.metadata)
