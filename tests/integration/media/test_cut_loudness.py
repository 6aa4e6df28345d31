"""Sound as loud as it was asked for, in step with the picture, and encoded once."""

import pytest

from tests.integration.media.clips import shown
from tests.integration.media.watching import lag_seconds, listen
from worker.domain.media import ClipRange, Mode
from worker.media.cut import Style
from worker.media.extras import ExtrasMaker
from worker.media.extras_argv import Extras
from worker.media.probe import probe
from worker.media.process import Limits


@pytest.fixture
def measured(ffmpeg_path, tmp_path):
    async def measure(clip):
        maker = ExtrasMaker(ffmpeg_path, limits=Limits(wall_seconds=30))
        return (await maker.make(clip, Extras(loudness=tmp_path / "loudness.txt"))).loudness

    return measure


@pytest.mark.parametrize("mode", [Mode.SMART, Mode.EXACT, Mode.AUDIO])
@pytest.mark.parametrize(("target", "off"), [(-40.0, 0.3), (-16.0, 2.0)], ids=["by a factor", "compressed"])
async def test_sound_has_the_loudness_asked_for_and_stays_in_step(
    cutter, sample, work_path, measured, mode, target, off
):
    source = sample()
    span = ClipRange(0.5, 5.53)
    clip = await cutter.cut(
        source, await probe(source), span, mode=mode, work_path=work_path, style=Style(loudness=target)
    )
    assert clip.fallback == ""
    found = await measured(clip)
    assert found.integrated_lufs == pytest.approx(target, abs=off)
    assert found.true_peak_dbtp <= 0
    expected, heard = listen(source.path).between(0.7, 5.3), listen(work_path).between(0.2, 4.8)
    assert abs(lag_seconds(expected, heard)) <= 0.001
    if mode is not Mode.AUDIO:
        assert shown(work_path).numbers == list(range(15, 166))
    if mode is Mode.SMART:
        assert 0 < clip.frames_reencoded < clip.frames
    large = [path.name for path in work_path.parent.iterdir() if path.suffix in {".mp4", ".flac"}]
    assert large == [work_path.name]


async def test_sound_of_another_codec_and_a_late_picture_keep_their_times(cutter, sample, remux, work_path, measured):
    late = ("-itsoffset", "0.5", "-i", str(sample().path), "-map", "1:v", "-map", "0:a", "-c:v", "copy")
    source = remux(sample(), "late.mkv", *late, "-c:a", "libopus")
    clip = await cutter.cut(
        source, await probe(source), ClipRange(0.2, 3.0), mode=Mode.SMART, work_path=work_path,
        style=Style(loudness=-30.0),
    )  # fmt: skip
    picture = shown(work_path)
    assert (picture.numbers[0], picture.times[0]) == (0, pytest.approx(0.3, abs=0.002))
    expected, heard = listen(source.path).between(0.5, 2.8), listen(work_path).between(0.3, 2.6)
    assert abs(lag_seconds(expected, heard)) <= 0.001
    assert (await measured(clip)).integrated_lufs == pytest.approx(-30.0, abs=0.5)


async def test_source_without_sound_is_not_a_mistake(cutter, sample, remux, work_path):
    source = remux(sample(), "silent.mp4", "-an", "-c", "copy")
    clip = await cutter.cut(
        source, await probe(source), ClipRange(1, 3), mode=Mode.SMART, work_path=work_path, style=Style(loudness=-16.0)
    )
    assert (clip.mode, clip.has_audio, clip.frames) == (Mode.SMART, False, 60)
