"""The real engine, and the human recordings that lie in its wheel."""

import importlib.util
import wave
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from worker.asr.moonshine import MoonshineRecognizer


@pytest.fixture
async def recognizer() -> AsyncIterator[MoonshineRecognizer]:
    recognizer = MoonshineRecognizer(patience_seconds=30)
    yield recognizer
    await recognizer.close()


@pytest.fixture(scope="session")
def recordings() -> Path:
    spec = importlib.util.find_spec("moonshine_voice")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "assets"


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
