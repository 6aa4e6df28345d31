"""http(s) sources: read by ranges where the origin can, else taken once to a spool file."""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Hashable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from aiohttp.abc import AbstractResolver

from worker.errors import SourceUnsupported, UpstreamFailure
from worker.sources.address import AddressPolicy
from worker.sources.base import OpenedSource, public_label
from worker.sources.gateway import Gateway
from worker.sources.http_client import Guise, HttpClient, HttpTimeouts, http_client, plea_for_less, status_error
from worker.sources.playlist import PlaylistKind, playlist_kind
from worker.sources.ranges import ByteRange, RangeReader, delivered_range
from worker.sources.slots import HostSlots
from worker.sources.spool import spooled


@dataclass(frozen=True, slots=True)
class Spool:
    """Where, and how much of, an origin without ranges may be kept while it is open."""

    directory: Path
    max_bytes: int


class HttpSource:
    schemes = frozenset({"http", "https"})

    def __init__(
        self,
        gateway: Gateway,
        *,
        policy: AddressPolicy,
        spool: Spool,
        timeouts: HttpTimeouts | None = None,
        resolver: AbstractResolver | None = None,
        slots: HostSlots | None = None,
        open_playlist: "OpenPlaylist | None" = None,
    ) -> None:
        self._gateway = gateway
        self._policy = policy
        self._spool = spool
        self._timeouts = timeouts or HttpTimeouts()
        self._resolver = resolver
        self._slots = slots or HostSlots()
        self._open_playlist = open_playlist
        # costs some 20 ms to load: once, not per job
        self._tls = ssl.create_default_context()

    @asynccontextmanager
    async def open(self, url: str, guise: Guise | None = None) -> AsyncIterator[OpenedSource]:
        async with self.connect(guise) as origin, AsyncExitStack() as stack:
            found = await origin.find(url, stack)
            if found.playlist is not None and self._open_playlist is not None:
                opening = self._open_playlist(origin, url, found.playlist)
            else:
                opening = self._gateway.publish(
                    found.reader, label=public_label(url), identity=found.identity, add_index=True
                )
            yield await stack.enter_async_context(opening)

    @asynccontextmanager
    async def connect(self, guise: Guise | None = None) -> AsyncIterator["HttpOrigin"]:
        async with http_client(
            self._policy,
            timeouts=self._timeouts,
            tls=self._tls,
            resolver=self._resolver,
            slots=self._slots,
            guise=guise,
        ) as client:
            yield HttpOrigin(client, self._spool)


class HttpOrigin:
    """What can be read over one client."""

    def __init__(self, client: HttpClient, spool: Spool) -> None:
        self.client = client
        self._spool = spool
        #: what was kept so far: a film in many parts may keep no more than one in a single file
        self._spooled_bytes = 0

    async def find(self, url: str, stack: AsyncExitStack) -> "Found":
        """Ask for one byte: the answer tells the size, and whether the origin serves ranges at all."""
        label = public_label(url)
        async with self.client.get(url, {"Range": "bytes=0-0"}) as response:
            if response.status == 416:
                raise SourceUnsupported(f"{label} is empty (0 bytes)")
            if response.status not in {200, 206}:
                raise status_error(response.status, label) from plea_for_less(response)
            require_identity(response, label)
            reader = await self._reader(url, response, stack)
            identity = _identity(response, reader)
            first = b"" if response.status == 200 else await self._first_chunk(response, label)
        if reader.size_bytes == 0:
            raise SourceUnsupported(f"{label} is empty (0 bytes)")
        return Found(reader, identity, await playlist_kind(reader, first[:1]))

    async def _first_chunk(self, response: aiohttp.ClientResponse, label: str) -> bytes:
        async with aclosing(self.client.body(response, label)) as chunks:
            return await anext(chunks, b"")

    async def _reader(self, url: str, response: aiohttp.ClientResponse, stack: AsyncExitStack) -> RangeReader:
        label, pin = public_label(url), _Pin.of(response)
        delivered = delivered_range(response.headers.get("Content-Range"))
        if response.status == 206 and delivered is not None:
            return HttpRangeReader(self.client, url, size_bytes=delivered[1], pin=pin)
        if response.status == 200:
            body, left = self.client.body(response, label), self._spool.max_bytes - self._spooled_bytes
            reader = await stack.enter_async_context(
                spooled(body, self._spool.directory, max_bytes=left, etag=pin.etag)
            )
            self._spooled_bytes += reader.size_bytes
            return reader
        raise SourceUnsupported(f"{label} answers range requests without saying its size")


