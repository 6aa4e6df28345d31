"""The real engine on real recordings: what it hears, and what it says of files that hold nothing to hear."""

import re
import wave
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from worker.asr.moonshine import MoonshineRecognizer
from worker.errors import OutputCorrupt

TWO_CITIES = """
It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of
foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of light, it was
the season of darkness, it was the spring of hope, it was the winter of despair, we had everything before
us, we had nothing before us, we were all going direct to heaven, we were all going direct the other way, in
short, the period was so far like the present period, that some of its noisiest authorities insisted on its
being received, for good or for evil, in the superlative degree of comparison only
"""


def words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


def word_error_rate(reference: list[str], heard: list[str]) -> float:
    distances = list(range(len(heard) + 1))
    for row, expected in enumerate(reference, 1):
        diagonal, distances[0] = distances[0], row
        for column, actual in enumerate(heard, 1):
            best = min(distances[column] + 1, distances[column - 1] + 1, diagonal + (expected != actual))
            diagonal, distances[column] = distances[column], best
    return distances[-1] / len(reference)


async def test_reading_of_44_seconds_is_heard_with_few_wrong_words(
    recognizer: MoonshineRecognizer, recordings: Path
) -> None:
    transcript = await recognizer.transcribe(recordings / "two_cities.wav", language="en-GB")

    # 10.1 % is what the engine's own voice detection gives.
    assert word_error_rate(words(TWO_CITIES), words(transcript.text)) < 0.06
    assert (transcript.engine, transcript.language) == ("moonshine", "en")


async def test_segments_follow_each_other_within_the_recording(
    recognizer: MoonshineRecognizer, recordings: Path
) -> None:
    path = recordings / "two_cities.wav"
    with wave.open(str(path), "rb") as file:
        duration_seconds = file.getnframes() / file.getframerate()

    segments = (await recognizer.transcribe(path, language=None)).segments

    assert len(segments) >= 4
    assert all(0 <= segment.start_seconds < segment.end_seconds <= duration_seconds for segment in segments)
    assert all(before.end_seconds <= after.start_seconds for before, after in pairwise(segments))
    [belief] = [segment for segment in segments if "belief" in segment.text]
    assert belief.start_seconds < 10 < belief.end_seconds


async def test_engine_stays_warm_between_requests(recognizer: MoonshineRecognizer, recordings: Path) -> None:
    first = await recognizer.transcribe(recordings / "beckett.wav", language=None)
    pid = recognizer.pid
    second = await recognizer.transcribe(recordings / "beckett.wav", language=None)

    assert pid is not None
    assert recognizer.pid == pid
    assert {"tried", "failed", "again"} <= set(words(first.text)) & set(words(second.text))


@pytest.mark.parametrize("seconds", [0, 0.01, 20])
async def test_silence_is_an_empty_transcript(
    recognizer: MoonshineRecognizer, silence: Callable[[float], Path], seconds: float
) -> None:
    assert (await recognizer.transcribe(silence(seconds), language=None)).segments == ()


async def test_unreadable_sound_is_corrupt_output_and_leaves_the_engine_warm(
    recognizer: MoonshineRecognizer, recordings: Path, tmp_path: Path
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
