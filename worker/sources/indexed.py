"""Gives fragmented MP4 sources the index they lack, so that a clip costs its own bytes and not those before it."""

import struct
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from worker.sources.fragments import (
    Box,
    Fragment,
    Movie,
    NotIndexableError,
    box_at,
    parse_fragment,
    parse_movie,
    parse_random_access,
    segment_index,
)
from worker.sources.ranges import ByteRange, RangeReader

# Enough for the head of most fragmented files: their moov lists no samples.
_HEAD_BYTES: Final = 4096
_MOST_MOOV_BYTES: Final = 1 << 20
_MOST_INDEX_BYTES: Final = 4 << 20
# Between moov and the first fragment, and between fragments, stand few other boxes.
_MOST_BOXES: Final = 16
# A file whose fragments nobody listed is walked once, request by request; one that takes longer is left to ffmpeg.
_WALK_SECONDS: Final = 120.0
_MOST_FRAGMENTS: Final = 20_000
_PLACE: Final = struct.Struct(">QQ")


@dataclass(frozen=True, slots=True)
class Insertion:
    """An index at byte `at` of the source, which is then read up to `end` only: an mfra would point astray."""

    at: int
    end: int
    content: bytes

    def pack(self) -> bytes:
        return _PLACE.pack(self.at, self.end) + self.content

    @classmethod
    def unpack(cls, packed: bytes) -> "Insertion":
        at, end = _PLACE.unpack_from(packed)
        return cls(at, end, packed[_PLACE.size :])


class IndexedReader:
    """A RangeReader over a source with an insertion."""

    is_remote = True

    def __init__(self, reader: RangeReader, insertion: Insertion) -> None:
        self.size_bytes = insertion.end + len(insertion.content)
        self.etag = reader.etag
        self._reader = reader
        self._insertion = insertion

    async def read(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        at, content = self._insertion.at, self._insertion.content
        past = at + len(content)
        if start < at:
            async with aclosing(self._reader.read(start, min(end, at))) as chunks:
                async for chunk in chunks:
                    yield chunk
        if inserted := content[max(0, start - at) : max(0, end - at)]:
            yield inserted
        if end > past:
            async with aclosing(self._reader.read(max(start, past) - len(content), end - len(content))) as chunks:
                async for chunk in chunks:
                    yield chunk


async def missing_index(kept: RangeReader, passing: RangeReader) -> Insertion | None:
    """The index that the source lacks; None for everything that is not fragmented MP4, has one, or is odd.

    Both readers read the same source; what `kept` reads is remembered for the children, what `passing` reads is not.
    """
    try:
        return await _missing_index(_Peek(kept), _Peek(passing))
    except NotIndexableError:
        return None


async def _missing_index(head: "_Peek", walk: "_Peek") -> Insertion | None:
    moov, content = await _find_movie(head)
    movie = parse_movie(content)
    first = await _next_fragment(head, moov.end, head.size_bytes)
    if first is None:
        return None
    listed, end = await _listed(head, movie)
    known = [one for one in listed if first.start <= one.offset < end]
    # the last one listed is looked at again, because a list does not tell when it ends
    walked = await _walked(walk, movie, known.pop().offset if known else first.start, end)
    if known and known[0].offset != first.start:
        raise NotIndexableError
    index = segment_index([*known, *walked], movie=movie, anchor=moov.end, end=end)
    return Insertion(moov.end, end, index)


async def _find_movie(head: "_Peek") -> tuple[Box, bytes]:
    position = 0
    for _ in range(_MOST_BOXES):
        box = box_at(position, await head(position, 16))
        if position == 0 and box.kind != b"ftyp":
            break
        if box.kind == b"moov" and box.size <= _MOST_MOOV_BYTES:
            return box, await head(position, box.size)
        if box.kind in {b"moov", b"mdat", b"moof"}:
            break
        position = box.end
    raise NotIndexableError


async def _next_fragment(read: "_Peek", position: int, end: int) -> Box | None:
    """The next moof, unless an index comes first or there is none."""
    for _ in range(_MOST_BOXES):
        if position > end:
            # cut off: that is for others to find and to tell
            raise NotIndexableError
        if position + 16 > end:
            return None
        box = box_at(position, await read(position, 16))
        if box.kind == b"moof":
            return box
        if box.kind in {b"sidx", b"mfra", b"moov"}:
            return None
        position = box.end
    raise NotIndexableError


async def _listed(read: "_Peek", movie: Movie) -> tuple[list[Fragment], int]:
    """What an mfra at the end of the file lists, and where the fragments end."""
    size = read.size_bytes
    tail = await read(size - 16, 16)
    length = int.from_bytes(tail[12:], "big")
    if tail[4:8] != b"mfro" or not 16 < length <= min(size, _MOST_INDEX_BYTES):
        return [], size
    content = await read(size - length, length)
    if box_at(size - length, content).kind != b"mfra":
        return [], size
    return parse_random_access(content, movie), size - length


async def _walked(read: "_Peek", movie: Movie, position: int, end: int) -> list[Fragment]:
    """The fragments from `position` on, each asked for itself."""
    found = list[Fragment]()
    give_up_at = time.monotonic() + _WALK_SECONDS
    while True:
        box = await _next_fragment(read, position, end)
        if box is None:
            break
        if len(found) >= _MOST_FRAGMENTS or time.monotonic() > give_up_at or box.size > _MOST_MOOV_BYTES:
            raise NotIndexableError
        found.append(parse_fragment(await read(box.start, box.size), box.start, movie))
        # the next one will be much like it: it and the header behind it come with one request
        read.least_bytes = box.size + box.size // 4 + 16
        position = box.end
    if not found:
        raise NotIndexableError
    return found


class _Peek:
    """Small reads one behind the other, most of them out of what the one before brought along."""

    def __init__(self, reader: RangeReader) -> None:
        self.size_bytes = reader.size_bytes
        #: of a request
        self.least_bytes = _HEAD_BYTES
        self._reader = reader
        self._window = ByteRange(0, 0)
        self._content = b""

    async def __call__(self, position: int, length: int) -> bytes:
        end = min(position + length, self.size_bytes)
        if position < self._window.start or end > self._window.end:
            limit = min(max(end, position + self.least_bytes), self.size_bytes)
            async with aclosing(self._reader.read(position, limit)) as chunks:
                self._content = b"".join([chunk async for chunk in chunks])
            self._window = ByteRange(position, limit)
        return self._content[position - self._window.start : end - self._window.start]
