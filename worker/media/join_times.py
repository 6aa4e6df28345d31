"""When the pictures of joined pages are decoded and how long each is shown: arithmetic alone, in ticks."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise


class Disorder(Exception):
    """The pages do not follow each other; the message says where, for people."""


@dataclass(frozen=True, slots=True)
class TrackTimes:
    """One track's pictures. An hour of them takes two megabytes."""

    #: when each is shown, in that order
    shown: Sequence[int]
    #: how many pictures later than decoded one may be shown
    depth: int
    #: when the last one is over
    past: int

    def stored(self, number: int) -> int:
        """When the `number`-th picture is decoded: later than the one before it, and never after it is shown.

        By then as many others wait to be shown as the depth allows; the first ones take equal steps up to there.
        """
        if number >= self.depth:
            return self.shown[number - self.depth]
        return self.shown[0] - (self.depth - number) * self._step

    def lasting(self, shown: int) -> int:
        """For how long a picture is on display: up to the next."""
        following = bisect_right(self.shown, shown)
        return (self.shown[following] if following < len(self.shown) else self.past) - shown

    @property
    def _step(self) -> int:
        first = [*self.shown[: self.depth + 1], self.past] if len(self.shown) == 1 else self.shown[: self.depth + 1]
        return min(two - one for one, two in pairwise(first))


def track_times(pages: Iterable[Sequence[int]], *, depth: int, past: int) -> TrackTimes:
    """Of pages whose pictures are given in decode order, each by when it is shown in the whole clip.

    `depth` is what decoders are told; more is taken where more is needed.
    """
    shown = array("q")
    for number, page in enumerate(pages):
        ordered = sorted(page)
        if shown and ordered and ordered[0] <= shown[-1]:
            raise Disorder(f"page {number} begins at tick {ordered[0]}, before the one before it ends at {shown[-1]}")
        if any(one == two for one, two in pairwise(ordered)):
            raise Disorder(f"page {number} shows two pictures at once")
        depth = max(depth, _needed_depth(page, ordered))
        shown.extend(ordered)
    if not shown:
        raise Disorder("no page has a picture")
    return TrackTimes(shown, depth, max(past, shown[-1] + 1))


def _needed_depth(decoded: Sequence[int], shown: Sequence[int]) -> int:
    ranks = {tick: rank for rank, tick in enumerate(shown)}
    return max((number - ranks[tick] for number, tick in enumerate(decoded)), default=0)
