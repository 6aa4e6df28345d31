"""Reads a WAV file piece by piece, so that an hour of sound needs no more memory than a minute."""

import wave
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from worker.asr.spans import FRAME_SECONDS, Span, frame_levels

_FRAMES_PER_READ = 3000


class BadWavError(Exception):
    """The file is not 16-bit mono PCM; the message says what it is instead."""


class WavReader:
    def __init__(self, file: wave.Wave_read) -> None:
        self._file = file
        self.sample_rate = file.getframerate()
        self._frame_length = round(self.sample_rate * FRAME_SECONDS)

    def levels(self) -> NDArray[np.float32]:
        """The loudness of every frame of the file; see `spans`."""
        self._file.rewind()
        pieces = []
        while len(samples := self._read(self._frame_length * _FRAMES_PER_READ)):
            pieces.append(frame_levels(samples, self._frame_length))
        return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.float32)

    def samples(self, span: Span) -> NDArray[np.float32]:
        """What is heard in a span, between -1 and 1."""
        self._file.setpos(span.start * self._frame_length)
        return self._read((span.end - span.start) * self._frame_length).astype(np.float32) / 32768.0

    def seconds(self, frame: int) -> float:
        return frame * self._frame_length / self.sample_rate

    def _read(self, count: int) -> NDArray[np.int16]:
        content = self._file.readframes(count)
        return np.frombuffer(content[: len(content) // 2 * 2], dtype="<i2")


@contextmanager
def open_wav(path: Path) -> Iterator[WavReader]:
    try:
        with wave.open(str(path), "rb") as file:
            if file.getnchannels() != 1 or file.getsampwidth() != 2:
                raise BadWavError(f"{file.getnchannels()} channels of {8 * file.getsampwidth()} bits, not one of 16")
            if file.getframerate() * FRAME_SECONDS < 1:
                raise BadWavError(f"{file.getframerate()} samples a second")
            yield WavReader(file)
    except EOFError as exc:
        raise BadWavError("it ends before its header does") from exc
    except wave.Error as exc:
        raise BadWavError(str(exc)) from exc
    except OSError as exc:
        raise BadWavError(exc.strerror or type(exc).__name__) from exc
