"""What recognizers get to hear of a page."""

import wave
from dataclasses import replace

import numpy as np
import pytest

from tests.integration.media.clips import LocalSource
from tests.integration.media.watching import lag_seconds, listen
from worker.domain.media import ClipRange
from worker.errors import OutputCorrupt, UpstreamFailure
from worker.media.pages import PageCutter
from worker.media.probe import probe
from worker.media.process import Limits

RATE = 16_000
#: below it nothing is heard: coders ring on a little
QUIET = 40


@pytest.fixture
def hear(ffmpeg_path, tmp_path):
    """The samples of a span, of which there must be as many as it is long."""

    async def hear(source, span, probed=None):
        path = tmp_path / "speech.wav"
        cutter = PageCutter(ffmpeg_path, limits=Limits(wall_seconds=20))
        await cutter.cut_speech(source, probed or await probe(source), span, path=path)
        with wave.open(str(path)) as sound:
            assert (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) == (RATE, 1, 2)
            samples = np.frombuffer(sound.readframes(sound.getnframes()), np.int16)
        assert len(samples) == round(span.duration_seconds * RATE)
        return samples

    return hear


@pytest.mark.parametrize("name", ["source.mp4", "source.mkv", "source.ts"])
async def test_span_is_heard_where_it_is(sample, remux, hear, name):
    source = remux(sample(), name, "-c", "copy")
    span = ClipRange(1.2345, 4.3211)
    expected = listen(source.path).between(span.start_seconds, span.end_seconds)
    heard = await hear(source, span)
    assert abs(lag_seconds(expected, heard.astype(np.float32))) <= 0.001


async def test_sound_that_starts_late_in_a_transport_stream_is_heard_late(sample, remux, hear):
    delayed = ("-itsoffset", "1.2", "-i", str(sample().path), "-map", "0:v", "-map", "1:a", "-c", "copy")
    source = remux(sample(), "late.ts", *delayed)
    begin = (await probe(source)).audio.start_seconds
    expected = listen(source.path).between(begin + 1.0, begin + 2.5)
    heard = (await hear(source, ClipRange(begin + 1.0, begin + 2.5))).astype(np.float32)
    assert begin > 1.0
    assert abs(lag_seconds(expected, heard)) <= 0.001


async def test_what_is_not_there_is_silence(sample, remux, hear):
    base = str(sample().path)
    delayed = remux(sample(), "late.mp4", "-itsoffset", "3", "-i", base, "-map", "0:v", "-map", "1:a", "-c", "copy")
    assert not (await hear(delayed, ClipRange(0.5, 2.0))).any()
    partly = await hear(delayed, ClipRange(2.0, 4.0))
    assert np.abs(partly[: round(0.9 * RATE)]).max() <= QUIET
    assert np.abs(partly[round(1.1 * RATE) :]).max() > QUIET
    short = remux(sample(), "short.mp4", "-filter_complex", "[0:a]atrim=end=2[a]", "-map", "0:v", "-map", "[a]",
                  "-c:v", "copy")  # fmt: skip
    assert not (await hear(short, ClipRange(3.0, 5.0))).any()
    ending = await hear(short, ClipRange(1.0, 5.0))
    assert np.abs(ending[:RATE]).max() > QUIET
    assert not ending[round(1.2 * RATE) :].any()


async def test_gap_keeps_what_comes_after_it_in_its_place(sample, remux, hear):
    gap = ("-af", "aselect='not(between(t,2,3))'", "-c:v", "copy")
    source = remux(sample(), "gap.mkv", *gap)
    heard = await hear(source, ClipRange(1.0, 5.0))
    original = await hear(sample(), ClipRange(1.0, 5.0))
    assert np.abs(heard[round(1.1 * RATE) : round(1.9 * RATE)]).max() <= QUIET
    after = slice(round(2.2 * RATE), round(3.8 * RATE))
    assert abs(lag_seconds(original[after].astype(np.float32), heard[after].astype(np.float32))) <= 0.03


async def test_sound_that_broke_off_is_no_silence(sample, remux, hear):
    source = remux(sample(), "whole.mkv", "-c", "copy")
    probed = await probe(source)
    content = source.path.read_bytes()
    source.path.write_bytes(content[: len(content) // 2])
    with pytest.raises((OutputCorrupt, UpstreamFailure)):
        await hear(source, ClipRange(1.0, 5.5), probed)
    with pytest.raises(OutputCorrupt, match="ends at"):
        await hear(sample(), ClipRange(5.0, 9.0), replace(await probe(sample()), duration_seconds=60.0))


async def test_reading_that_broke_off_is_named_by_the_source(sample, hear):
    class Broken(LocalSource):
        def failure(self):
            return UpstreamFailure("the origin hung up")

    with pytest.raises(UpstreamFailure, match="hung up"):
        await hear(Broken(sample().path), ClipRange(1.0, 2.0), await probe(sample()))
