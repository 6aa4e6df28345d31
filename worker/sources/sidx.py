"""The segment index (`sidx`) of a fragmented MP4 file: how long and how large each of its segments is."""

import struct
from dataclasses import dataclass

_ENTRY_BYTES = 12


@dataclass(frozen=True, slots=True)
class IndexEntry:
    size_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SegmentIndex:
    #: from the end of the index to the first segment
    first_offset: int
    #: length of the index itself
    size_bytes: int
    entries: tuple[IndexEntry, ...]


def find_sidx(head: bytes) -> int | None:
    """Where in the beginning of a file its index lies; None when it is not there."""
    at = 0
    while at + 8 <= len(head):
        size, kind = struct.unpack_from(">I4s", head, at)
        if kind == b"sidx":
            return at
        if size < 8:
            return None
        at += size
    return None


def parse_sidx(box: bytes) -> SegmentIndex | None:
    """None for what is no index, is cut off, or points to further indexes."""
    try:
        size, kind, version = struct.unpack_from(">I4sB", box)
        timescale = struct.unpack_from(">I", box, 16)[0]
        first_offset = struct.unpack_from(">I" if version == 0 else ">Q", box, 24 if version == 0 else 28)[0]
        at = 30 if version == 0 else 38
        count = struct.unpack_from(">H", box, at)[0]
        entries = [struct.unpack_from(">II", box, at + 2 + n * _ENTRY_BYTES) for n in range(count)]
    except struct.error:
        return None
    # the first bit marks an entry that is an index again
    if kind != b"sidx" or timescale == 0 or size > len(box) or any(length >> 31 for length, _ in entries):
        return None
    found = tuple(IndexEntry(length, duration / timescale) for length, duration in entries)
    return SegmentIndex(first_offset, size, found)
