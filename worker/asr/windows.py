"""Cuts a recording into windows for an engine: long silence belongs to none of them, and no word is cut in two.

Where a speaker does not draw breath for too long, two windows overlap, and what both heard is stitched later.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from worker.asr.base import Window, WindowPolicy
from worker.asr.loudness import Levels, quietest_seconds
from worker.asr.voice import Speech

#: the engine's sense of context outweighs a short pause, and nothing is said in a long one
LONG_PAUSE_SECONDS: Final = 2.0
#: the detector is late for soft consonants at the edges
MARGIN_SECONDS: Final = 0.5
#: of two windows without a pause between them, on each side of the cut: room for a word that is cut in two, and for
#: some more that both hear whole
OVERLAP_SECONDS: Final = 1.0


def plan_windows(
    speech: Sequence[Speech], levels: Levels, policy: WindowPolicy, *, duration_seconds: float
) -> list[Window]:
    """In order; each tells the speech in it."""
    windows: list[Window] = []
    for stretch in _stretches(speech):
        for first, last in _pieces(stretch, levels, policy):
            windows.append(_window(first, last, stretch, duration_seconds))
    return windows


def _stretches(speech: Sequence[Speech]) -> list[list[Speech]]:
    stretches: list[list[Speech]] = []
    for each in speech:
        if stretches and each.start_seconds - stretches[-1][-1].end_seconds <= LONG_PAUSE_SECONDS:
            stretches[-1].append(each)
        else:
            stretches.append([each])
    return stretches


class _Edge:
    """Where a window begins or ends: `reach` is how far it may look across the cut."""

    __slots__ = ("reach_seconds", "seconds")

    def __init__(self, seconds: float, reach_seconds: float) -> None:
        self.seconds = seconds
        self.reach_seconds = reach_seconds


def _pieces(stretch: Sequence[Speech], levels: Levels, policy: WindowPolicy) -> list[tuple[_Edge, _Edge]]:
    end = stretch[-1].end_seconds
    pieces = []
    start = _Edge(stretch[0].start_seconds, MARGIN_SECONDS)
    while end - start.seconds > policy.longest_seconds:
        # What is left over must not be too short to recognise either.
        latest = min(start.seconds + policy.longest_seconds, end - policy.shortest_seconds)
        cut = _cut(stretch, levels, start.seconds + policy.shortest_seconds, latest)
        pieces.append((start, cut))
        start = cut
    return [*pieces, (start, _Edge(end, MARGIN_SECONDS))]


def _cut(stretch: Sequence[Speech], levels: Levels, earliest: float, latest: float) -> _Edge:
    pauses = [
        (before.end_seconds, after.start_seconds)
        for before, after in pairwise(stretch)
        if earliest <= before.end_seconds and after.start_seconds <= latest
    ]
    if not pauses:
        return _Edge(quietest_seconds(levels, earliest, latest), OVERLAP_SECONDS)
    begin, end = max(pauses, key=lambda pause: pause[1] - pause[0])
    return _Edge((begin + end) / 2, 0.0)


def _window(first: _Edge, last: _Edge, stretch: Sequence[Speech], duration_seconds: float) -> Window:
    start = max(0.0, first.seconds - first.reach_seconds)
    end = min(duration_seconds, last.seconds + last.reach_seconds)
    inside = (
        (max(start, speech.start_seconds), min(end, speech.end_seconds))
        for speech in stretch
        if speech.start_seconds < end and speech.end_seconds > start
    )
    return Window(start, end, tuple(inside))
