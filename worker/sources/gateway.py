"""The loopback server through which children read remote sources: the only way they reach the network."""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext
from types import TracebackType

from aiohttp import web

from worker.errors import JobError
from worker.sources.base import OpenedSource, Traffic
from worker.sources.indexed import IndexedReader, Insertion, missing_index
from worker.sources.meter import MeteredReader
from worker.sources.ranges import ByteRange, RangeReader, UnsatisfiableRangeError, requested_range
from worker.sources.readahead import ReadAhead
from worker.sources.resume import RESUME_DELAYS
from worker.sources.spans import SpanCache

#: opens what lies under a name for the length of one answer, or raises UnknownPartError
OpenReader = Callable[[str], AbstractAsyncContextManager[RangeReader]]

# Children die before the gateway closes; whoever still reads then is cut off.
_CLOSE_SECONDS = 1.0
# What lies in a socket when its reader leaves was fetched in vain.
_SEND_BUFFER_BYTES = 64 * 1024


class UnknownPartError(LookupError):
    """The source has nothing under that name: the answer is 404."""


class Gateway:
    """Serves open sources under unguessable paths of 127.0.0.1; use as `async with`.

    A body that cannot be completed ends in a reset connection, never in a short answer, and its cause is kept
    in the source's `traffic`: ffmpeg may take even a reset for the end of the media. After a failure nothing
    more is served.
    """

    def __init__(self, *, max_bytes: int | None = None, resume_delays: Sequence[float] = RESUME_DELAYS) -> None:
        self._max_bytes = max_bytes
        self._resume_delays = resume_delays
        self._cache = SpanCache()
        self._published: dict[str, _Publication] = {}
        self._runner: web.AppRunner | None = None
        self._base_url = ""

    async def __aenter__(self) -> "Gateway":
        app = web.Application()
        app.router.add_get("/{token}", self._answer)
        app.router.add_get("/{token}/{name}", self._answer)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            # a reader that seeks drops its connection: stop reading upstream for it at once
            handler_cancellation=True,
            shutdown_timeout=_CLOSE_SECONDS,
        )
        await self._runner.setup()
        await web.SockSite(self._runner, _loopback_socket()).start()
        self._base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @asynccontextmanager
    async def publish(
        self, reader: RangeReader, *, label: str, identity: Hashable | None = None, add_index: bool = False
    ) -> AsyncIterator[OpenedSource]:
        """Serve `reader` for the length of the block; on leaving it nobody reads from it any more.

        `identity` names these very bytes: what was read of them, an index above all, then serves later blocks too.
        `add_index` looks whether it is fragmented MP4 without an index, and gives it one.
        """
        token = secrets.token_urlsafe(32)
        # what is no longer remote was fetched whole
        traffic = Traffic(bytes_fetched=0 if reader.is_remote else reader.size_bytes)
        try:
            async with (
                self._prepared(reader, traffic, identity or token, label=label, add_index=add_index) as ready,
                self._serving(token, lambda _: nullcontext(ready), traffic) as address,
            ):
                yield OpenedSource(
                    label, address, ("http", "tcp"), size_bytes=ready.size_bytes, etag=ready.etag, traffic=traffic
                )
        finally:
            self._cache.forget(token)
            self._cache.forget((token, "index"))

    @asynccontextmanager
    async def publish_many(self, open_reader: OpenReader, *, label: str, entry: str) -> AsyncIterator[OpenedSource]:
        """The same for a source of many parts, opened as they are asked for; reading begins with the one at `entry`."""
        token, traffic, names = secrets.token_urlsafe(32), Traffic(), set[str]()

        @asynccontextmanager
        async def opened(name: str) -> AsyncIterator[RangeReader]:
            names.add(name)
            async with (
                open_reader(name) as reader,
                self._prepared(reader, traffic, (token, name), label=label, add_index=False) as ready,
            ):
                yield ready

        try:
            async with self._serving(token, opened, traffic) as address:
                yield OpenedSource(label, f"{address}/{entry}", ("http", "tcp"), size_bytes=0, traffic=traffic)
        finally:
            for name in names:
                self._cache.forget((token, name))

    @asynccontextmanager
    async def _serving(self, token: str, open_reader: OpenReader, traffic: Traffic) -> AsyncIterator[str]:
        publication = self._published[token] = _Publication(open_reader, traffic)
        try:
            yield f"{self._base_url}/{token}"
        finally:
            del self._published[token]
            await publication.close()

    @asynccontextmanager
    async def _prepared(
        self, reader: RangeReader, traffic: Traffic, source: Hashable, *, label: str, add_index: bool
    ) -> AsyncIterator[RangeReader]:
        """What costs the origin something is counted, remembered, and read ahead."""
        if not reader.is_remote:
            yield reader
            return
        metered = MeteredReader(reader, traffic, max_bytes=self._max_bytes, label=label)
        async with ReadAhead(metered, self._cache, source, resume_delays=self._resume_delays) as ahead:
            insertion = await self._missing_index(ahead, metered, source) if add_index else None
            yield IndexedReader(ahead, insertion) if insertion else ahead

    async def _missing_index(self, kept: RangeReader, origin: RangeReader, source: Hashable) -> Insertion | None:
        if packed := self._cache.get((source, "index"), 0):
            return Insertion.unpack(packed)
        # thousands of crumbs, which would tear later reads into pieces: not for the cache
        async with ReadAhead(origin, SpanCache(0), source, resume_delays=self._resume_delays) as passing:
            insertion = await missing_index(kept, passing)
        if insertion:
            self._cache.put((source, "index"), 0, insertion.pack())
        return insertion

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        publication = self._published.get(request.match_info["token"])
        if publication is None:
            raise web.HTTPNotFound
        return await publication.answer(request)


