"""Whole recordings by way of a server: found, cut and stitched here, heard there."""

from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import SecretStr

from bench.asr.corpus import TWO_CITIES
from bench.asr.words import score
from tests.contract.asr.conftest import API_KEY, SpeechServer
from tests.recordings import write_16k
from worker.asr import AsrOptions, open_recognizer
from worker.asr.base import WindowPolicy
from worker.errors import AsrUnavailable


async def test_recording_is_heard_in_windows_that_are_stitched(server: SpeechServer, tmp_path: Path) -> None:
    recording = write_16k("two_cities", tmp_path / "reading.wav")
    told: list[float] = []
    recognizer = open_recognizer(AsrOptions("http", f"{server.origin}/v1", "tiny-en", SecretStr(API_KEY)))
    assert recognizer is not None
    # as if the server took ten seconds, so that windows overlap where the reader does not pause
    recognizer.engine.policy = WindowPolicy(6, 9)
    try:
        transcript = await recognizer.transcribe(recording, language=None, on_progress=told.append)
    finally:
        await recognizer.close()
    asked = server.seen()
    assert len(asked) >= 5
    # the first one was asked what is spoken, the others were told
    assert [each["fields"].get("language") for each in asked] == [None, *[["en"]] * (len(asked) - 1)]
    assert told == pytest.approx([number / len(asked) for number in range(1, len(asked) + 1)])
    assert (transcript.engine, transcript.model, transcript.language) == ("http", "tiny-en", "en")
    assert score(TWO_CITIES, transcript.text).percent < 10
    words = transcript.words
    assert not any(word.is_estimated for word in words)
    assert all(one.end_seconds <= two.start_seconds + 1e-6 for one, two in pairwise(words))


async def test_one_window_that_fails_fails_the_recording_and_stops_the_others(
    server: SpeechServer, tmp_path: Path
) -> None:
    recording = write_16k("two_cities", tmp_path / "reading.wav")
    recognizer = open_recognizer(AsrOptions("http", f"{server.origin}/v1", "tiny-en"))
    assert recognizer is not None
    recognizer.engine.policy = WindowPolicy(6, 9)
    server.script({}, {"status": 429, "headers": {"Retry-After": "600"}}, *[{"seconds": 20}] * 9)
    try:
        with pytest.raises(AsrUnavailable, match="HTTP 429"):
            await recognizer.transcribe(recording, language=None)
    finally:
        await recognizer.close()
    # as many as are heard at once, and none after the failure
    assert len(server.seen()) <= 1 + recognizer.engine.at_once
