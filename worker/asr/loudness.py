"""How loud a recording is from moment to moment: where nothing is said, cutting hurts least."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

FRAME_SECONDS: Final = 0.02
_SMOOTHING_FRAMES: Final = 11

Levels = NDArray[np.float32]


def frame_levels(samples: NDArray[np.int16], frame_length: int) -> Levels:
    """The loudness of each whole frame, in dB below full scale."""
    whole = len(samples) // frame_length * frame_length
    frames = samples[:whole].reshape(-1, frame_length).astype(np.float32) / 32768.0
    power = np.mean(np.square(frames), axis=1)
    levels: Levels = (10.0 * np.log10(np.maximum(power, 1e-12))).astype(np.float32)
    return levels


def quietest_seconds(levels: Levels, first_seconds: float, last_seconds: float) -> float:
    """The middle of the quietest fifth of a second between two times."""
    first, last = round(first_seconds / FRAME_SECONDS), round(last_seconds / FRAME_SECONDS)
    part = levels[first:last]
    if len(part) == 0:
        return first_seconds
    smoothing = np.ones(_SMOOTHING_FRAMES, dtype=np.float32) / _SMOOTHING_FRAMES
    # Padded with 0 dB, the loudest there is, so that the edges never win by accident.
    half = _SMOOTHING_FRAMES // 2
    smoothed = np.convolve(np.pad(part, half), smoothing, mode="valid")
    return (first + int(np.argmin(smoothed)) + 0.5) * FRAME_SECONDS
