"""Which packets of a group of pictures can be copied, told from their timestamps alone."""

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import accumulate

from worker.media.smart.order import Unfit


def copyable(pts: Sequence[int], past_end: int) -> int:
    """How many packets from the front show the earliest frames without a hole, and none at or behind `past_end`."""
    return max(
        (count for count, shown, following in _cuts(pts) if shown < min(following, past_end)),
        default=0,
    )


def covering(pts: Sequence[int], past_end: int) -> int:
    """How many packets from the front show every frame before `past_end` and leave no hole behind it."""
    fitting = (count for count, shown, following in _cuts(pts) if shown < following and following >= past_end)
    return min(fitting, default=len(pts))


def _cuts(pts: Sequence[int]) -> list[tuple[int, int, float]]:
    """After each packet: how many, the last time shown so far, the first time shown by the rest."""
    latest = list(accumulate(pts, max))
    earliest = list(accumulate(reversed(pts), min))[::-1]
    following = [*map(float, earliest[1:]), float("inf")]
    return [(at + 1, latest[at], following[at]) for at in range(len(pts))]


class DecodeTimes:
    """Decode times for packets in decode order: the display times, sorted, as many frames late as are reordered."""

    def __init__(self, reorder_frames: int, frame_ticks: int) -> None:
        self._reorder = reorder_frames
        self._step = frame_ticks
        self._waiting: list[int] = []
        self._last: int | None = None

    def next(self, pts: int) -> int:
        heappush(self._waiting, pts)
        if len(self._waiting) > self._reorder:
            dts = heappop(self._waiting)
        else:
            dts = self._waiting[0] - (self._reorder + 1 - len(self._waiting)) * self._step
            dts = dts if self._last is None else max(dts, self._last + 1)
        if dts > pts or (self._last is not None and dts <= self._last):
            raise Unfit("it shows its pictures in an order that it does not announce")
        self._last = dts
        return dts