def _loopback_socket() -> socket.socket:
    listening = socket.create_server(("127.0.0.1", 0))
    # connections inherit it
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    return listening


class _Publication:
    def __init__(self, open_reader: OpenReader, traffic: Traffic) -> None:
        self.traffic = traffic
        self._open_reader = open_reader
        self._connections: set[asyncio.Transport] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    async def close(self) -> None:
        for connection in self._connections:
            connection.abort()
        await self._idle.wait()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        if transport is None:
            raise ConnectionResetError
        self._connections.add(transport)
        self._idle.clear()
        try:
            if self.traffic.failure is not None:
                raise web.HTTPBadGateway
            async with self._open_reader(request.match_info.get("name", "")) as reader:
                return await self._answer_from(reader, request, transport)
        except UnknownPartError:
            raise web.HTTPNotFound from None
        except JobError as exc:
            # nothing was sent yet: the part could not even be opened
            self.traffic.failure = self.traffic.failure or exc
            raise web.HTTPBadGateway from exc
        finally:
            self._connections.discard(transport)
            if not self._connections:
                self._idle.set()

    async def _answer_from(
        self, reader: RangeReader, request: web.Request, transport: asyncio.Transport
    ) -> web.StreamResponse:
        response, body = await self._begin(request, reader.size_bytes)
        try:
            await self._send(response, reader, body)
        except (JobError, ConnectionError) as exc:
            if isinstance(exc, JobError):
                self.traffic.failure = self.traffic.failure or exc
            transport.abort()
        return response

    async def _begin(self, request: web.Request, size: int) -> tuple[web.StreamResponse, ByteRange]:
        """Send the head of the answer; what is left to send is its body."""
        try:
            wanted = requested_range(request.headers.get("Range"), size)
        except UnsatisfiableRangeError:
            raise web.HTTPRequestRangeNotSatisfiable(headers={"Content-Range": f"bytes */{size}"}) from None
        served = wanted or ByteRange(0, size)
        response = web.StreamResponse(status=206 if wanted else 200, headers={"Accept-Ranges": "bytes"})
        # neutral on purpose: the content decides the format, not what an origin calls it
        response.content_type = "application/octet-stream"
        response.content_length = served.length
        if wanted:
            response.headers["Content-Range"] = f"bytes {served.start}-{served.end - 1}/{size}"
        await response.prepare(request)
        return response, ByteRange(0, 0) if request.method == "HEAD" else served

    async def _send(self, response: web.StreamResponse, reader: RangeReader, body: ByteRange) -> None:
        async with aclosing(reader.read(body.start, body.end)) as chunks:
            async for chunk in chunks:
                self.traffic.bytes_served += len(chunk)
                await response.write(chunk)
