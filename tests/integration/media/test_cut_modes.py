from dataclasses import replace

import av
import pytest

from tests.integration.media.clips import LocalSource, shown, track_seconds
from worker.domain.media import ClipRange, Mode
from worker.errors import ClipTimeout, DiskFull, OutputCorrupt, SourceUnsupported, UpstreamFailure
from worker.media.cut import Cutter
from worker.media.probe import probe
from worker.media.process import Limits


async def cut(cutter, source, work_path, mode, start=1.5, end=3.0, **options):
    return await cutter.cut(
        source, await probe(source), ClipRange(start, end), mode=mode, work_path=work_path, **options
    )


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


async def test_sound_that_ends_before_the_pictures_is_cut_as_far_as_it_goes(cutter, sample, remux, work_path):
    source = remux(sample(), "short.mp4", "-filter_complex", "[0:a]atrim=end=2.2[a]", "-map", "0:v", "-map", "[a]",
                   "-c:v", "copy")  # fmt: skip
    clip = await cut(cutter, source, work_path, Mode.AUDIO)
    assert clip.duration_seconds == pytest.approx(0.7, abs=0.03)


async def test_sound_that_breaks_off_is_refused(cutter, sample, remux, work_path):
    source = remux(sample(), "sound.mkv", "-c", "copy")
    probed = await probe(source)
    content = source.path.read_bytes()
    source.path.write_bytes(content[: len(content) // 3])
    with pytest.raises(OutputCorrupt, match=r"ends at|broke off"):
        await cutter.cut(source, probed, ClipRange(1.0, 5.0), mode=Mode.AUDIO, work_path=work_path)


async def test_smart_says_how_much_was_reencoded(cutter, sample, work_path):
    clip = await cut(cutter, sample(), work_path, Mode.SMART)
    assert shown(clip.path).numbers == list(range(45, 90))
    assert (clip.mode, clip.frames, clip.frames_reencoded, clip.fallback) == (Mode.SMART, 45, 15, "")


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


async def test_wrong_output_is_told_with_what_is_wrong_and_ffmpegs_last_words(sample, work_path, tmp_path):
    careless = tmp_path / "ffmpeg"
    output = '"${@: -2:1}"'
    careless.write_text(f"#!/bin/bash\nout={output}\n: > ${{out#file:}}\necho the muxer dropped everything >&2\n")
    careless.chmod(0o755)
    cutter = Cutter(careless, limits=Limits(wall_seconds=10))
    with pytest.raises(OutputCorrupt, match=r"clip-work.mp4 has 0 bytes \(ffmpeg: the muxer dropped everything\)"):
        await cut(cutter, sample(), work_path, Mode.EXACT)


async def test_pictures_that_end_before_the_sources_are_found(cutter, sample, remux, work_path):
    # sound goes on for all of the clip, so its length tells nothing
    half = ("-filter_complex", "[0:v]trim=end=2[v]", "-map", "[v]", "-map", "0:a", "-c:a", "copy")
    broken = remux(sample(), "broken.mp4", *half)

    class BrokenOnce(LocalSource):
        """Read once by ffmpeg, with half of its pictures; looked at again, it is whole."""

        reads = iter([broken.input])

        @property
        def input(self):
            return next(self.reads, f"file:{self.path}")

    probed = await probe(sample())
    with pytest.raises(OutputCorrupt, match=r"last picture at 0\.967 s instead of 2\.967 s"):
        await cutter.cut(BrokenOnce(sample().path), probed, ClipRange(1, 4), mode=Mode.EXACT, work_path=work_path)


async def test_clip_carries_nothing_of_the_sources_metadata(cutter, sample, remux, work_path):
    source = remux(sample(), "tagged.mp4", "-c", "copy", "-metadata", "title=secret", "-metadata", "location=+52+13/")
    clip = await cut(cutter, source, work_path, Mode.EXACT)
    with av.open(str(clip.path)) as container:
        assert "secret" not in str(container.metadata)
        assert not {"title", "location"} & set(container.metadata)
