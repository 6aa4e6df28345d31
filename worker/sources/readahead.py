"""Reads a remote source in pieces, several at once while its reader goes straight on: many origins are slow on
each connection but not on all of them together.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Hashable, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Final, Self

from worker.sources.ranges import ByteRange, RangeReader
from worker.sources.resume import RESUME_DELAYS, resumed
from worker.sources.spans import SpanCache
from worker.sources.window import LEAST_PIECE_BYTES, Window

# What is handed on at a time: the window opens by what was taken, so it should not be taken in large gulps.
_CHUNK_BYTES: Final = 64 * 1024
# A read that goes on for longer is one of pictures and sound, which nobody asks for twice.
_KEPT_OF_A_READ_BYTES: Final = 8 * 1024 * 1024


# What takes longer was not nearly here.
_NEARLY_HERE_SECONDS: Final = 1.0


class ReadAhead:
    """A RangeReader in front of another: parallel, resuming, and with a memory of what it fetched.

    A piece that fails does so when the reader gets to it, with its own error. Bytes in memory are bounded by the
    window for each read and by the cache for all.
    """

    is_remote = True

    def __init__(
        self,
        reader: RangeReader,
        cache: SpanCache,
        source: Hashable,
        *,
        resume_delays: Sequence[float] = RESUME_DELAYS,
    ) -> None:
        self.size_bytes = reader.size_bytes
        self.etag = reader.etag
        self._reader = reader
        self._cache = cache
        self._source = source
        self._resume_delays = resume_delays
        self._window = Window()
        # small pieces whose reader left: they are nearly here, and demuxers that jump to and fro come back for them
        self._left: list[_Piece] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        """When this returns, nothing is on its way any more."""
        for piece in self._left:
            piece.task.cancel()
        await asyncio.gather(*(piece.task for piece in self._left), return_exceptions=True)

    async def read(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        run = _Run(ByteRange(start, end), self)
        try:
            async with aclosing(run.chunks()) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            await run.stop()

    def next_piece(
        self, body: ByteRange, *, taken: int, ahead: int, in_flight: int, waiting: int
    ) -> ByteRange | bytes | None:
        """What to read at the start of `body`: bytes that are known, else a range to fetch, else nothing yet."""
        if known := self._cache.get(self._source, body.start):
            return known[: body.length] if ahead == 0 else None
        if ahead and self._arriving(body.start):
            return None
        size = self._window.next_piece_bytes(taken=taken, outstanding=ahead, in_flight=in_flight, waiting=waiting)
        if size == 0:
            return None
        gap_end = self._cache.gap_end(self._source, body.start)
        next_left = min((piece.span.start for piece in self._left if piece.span.start > body.start), default=body.end)
        return ByteRange(body.start, min(body.start + size, body.end, gap_end or body.end, next_left))

    def leave(self, piece: "_Piece") -> None:
        """Its reader is gone."""
        if piece.task.done() or piece.span.length > LEAST_PIECE_BYTES:
            piece.task.cancel()
            return
        self._left.append(piece)
        asyncio.get_running_loop().call_later(_NEARLY_HERE_SECONDS, piece.task.cancel)
        piece.task.add_done_callback(lambda _: self._arrived(piece))

    async def wait_for(self, position: int) -> None:
        """What a reader who left had asked for is not asked for again."""
        if piece := self._arriving(position):
            await asyncio.wait([piece.task])

    def _arriving(self, position: int) -> "_Piece | None":
        return next((piece for piece in self._left if piece.span.start <= position < piece.span.end), None)

    def _arrived(self, piece: "_Piece") -> None:
        self._left.remove(piece)
        self.keep(piece.span.start, b"".join(piece.received))
        if not piece.task.cancelled():
            piece.task.exception()  # whoever still wants these bytes meets it again

    def fetch(self, span: ByteRange, run: "_Run") -> AsyncGenerator[bytes, None]:
        def narrow() -> None:
            self._window.narrow()
            run.draw_in()

        return resumed(self._reader, span.start, span.end, delays=self._resume_delays, on_busy=narrow)

    def keep(self, start: int, content: bytes) -> None:
        self._cache.put(self._source, start, content)


class _Run:
    """One read without a seek."""

    def __init__(self, body: ByteRange, ahead: ReadAhead) -> None:
        self._body = body
        self._ahead = ahead
        self._taken = self._planned = body.start
        # where the row of fetched bytes began that leads to the reader: out of the cache it starts anew
        self._row_start = body.start
        self._pieces: deque[_Piece] = deque()
        self._dropped: list[asyncio.Task[None]] = []

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        while self._taken < self._body.end:
            if not self._pieces:
                await self._ahead.wait_for(self._taken)
            known = self._plan()
            content = known or await self._pieces[0].next()
            if content is None:
                self._keep(self._pieces.popleft())
                continue
            for start in range(0, len(content), _CHUNK_BYTES):
                chunk = content[start : start + _CHUNK_BYTES]
                yield chunk
                # only now: who comes back for more has taken it
                self._taken += len(chunk)
            if known:
                self._row_start = self._planned = self._taken

    async def stop(self) -> None:
        """Nobody reads on: large pieces are dropped, small ones come to their end by themselves."""
        for piece in self._pieces:
            self._ahead.leave(piece)
            self._keep(piece)
        dropped = [*self._dropped, *(piece.task for piece in self._pieces if piece.task.cancelling())]
        await asyncio.gather(*dropped, return_exceptions=True)

    def draw_in(self) -> None:
        """Drop all requests that run ahead of the one the reader waits for; what they brought is kept."""
        while len(self._pieces) > 1:
            piece = self._pieces.pop()
            piece.task.cancel()
            self._dropped.append(piece.task)
            self._ahead.keep(piece.span.start, b"".join(piece.received))
            self._planned = piece.span.start

    def _plan(self) -> bytes | None:
        """Send the requests that are due; or the bytes to go on with, if they are known already."""
        while self._planned < self._body.end:
            piece = self._ahead.next_piece(
                ByteRange(self._planned, self._body.end),
                taken=self._taken - self._row_start,
                ahead=self._planned - self._taken,
                in_flight=sum(not piece.task.done() for piece in self._pieces),
                waiting=sum(piece.task.done() for piece in islice(self._pieces, 1, None)),
            )
            if not isinstance(piece, ByteRange):
                return piece
            self._pieces.append(_Piece(piece, self._ahead.fetch(piece, self)))
            self._planned = piece.end
        return None

    def _keep(self, piece: "_Piece") -> None:
        if piece.span.start - self._body.start < _KEPT_OF_A_READ_BYTES:
            self._ahead.keep(piece.span.start, b"".join(piece.received))


class _Piece:
    """A request that runs by itself: it waits for the origin, never for the reader."""

    def __init__(self, span: ByteRange, chunks: AsyncGenerator[bytes, None]) -> None:
        self.span = span
        self.received: list[bytes] = []
        self._unread: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.task = asyncio.create_task(self._fetch(chunks))

    async def next(self) -> bytes | None:
        """Bytes as they come, None behind the last; or the error that the request ended with."""
        chunk = await self._unread.get()
        if chunk is None:
            await self.task
        return chunk

    async def _fetch(self, chunks: AsyncGenerator[bytes, None]) -> None:
        try:
            async with aclosing(chunks):
                async for chunk in chunks:
                    self.received.append(chunk)
                    self._unread.put_nowait(chunk)
        finally:
            self._unread.put_nowait(None)
