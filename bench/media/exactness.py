"""Is a clip what was asked for? Told by the numbers in its frames and by its sound beside the source's."""

from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any, Final

import av
import numpy as np
from numpy.typing import NDArray

from bench.media.source import NumberedSource
from worker.domain.media import ClipRange
from worker.media.frame_code import read_frame_number

#: as the frames of a range are chosen: people write milliseconds
GRACE_SECONDS: Final = 0.001
#: how much of either end is decoded; all of a clip that is not much longer
ENDS_SECONDS: Final = 12.0
WHOLE_SECONDS: Final = 40.0
WINDOW_SECONDS: Final = 0.8
#: how far off the sound is looked for
SLACK_SECONDS: Final = 1.0
#: a coder's first packets fade in
LEAD_SECONDS: Final = 0.2
#: less likeness than this is another sound
LEAST_LIKENESS: Final = 0.5

Samples = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Exactness:
    #: positive: too late
    first_off: int
    #: positive: too long
    last_off: int
    #: places where the next frame is not the next number, in what was decoded
    breaks: int
    #: the worst of several places, positive when sound is late; None when it was not found again
    sync_ms: float | None

    @property
    def frames_off(self) -> int:
        return abs(self.first_off) + abs(self.last_off) + self.breaks


@dataclass(frozen=True, slots=True)
class _Shown:
    number: int
    seconds: float


def examine(clip: Path, source: NumberedSource, wanted: ClipRange) -> Exactness:
    """Decode the clip, or both ends of a long one. Blocks."""
    spans = _spans(wanted.duration_seconds)
    first = ceil((wanted.start_seconds - GRACE_SECONDS) * source.fps)
    past = ceil((wanted.end_seconds - GRACE_SECONDS) * source.fps)
    parts = [_unrolled(_watch(clip, *span), source, wanted) for span in spans]
    shown = [one for part in parts for one in part]
    if not shown:
        raise ValueError(f"{clip.name} shows no numbered frame")
    return Exactness(
        first_off=shown[0].number - first,
        last_off=shown[-1].number - (past - 1),
        breaks=sum(two.number != one.number + 1 for part in parts for one, two in pairwise(part)),
        sync_ms=_worst_sync(clip, source, wanted, parts),
    )


def _spans(seconds: float) -> list[tuple[float, float]]:
    if seconds <= WHOLE_SECONDS:
        return [(0.0, seconds + SLACK_SECONDS)]
    return [(0.0, ENDS_SECONDS), (seconds - ENDS_SECONDS, seconds + SLACK_SECONDS)]


def _watch(clip: Path, start: float, end: float) -> list[_Shown]:
    shown = []
    with av.open(str(clip)) as container:
        video = container.streams.video[0]
        video.thread_type = "AUTO"
        container.seek(round(start * av.time_base), backward=True)
        for frame in container.decode(video):
            if frame.time is None or frame.time < start:
                continue
            if frame.time >= end:
                break
            number = read_frame_number(_luma(frame))
            shown.append(_Shown(-1 if number is None else number, frame.time))
    return shown


def _luma(frame: av.VideoFrame) -> NDArray[np.uint8]:
    plane = frame.planes[0]
    rows = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)
    luma: NDArray[np.uint8] = rows[: frame.height, : frame.width]
    return luma


def _unrolled(shown: list[_Shown], source: NumberedSource, wanted: ClipRange) -> list[_Shown]:
    """Numbers that begin again in a lengthened source, counted on."""

    def counted_on(one: _Shown) -> _Shown:
        expected = (wanted.start_seconds + one.seconds) * source.fps
        rounds = round((expected - one.number) / source.frames)
        return _Shown(one.number + rounds * source.frames, one.seconds)

    return [counted_on(one) for one in shown]


def _worst_sync(clip: Path, source: NumberedSource, wanted: ClipRange, parts: list[list[_Shown]]) -> float | None:
    lags = list[float]()
    for part in parts:
        begin, end = part[0].seconds, part[-1].seconds
        for at in (begin + LEAD_SECONDS, (begin + end) / 2, end - WINDOW_SECONDS - LEAD_SECONDS):
            frame = min(part, key=lambda one: abs(one.seconds - at))
            seen_late = wanted.start_seconds + frame.seconds - frame.number / source.fps
            heard_late = _heard_late(clip, source, wanted, max(at, 0.0))
            if heard_late is None:
                return None
            lags.append((heard_late - seen_late) * 1000)
    return max(lags, key=abs)


def _heard_late(clip: Path, source: NumberedSource, wanted: ClipRange, at: float) -> float | None:
    """How much later than in the source the sound at `at` comes, in seconds."""
    piece_at, piece, rate = _listen(clip, at, WINDOW_SECONDS)
    place = wanted.start_seconds + piece_at
    whole_at, whole, _ = _listen(source.path, max(0.0, place - SLACK_SECONDS), WINDOW_SECONDS + 2 * SLACK_SECONDS)
    found = _find(whole, piece)
    return None if found is None else place - (whole_at + found / rate)


def _listen(path: Path, start: float, seconds: float) -> tuple[float, Samples, int]:
    """Mono samples from about `start`, and when exactly the first of them sounds."""
    parts, begin = list[Samples](), 0.0
    with av.open(str(path)) as container:
        audio = container.streams.audio[0]
        rate = audio.rate or 0
        container.seek(round(max(0.0, start - 0.5) * av.time_base), backward=True)
        for frame in container.decode(audio):
            if frame.time is None or frame.time < start:
                continue
            begin = begin if parts else frame.time
            parts.append(_mono(frame))
            if sum(part.size for part in parts) >= seconds * rate:
                break
    samples = np.concatenate(parts) if parts else np.zeros(0)
    return begin, samples[: round(seconds * rate)], rate


def _mono(frame: Any) -> Samples:
    samples: Samples = frame.to_ndarray().astype(np.float64).reshape(-1, frame.samples).mean(axis=0)
    return samples


def _find(whole: Samples, piece: Samples) -> int | None:
    """Where in `whole` the piece is most like it."""
    if not 0 < piece.size <= whole.size or not piece.any():
        return None
    size = 1 << (whole.size + piece.size).bit_length()
    spectrum = np.fft.rfft(whole, size) * np.conj(np.fft.rfft(piece, size))
    places = whole.size - piece.size + 1
    product = np.fft.irfft(spectrum, size)[:places]
    energy = np.concatenate([[0.0], np.cumsum(whole**2)])
    around = energy[piece.size :][:places] - energy[:places]
    likeness = product / np.sqrt(np.maximum(around * (piece**2).sum(), 1e-12))
    best = int(likeness.argmax())
    return best if likeness[best] >= LEAST_LIKENESS else None
