"""From probabilities to stretches of speech."""

import wave
from pathlib import Path

import numpy as np
import pytest

from worker.asr.voice import CHUNK_SECONDS, Speech, VoiceDetector, find_speech
from worker.asr.wav import BadWavError, open_wav


def heard(*parts: tuple[int, float]) -> list[Speech]:
    """(chunks, probability) parts, one after the other."""
    return find_speech([probability for chunks, probability in parts for _ in range(chunks)])


def between(first: int, last: int) -> Speech:
    return Speech(first * CHUNK_SECONDS, last * CHUNK_SECONDS)


def test_speech_lasts_while_the_detector_is_not_sure_that_it_has_ended() -> None:
    assert heard((10, 0.1), (10, 0.95), (5, 0.4), (10, 0.8), (10, 0.2)) == [between(10, 35)]


def test_doubt_alone_is_no_speech() -> None:
    assert heard((50, 0.45)) == []
    assert find_speech([]) == []


def test_what_is_never_sure_to_be_speech_is_none_however_long() -> None:
    assert heard((10, 0.0), (49, 0.8), (1, 0.95), (10, 0.0)) == []
    assert heard((10, 0.0), (48, 0.8), (2, 0.95), (10, 0.0)) == [between(10, 60)]


def test_speech_up_to_the_last_moment_ends_with_the_recording() -> None:
    assert heard((10, 0.1), (10, 0.9)) == [between(10, 20)]


def test_pauses_within_words_are_none_and_longer_ones_are() -> None:
    assert heard((10, 0.9), (2, 0.0), (10, 0.9)) == [between(0, 22)]
    assert heard((10, 0.9), (5, 0.0), (10, 0.9)) == [between(0, 10), between(15, 25)]


def test_a_click_is_no_speech() -> None:
    assert heard((20, 0.0), (2, 0.99), (20, 0.0), (10, 0.99), (20, 0.0)) == [between(42, 52)]


def write(path: Path, samples: np.ndarray, rate: int = 16000) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(samples.astype("<i2").tobytes())
    return path


@pytest.mark.parametrize("kind", ["silence", "beeps", "noise"])
def test_what_is_not_a_voice_is_not_taken_for_one(tmp_path: Path, kind: str) -> None:
    times = np.arange(16000 * 5) / 16000
    sounds = {
        "silence": np.zeros_like(times),
        "beeps": 12000 * np.sin(2 * np.pi * 880 * times) * (times % 1 < 0.3),
        "noise": np.random.default_rng(7).normal(0, 3000, times.size),
    }
    with open_wav(write(tmp_path / "a.wav", sounds[kind])) as wav:
        assert find_speech(VoiceDetector().probabilities(wav)) == []


def test_a_recording_of_another_rate_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.wav", np.zeros(8000), rate=8000)
    with open_wav(path) as wav, pytest.raises(BadWavError, match="8000 samples a second"):
        VoiceDetector().probabilities(wav)
