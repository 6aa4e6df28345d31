"""The loopback server through which children read remote sources: the only way they reach the network."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from types import TracebackType

from aiohttp import web

from worker.errors import JobError
from worker.sources.base import OpenedSource, Traffic
from worker.sources.ranges import ByteRange, RangeReader, UnsatisfiableRangeError, requested_range
from worker.sources.resume import RESUME_DELAYS, resumed

# Children die before the gateway closes; whoever still reads then is cut off.
_CLOSE_SECONDS = 1.0


class Gateway:
    """Serves open sources under unguessable paths of 127.0.0.1; use as `async with`.

    A body that cannot be completed ends in a reset connection, never in a short answer, and its cause is kept
    in the source's `traffic`: ffmpeg may take even a reset for the end of the media. After a failure nothing
    more is served.
    """

    def __init__(self, *, resume_delays: Sequence[float] = RESUME_DELAYS) -> None:
        self._resume_delays = resume_delays
        self._published: dict[str, _Publication] = {}
        self._runner: web.AppRunner | None = None
        self._base_url = ""

    async def __aenter__(self) -> "Gateway":
        app = web.Application()
        app.router.add_get("/{token}", self._answer)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            # a reader that seeks drops its connection: stop reading upstream for it at once
            handler_cancellation=True,
            shutdown_timeout=_CLOSE_SECONDS,
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    @asynccontextmanager
    async def publish(self, reader: RangeReader, *, label: str) -> AsyncIterator[OpenedSource]:
        """Serve `reader` for the length of the block; on leaving it nobody reads from it any more."""
        token = secrets.token_urlsafe(32)
        publication = _Publication(reader, self._resume_delays)
        self._published[token] = publication
        try:
            yield OpenedSource(
                label,
                f"{self._base_url}/{token}",
                ("http", "tcp"),
                size_bytes=reader.size_bytes,
                etag=reader.etag,
                traffic=publication.traffic,
            )
        finally:
            del self._published[token]
            await publication.close()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        publication = self._published.get(request.match_info["token"])
        if publication is None:
            raise web.HTTPNotFound
        return await publication.answer(request)


class _Publication:
    def __init__(self, reader: RangeReader, resume_delays: Sequence[float]) -> None:
        self.traffic = Traffic()
        self._reader = reader
        self._resume_delays = resume_delays
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
            response, body = await self._begin(request)
            try:
                await self._send(response, body)
            except (JobError, ConnectionError) as exc:
                if isinstance(exc, JobError):
                    self.traffic.failure = self.traffic.failure or exc
                transport.abort()
            return response
        finally:
            self._connections.discard(transport)
            if not self._connections:
                self._idle.set()

    async def _begin(self, request: web.Request) -> tuple[web.StreamResponse, ByteRange]:
        """Send the head of the answer; what is left to send is its body."""
        if self.traffic.failure is not None:
            raise web.HTTPBadGateway
        size = self._reader.size_bytes
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

    async def _send(self, response: web.StreamResponse, body: ByteRange) -> None:
        chunks = resumed(self._reader, body.start, body.end, delays=self._resume_delays)
        async with aclosing(chunks):
            async for chunk in chunks:
                self.traffic.bytes_served += len(chunk)
                await response.write(chunk)
