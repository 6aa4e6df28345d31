"""The real engine on real recordings: what it hears, and what it says of files that hold nothing to hear."""

import wave
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from bench.asr.corpus import TWO_CITIES
from bench.asr.words import score, words_of
from worker.asr import Recognizer
from worker.errors import OutputCorrupt


async def test_reading_of_44_seconds_is_heard_with_few_wrong_words(recognizer: Recognizer, recordings: Path) -> None:
    transcript = await recognizer.transcribe(recordings / "two_cities.wav", language="en-GB")

    # 6.7 % is what the engine's own voice detection gives.
    assert score(TWO_CITIES, transcript.text).percent < 5
    assert (transcript.engine, transcript.language) == ("moonshine", "en-GB")


async def test_segments_follow_each_other_within_the_recording(recognizer: Recognizer, recordings: Path) -> None:
    path = recordings / "two_cities.wav"
    with wave.open(str(path), "rb") as file:
        duration_seconds = file.getnframes() / file.getframerate()

    segments = (await recognizer.transcribe(path, language=None)).segments

    assert len(segments) >= 3
    assert all(0 <= segment.start_seconds < segment.end_seconds <= duration_seconds for segment in segments)
    assert all(before.end_seconds <= after.start_seconds for before, after in pairwise(segments))
    words = [word for segment in segments for word in segment.words]
    [belief] = [word for word in words if "belief" in word.text]
    assert belief.start_seconds == pytest.approx(9.9, abs=0.5)
    assert all(word.is_estimated and word.confidence is None for word in words)
    assert all(before.end_seconds <= after.start_seconds + 1e-6 for before, after in pairwise(words))


async def test_engine_stays_warm_between_requests(recognizer: Recognizer, recordings: Path) -> None:
    first = await recognizer.transcribe(recordings / "beckett.wav", language=None)
    pid = recognizer.pid
    second = await recognizer.transcribe(recordings / "beckett.wav", language=None)

    assert pid is not None
    assert recognizer.pid == pid
    assert {"tried", "failed", "again"} <= set(words_of(first.text)) & set(words_of(second.text))


@pytest.mark.parametrize("seconds", [0, 0.01, 20])
async def test_silence_is_an_empty_transcript(
    recognizer: Recognizer, silence: Callable[[float], Path], seconds: float
) -> None:
    assert (await recognizer.transcribe(silence(seconds), language=None)).segments == ()


async def test_unreadable_sound_is_corrupt_output_and_leaves_the_engine_warm(
    recognizer: Recognizer, recordings: Path, tmp_path: Path
) -> None:
    empty, garbage = tmp_path / "empty.wav", tmp_path / "garbage.wav"
    empty.touch()
    garbage.write_bytes(b"<html>not found</html>" * 100)

    for path in (empty, garbage, tmp_path / "absent.wav"):
        with pytest.raises(OutputCorrupt, match=path.name):
            await recognizer.transcribe(path, language=None)
    pid = recognizer.pid
    assert "tried" in (await recognizer.transcribe(recordings / "beckett.wav", language=None)).text.lower()
    assert recognizer.pid == pid
