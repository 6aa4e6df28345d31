"""Bytes that were read once and will be asked for again, such as a film's index: kept in memory, within bounds."""

from bisect import bisect_right, insort
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

#: the indexes of some dozen long films
KEPT_BYTES: Final = 64 * 1024 * 1024
# Python's own cost of a span, so that many tiny ones cannot outgrow the bound.
_SPAN_BYTES: Final = 256


class SpanCache:
    """Spans of bytes by source; what was not asked for the longest goes first."""

    def __init__(self, max_bytes: int = KEPT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._held_bytes = 0
        self._spans: OrderedDict[tuple[Hashable, int], bytes] = OrderedDict()
        self._starts: dict[Hashable, list[int]] = {}

    def get(self, source: Hashable, position: int) -> bytes:
        """What is known from `position` on, up to the next gap or sooner; empty for a gap."""
        starts = self._starts.get(source, [])
        found = bisect_right(starts, position) - 1
        if found < 0:
            return b""
        name = (source, starts[found])
        content = self._spans[name][position - starts[found] :]
        if content:
            self._spans.move_to_end(name)
        return content

    def gap_end(self, source: Hashable, position: int) -> int | None:
        """Where the gap at `position` ends; None when nothing is known behind it."""
        starts = self._starts.get(source, [])
        after = bisect_right(starts, position)
        return starts[after] if after < len(starts) else None

    def put(self, source: Hashable, start: int, content: bytes) -> None:
        """Keep what fills the gap at `start`; what is known already stays as it is."""
        while content and (known := self.get(source, start)):
            start, content = start + len(known), content[len(known) :]
        end = self.gap_end(source, start)
        content = content if end is None else content[: end - start]
        if not content:
            return
        self._spans[source, start] = content
        insort(self._starts.setdefault(source, []), start)
        self._held_bytes += len(content) + _SPAN_BYTES
        while self._held_bytes > self._max_bytes:
            self._drop(*next(iter(self._spans)))

    def forget(self, source: Hashable) -> None:
        for start in tuple(self._starts.get(source, ())):
            self._drop(source, start)

    def _drop(self, source: Hashable, start: int) -> None:
        self._held_bytes -= len(self._spans.pop((source, start))) + _SPAN_BYTES
        starts = self._starts[source]
        starts.remove(start)
        if not starts:
            del self._starts[source]
