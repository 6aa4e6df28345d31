"""Byte ranges as HTTP speaks them, and the seam through which every remote source is read."""

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

_RANGE = re.compile(r"bytes=\s*(\d*)\s*-\s*(\d*)\s*", re.ASCII)
_CONTENT_RANGE = re.compile(r"bytes\s+(\d+)-(\d+)/(\d+)", re.ASCII)


class RangeReader(Protocol):
    """Random access to bytes that do not change while they are read."""

    size_bytes: int
    etag: str | None
    #: whether reading costs the origin anything
    is_remote: bool

    def read(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """Bytes `start` ≤ i < `end`, all of them, or a JobError: UpstreamFailure when going on may help."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """`start` ≤ i < `end`."""

    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


class UnsatisfiableRangeError(ValueError):
    """The range asked for lies outside the source: the answer is 416."""


def requested_range(header: str | None, size: int) -> ByteRange | None:
    """What a `Range` header asks for; None = everything, also for what RFC 9110 lets a server ignore."""
    match = _RANGE.fullmatch(header or "")
    if match is None or match.group(1) == match.group(2) == "":
        return None
    first, last = match.groups()
    if first == "":
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1 if last else size)
        if last and int(last) < start:
            return None
    if start >= end:
        raise UnsatisfiableRangeError
    return ByteRange(start, end)


def delivered_range(header: str | None) -> tuple[ByteRange, int] | None:
    """What a `Content-Range` header says was sent, and the whole size; None when it does not tell."""
    match = _CONTENT_RANGE.fullmatch((header or "").strip())
    if match is None:
        return None
    first, last, size = map(int, match.groups())
    return ByteRange(first, last + 1), size