@dataclass(frozen=True, slots=True)
class Found:
    reader: RangeReader
    #: names these very bytes, if the origin promises that they stay the same
    identity: Hashable | None
    #: set when it is no media but names where media is
    playlist: PlaylistKind | None


#: opens the playlist at a URL, which reads through the origin
OpenPlaylist = Callable[[HttpOrigin, str, PlaylistKind], AbstractAsyncContextManager[OpenedSource]]


def require_identity(response: aiohttp.ClientResponse, label: str) -> None:
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise SourceUnsupported(f"{label} is only served compressed")


def _identity(response: aiohttp.ClientResponse, reader: RangeReader) -> Hashable | None:
    tag = _Pin.of(response).strong_etag
    # where it really lies, query and all: nothing less names these bytes alone
    return (str(response.url), reader.size_bytes, tag) if tag and reader.is_remote else None


@dataclass(frozen=True, slots=True)
class _Pin:
    """What must stay the same from the first request to the last."""

    etag: str | None
    last_modified: str | None

    @classmethod
    def of(cls, response: aiohttp.ClientResponse) -> "_Pin":
        return cls(response.headers.get("ETag"), response.headers.get("Last-Modified"))

    @property
    def strong_etag(self) -> str | None:
        """Only this one promises that not a byte differs."""
        return self.etag if self.etag and not self.etag.startswith("W/") else None

    @property
    def condition(self) -> dict[str, str]:
        # RFC 9110 forbids weak tags in If-Range
        validator = self.strong_etag or self.last_modified
        return {"If-Range": validator} if validator else {}

    def holds_for(self, response: aiohttp.ClientResponse) -> bool:
        # a 206 may leave out what the request's condition already settled
        now = _Pin.of(response)
        if self.etag and now.etag:
            return self.etag == now.etag
        return not (self.last_modified and now.last_modified) or self.last_modified == now.last_modified


class HttpRangeReader:
    is_remote = True

    def __init__(self, client: HttpClient, url: str, *, size_bytes: int, pin: _Pin) -> None:
        self.size_bytes = size_bytes
        self.etag = pin.etag
        self._client = client
        self._url = url
        self._label = public_label(url)
        self._pin = pin

    async def read(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        headers = {"Range": f"bytes={start}-{end - 1}", **self._pin.condition}
        async with self._client.get(self._url, headers) as response:
            self._require(response, ByteRange(start, end))
            missing = end - start
            async for chunk in self._client.body(response, self._label):
                yield chunk[:missing]
                missing -= len(chunk)
                if missing <= 0:
                    return
        raise UpstreamFailure(f"{self._label} sent {missing} bytes less than it announced")

    def _require(self, response: aiohttp.ClientResponse, wanted: ByteRange) -> None:
        if response.status not in {200, 206, 412, 416}:
            raise status_error(response.status, self._label) from plea_for_less(response)
        delivered = delivered_range(response.headers.get("Content-Range"))
        # 200 is the answer to an If-Range that no longer holds, 416 that of a source which shrank
        same = response.status == 206 and self._pin.holds_for(response) and delivered is not None
        if not same or delivered is None or delivered[1] != self.size_bytes:
            raise UpstreamFailure(f"{self._label} changed while it was read")
        if delivered[0].start != wanted.start:
            raise UpstreamFailure(f"{self._label} sent other bytes than it was asked for")
