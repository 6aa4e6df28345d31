"""The real engine, and the human recordings that lie in its wheel."""

import wave
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from bench.asr.corpus import read_sound, recordings_folder, write_wav
from worker.asr import AsrOptions, Recognizer, open_recognizer
from worker.media.sample import SPEECH_FILES


def moonshine(*, timeout_seconds: float = 30) -> Recognizer:
    recognizer = open_recognizer(AsrOptions("moonshine", timeout_seconds=timeout_seconds))
    assert recognizer is not None
    return recognizer


@pytest.fixture
async def recognizer() -> AsyncIterator[Recognizer]:
    recognizer = moonshine()
    yield recognizer
    await recognizer.close()


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As the worker extracts them: 16 kHz, mono."""
    folder = tmp_path_factory.mktemp("recordings")
    for name in SPEECH_FILES:
        write_wav(folder / name, read_sound(recordings_folder() / name))
    return folder


@pytest.fixture
def silence(tmp_path: Path) -> Callable[[float], Path]:
    def write(seconds: float) -> Path:
        path = tmp_path / "silence.wav"
        with wave.open(str(path), "wb") as file:
            file.setparams((1, 2, 16000, 0, "NONE", ""))
            file.writeframes(b"\0\0" * round(16000 * seconds))
        return path

    return write


@pytest.fixture
def long_reading(tmp_path: Path, recordings: Path) -> Path:
    """Takes the engine many seconds."""
    path = tmp_path / "long.wav"
    with wave.open(str(recordings / "two_cities.wav"), "rb") as reading, wave.open(str(path), "wb") as file:
        file.setparams(reading.getparams())
        content = reading.readframes(reading.getnframes())
        for _ in range(4):
            file.writeframes(content)
    return path
