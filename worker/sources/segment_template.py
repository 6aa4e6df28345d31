"""DASH's ways to name segments without listing them: templates, numbers and timelines."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from worker.sources.mpd_xml import Element
from worker.sources.presentation import MAX_SEGMENTS

_IDENTIFIER: Final = re.compile(r"\$(RepresentationID|Number|Time|Bandwidth|)(?:%0(\d{1,2})d)?\$")
_NUMBER: Final = re.compile(r"-?\d{1,18}", re.ASCII)


class ManifestError(ValueError):
    """The manifest cannot be understood; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Timing:
    """When one segment is, in ticks of its track."""

    number: int
    start: int
    duration: int


def number_of(element: Mapping[str, str], name: str, default: int) -> int:
    text = element.get(name)
    if text is None:
        return default
    if not _NUMBER.fullmatch(text.strip()):
        raise ManifestError(f"has a {name} that is no number")
    return int(text)


def fill(template: str, values: Mapping[str, str | int]) -> str:
    """`seg-$Number%05d$.m4s` with everything filled in; `$$` is a dollar sign."""

    def value(match: re.Match[str]) -> str:
        if not match.group(1):
            return "$"
        if match.group(1) not in values:
            raise ManifestError(f"uses ${match.group(1)}$ where it means nothing")
        return str(values[match.group(1)]).zfill(int(match.group(2) or 0))

    return _IDENTIFIER.sub(value, template)


def timings(
    told: Mapping[str, str],
    timeline: Element | None,
    timescale: int,
    seconds: float | None,
    *,
    count: int | None = None,
) -> list[Timing]:
    """All segments of a track: as its timeline lists them, or equally long ones (`count`, or as many as fit)."""
    number = number_of(told, "startNumber", 1)
    if timeline is not None:
        end = None if seconds is None else number_of(told, "presentationTimeOffset", 0) + round(seconds * timescale)
        found = _bounded(_from_timeline(timeline, end))
    else:
        if seconds is None:
            raise ManifestError("does not tell how long it is")
        found = _bounded(_equally_long(number_of(told, "duration", 0), seconds * timescale, count))
    if count is not None and len(found) != count:
        raise ManifestError("lists another number of segments than it has times for")
    return [Timing(number + n, start, duration) for n, (start, duration) in enumerate(found)]


def _equally_long(duration: int, end: float, count: int | None) -> Iterator[tuple[int, int]]:
    if duration <= 0:
        raise ManifestError("does not tell how long its segments are")
    count = math.ceil(round(end / duration, 3)) if count is None else count
    for n in range(count - 1):
        yield n * duration, duration
    # the last one holds what is left
    if count > 0:
        start = (count - 1) * duration
        yield start, min(duration, max(1, round(end) - start))


def _from_timeline(timeline: Element, end: int | None) -> Iterator[tuple[int, int]]:
    entries = timeline.all("S")
    at = 0
    for n, entry in enumerate(entries):
        at = number_of(entry.attributes, "t", at)
        duration = number_of(entry.attributes, "d", 0)
        if duration <= 0:
            raise ManifestError("has a segment without a length")
        repeat = number_of(entry.attributes, "r", 0)
        if repeat < 0:
            until = number_of(entries[n + 1].attributes, "t", -1) if n + 1 < len(entries) else end
            if until is None or until < at:
                raise ManifestError("repeats a segment without end")
            repeat = math.ceil((until - at) / duration) - 1
        for _ in range(repeat + 1):
            yield at, duration
            at += duration


def _bounded(found: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    segments = list[tuple[int, int]]()
    for segment in found:
        if len(segments) >= MAX_SEGMENTS:
            raise ManifestError(f"names more than {MAX_SEGMENTS} segments")
        segments.append(segment)
    return segments
