"""Where a recording is worth listening to: stretches of sound, cut where the speaker draws breath."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FRAME_SECONDS = 0.02
#: dB below full scale; nothing quieter is ever speech
SILENCE_DBFS = -60.0
#: the engine's sense of context outweighs a short pause, and nothing is said in a long one
LONG_PAUSE_SECONDS = 2.0
#: soft consonants at the edges lie below the threshold
MARGIN_SECONDS = 0.3
#: measured on a 44 s reading: 1.7 % of the words wrong; 5.0 % with 4 to 8 s, 2.5 % with 10 to 25 s.
#: The engine's memory grows with the square of the upper bound.
MIN_SPAN_SECONDS = 6.0
MAX_SPAN_SECONDS = 12.0

_DYNAMIC_RANGE_DB = 45.0
_SMOOTHING_FRAMES = 11


class Span(NamedTuple):
    """Frames `start` ≤ n < `end`."""

    start: int
    end: int


def frame_levels(samples: NDArray[np.int16], frame_length: int) -> NDArray[np.float32]:
    """The loudness of each whole frame, in dB below full scale."""
    whole = len(samples) // frame_length * frame_length
    frames = samples[:whole].reshape(-1, frame_length).astype(np.float32) / 32768.0
    power = np.mean(np.square(frames), axis=1)
    levels: NDArray[np.float32] = (10.0 * np.log10(np.maximum(power, 1e-12))).astype(np.float32)
    return levels


def find_spans(levels: NDArray[np.float32]) -> list[Span]:
    """Stretches to transcribe one by one, in order, never overlapping; silence belongs to none of them."""
    return [span for stretch in _stretches_of_sound(levels) for span in _cut_long(stretch, levels)]


def _stretches_of_sound(levels: NDArray[np.float32]) -> list[Span]:
    if len(levels) == 0:
        return []
    threshold = max(SILENCE_DBFS, float(np.percentile(levels, 95)) - _DYNAMIC_RANGE_DB)
    loud = np.flatnonzero(levels >= threshold)
    if len(loud) == 0:
        return []
    breaks = np.flatnonzero(np.diff(loud) > _frames(LONG_PAUSE_SECONDS))
    firsts = np.concatenate(([loud[0]], loud[breaks + 1]))
    lasts = np.concatenate((loud[breaks], [loud[-1]]))
    margin = _frames(MARGIN_SECONDS)
    return [
        Span(max(0, int(first) - margin), min(len(levels), int(last) + 1 + margin))
        for first, last in zip(firsts, lasts, strict=True)
    ]


def _cut_long(stretch: Span, levels: NDArray[np.float32]) -> list[Span]:
    shortest, longest = _frames(MIN_SPAN_SECONDS), _frames(MAX_SPAN_SECONDS)
    spans: list[Span] = []
    start = stretch.start
    while stretch.end - start > longest:
        # What is left over must not be too short to recognise either.
        latest = min(start + longest, stretch.end - shortest)
        cut = _quietest(levels, start + shortest, latest)
        spans.append(Span(start, cut))
        start = cut
    return [*spans, Span(start, stretch.end)]


def _quietest(levels: NDArray[np.float32], first: int, last: int) -> int:
    smoothing = np.ones(_SMOOTHING_FRAMES, dtype=np.float32) / _SMOOTHING_FRAMES
    window = np.convolve(levels[first:last], smoothing, mode="same")
    # `same` pads with 0 dB, the loudest there is, so that the edges never win by accident.
    return first + int(np.argmin(window))


def _frames(seconds: float) -> int:
    return round(seconds / FRAME_SECONDS)
