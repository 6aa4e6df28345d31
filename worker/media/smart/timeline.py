"""From a source stream's timestamps to the clip's, exactly: no float ever decides about a frame."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from worker.media.smart.order import SmartOrder
from worker.media.timeline import TICKS_PER_SECOND, first_tick, past_last_tick, start_tick


@dataclass(frozen=True, slots=True)
class StreamTimeline:
    """One stream's clock, the clip's zero on it, and the range that is wanted."""

    time_base: Fraction
    #: the clip's own ticks in one of the source's: a coarse clock could not name the clip's start
    factor: int
    zero: int
    first_pts: int
    past_pts: int
    #: where the clip ends, in its own ticks
    past_in_clip: int

    @property
    def tick(self) -> Fraction:
        return self.time_base / self.factor

    def in_clip(self, pts: int) -> int:
        # a frame may lie a rounding error before the start that it was meant by
        return max(0, pts * self.factor - self.zero)

    def clip_seconds(self, pts: int) -> float:
        return float(self.in_clip(pts) * self.tick)


def picture_timeline(order: SmartOrder, time_base: Fraction) -> StreamTimeline:
    return _timeline(
        order,
        time_base,
        first_tick(order.start_seconds, order.fps),
        past_last_tick(order.end_seconds, order.fps),
    )


def sound_timeline(order: SmartOrder, time_base: Fraction) -> StreamTimeline:
    return _timeline(order, time_base, start_tick(order.start_seconds), start_tick(order.end_seconds))


def source_start(order: SmartOrder) -> Fraction:
    return Fraction(round(order.source_start_seconds * 1_000_000), 1_000_000)


def _timeline(order: SmartOrder, time_base: Fraction, first: int, past: int) -> StreamTimeline:
    zero = source_start(order) + _on_clock(order.start_seconds)
    is_coarse = time_base.numerator == 1 and TICKS_PER_SECOND % time_base.denominator == 0
    factor = TICKS_PER_SECOND // time_base.denominator if is_coarse else 1
    return StreamTimeline(
        time_base=time_base,
        factor=factor,
        zero=round(zero / (time_base / factor)),
        first_pts=_pts_of(first, order, time_base),
        past_pts=_pts_of(past, order, time_base),
        past_in_clip=round((_on_clock(order.end_seconds) - _on_clock(order.start_seconds)) / (time_base / factor)),
    )


def _pts_of(tick: int, order: SmartOrder, time_base: Fraction) -> int:
    """The first timestamp that rounds to `tick` or more."""
    return ceil((Fraction(2 * tick - 1, 2 * TICKS_PER_SECOND) + source_start(order)) / time_base)


def _on_clock(seconds: float) -> Fraction:
    return Fraction(start_tick(seconds), TICKS_PER_SECOND)
