"""Reads a WAV file piece by piece, so that an hour of sound needs no more memory than a minute."""

import wave
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from worker.asr.loudness import FRAME_SECONDS, Levels, frame_levels

_FRAMES_PER_READ = 3000


class BadWavError(Exception):
    """The file is not 16-bit mono PCM; the message says what it is instead."""


class WavReader:
    def __init__(self, file: wave.Wave_read) -> None:
        self._file = file
        self.sample_rate = file.getframerate()
        self._frame_length = round(self.sample_rate * FRAME_SECONDS)

    @property
    def duration_seconds(self) -> float:
        return self._file.getnframes() / self.sample_rate

    def levels(self) -> Levels:
        """The loudness of every frame of the file; see `loudness`."""
        blocks = self.blocks(self._frame_length * _FRAMES_PER_READ)
        pieces = [frame_levels(samples, self._frame_length) for samples in blocks]
        return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.float32)

    def samples(self, start_seconds: float, end_seconds: float) -> NDArray[np.float32]:
        """What is heard between two times, between -1 and 1."""
        return self.between(start_seconds, end_seconds).astype(np.float32) / 32768.0

    def between(self, start_seconds: float, end_seconds: float) -> NDArray[np.int16]:
        """Samples as they lie in the file, as far as it goes."""
        first, last = (
            min(max(0, round(seconds * self.sample_rate)), self._file.getnframes())
            for seconds in (start_seconds, end_seconds)
        )
        self._file.setpos(first)
        return self._read(max(0, last - first))

    def blocks(self, samples: int) -> Iterator[NDArray[np.int16]]:
        """The whole file, so many samples at a time."""
        self._file.rewind()
        while len(block := self._read(samples)):
            yield block

    def _read(self, count: int) -> NDArray[np.int16]:
        content = self._file.readframes(count)
        return np.frombuffer(content[: len(content) // 2 * 2], dtype="<i2")


@contextmanager
def open_wav(path: Path) -> Iterator[WavReader]:
    try:
        with wave.open(str(path), "rb") as file:
            if file.getnchannels() != 1 or file.getsampwidth() != 2:
                kind = f"{file.getnchannels()} channels of {8 * file.getsampwidth()} bits, not one of 16"
                raise BadWavError(f"{path.name}: {kind}")
            if file.getframerate() * FRAME_SECONDS < 1:
                raise BadWavError(f"{path.name}: {file.getframerate()} samples a second")
            yield WavReader(file)
    except EOFError as exc:
        raise BadWavError(f"{path.name}: it ends before its header does") from exc
    except wave.Error as exc:
        raise BadWavError(f"{path.name}: {exc}") from exc
    except OSError as exc:
        raise BadWavError(f"{path.name}: {exc.strerror or type(exc).__name__}") from exc
