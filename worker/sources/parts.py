"""The parts of a presentation as children see them: our own playlist, and resources opened when they are asked for."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from worker.errors import SourceUnsupported, UpstreamFailure
from worker.sources.base import public_label
from worker.sources.gateway import UnknownPartError
from worker.sources.http import HttpOrigin
from worker.sources.m3u8 import write_master, write_track
from worker.sources.presentation import Part, Presentation
from worker.sources.ranges import RangeReader
from worker.sources.resume import RESUME_DELAYS

#: where children begin to read
ENTRY: Final = "main.m3u8"
#: ffmpeg reads one segment of each track and asks for the next; each may hold a spool file
_KEPT_OPEN: Final = 8


class TextReader:
    """A RangeReader over bytes in memory."""

    is_remote = False
    etag: str | None = None

    def __init__(self, content: bytes) -> None:
        self.size_bytes = len(content)
        self._content = content

    async def read(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        yield self._content[start:end]


class StretchReader:
    """A stretch of another reader as a resource of its own: ffmpeg loses its way in lists with byte ranges."""

    def __init__(self, reader: RangeReader, part: Part) -> None:
        length = reader.size_bytes - part.start if part.length is None else part.length
        if not 0 < length <= reader.size_bytes - part.start:
            raise SourceUnsupported(f"{public_label(part.url)} ends before a byte range that is said to lie in it")
        self.size_bytes = length
        self.etag = reader.etag
        self.is_remote = reader.is_remote
        self._reader = reader
        self._start = part.start

    def read(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        return self._reader.read(self._start + start, self._start + end)


class PartShelf:
    """Everything that a presentation's tracks name, under short names; use as `async with`."""

    def __init__(
        self, origin: HttpOrigin, presentation: Presentation, *, resume_delays: Sequence[float] = RESUME_DELAYS
    ) -> None:
        self._origin = origin
        self._resume_delays = resume_delays
        self._names: dict[Part, str] = {}
        self._texts = self._write(presentation)
        self._parts = {name: part for part, name in self._names.items()}
        #: open resources by their URL, the longest unused first
        self._slots: OrderedDict[str, _Slot] = OrderedDict()

    async def __aenter__(self) -> "PartShelf":
        return self

    async def __aexit__(self, *_: object) -> None:
        for slot in self._slots.values():
            await slot.stack.aclose()

    @asynccontextmanager
    async def open(self, name: str) -> AsyncIterator[RangeReader]:
        if name in self._texts:
            yield TextReader(self._texts[name])
            return
        if (part := self._parts.get(name)) is None:
            raise UnknownPartError
        slot = self._slots.setdefault(part.url, _Slot())
        self._slots.move_to_end(part.url)
        slot.users += 1
        try:
            async with slot.lock:
                slot.reader = slot.reader or await self._find(part.url, slot.stack)
            yield slot.reader if part.length is None else StretchReader(slot.reader, part)
        finally:
            slot.users -= 1
            await self._put_away()

    def _write(self, presentation: Presentation) -> dict[str, bytes]:
        if presentation.audio is None:
            texts = {ENTRY: write_track(presentation.main, self._name_of)}
        else:
            texts = {
                ENTRY: write_master("picture.m3u8", "sound.m3u8"),
                "picture.m3u8": write_track(presentation.main, self._name_of),
                "sound.m3u8": write_track(presentation.audio, self._name_of),
            }
        return {name: text.encode() for name, text in texts.items()}

    def _name_of(self, part: Part) -> str:
        # ffmpeg takes the suffix seriously; this one is right for every format that segments have
        return self._names.setdefault(part, f"{len(self._names)}.ts")

    async def _find(self, url: str, stack: AsyncExitStack) -> RangeReader:
        for delay in (*self._resume_delays, None):
            try:
                found = await self._origin.find(url, stack)
            except UpstreamFailure:
                if delay is None:
                    raise
                await asyncio.sleep(delay)
            else:
                if found.playlist is not None:
                    raise SourceUnsupported(f"{public_label(url)} is a playlist where a segment should be")
                return found.reader
        raise AssertionError("the last try returns or raises")

    async def _put_away(self) -> None:
        while len(self._slots) > _KEPT_OPEN:
            idle = next((url for url, slot in self._slots.items() if slot.users == 0), None)
            if idle is None:
                return
            await self._slots.pop(idle).stack.aclose()


class _Slot:
    """One resource while it is open."""

    def __init__(self) -> None:
        self.reader: RangeReader | None = None
        self.stack = AsyncExitStack()
        self.lock = asyncio.Lock()
        self.users = 0
