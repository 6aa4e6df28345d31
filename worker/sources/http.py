"""http(s) sources: read by ranges where the origin can, else taken once to a spool file."""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from aiohttp.abc import AbstractResolver

from worker.errors import SourceUnsupported, UpstreamFailure
from worker.sources.address import AddressPolicy
from worker.sources.base import OpenedSource, public_label
from worker.sources.gateway import Gateway
from worker.sources.http_client import HttpClient, HttpTimeouts, explain, http_client, status_error
from worker.sources.ranges import ByteRange, RangeReader, delivered_range
from worker.sources.spool import spooled

_CHUNK_BYTES = 256 * 1024


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
    ) -> None:
        self._gateway = gateway
        self._policy = policy
        self._spool = spool
        self._timeouts = timeouts or HttpTimeouts()
        self._resolver = resolver
        # costs some 20 ms to load: once, not per job
        self._tls = ssl.create_default_context()

    @asynccontextmanager
    async def open(self, url: str) -> AsyncIterator[OpenedSource]:
        label = public_label(url)
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(
                http_client(self._policy, timeouts=self._timeouts, tls=self._tls, resolver=self._resolver)
            )
            reader = await self._learn(client, url, stack)
            if reader.size_bytes == 0:
                raise SourceUnsupported(f"{label} is empty (0 bytes)")
            yield await stack.enter_async_context(self._gateway.publish(reader, label=label))

    async def _learn(self, client: HttpClient, url: str, stack: AsyncExitStack) -> RangeReader:
        """Ask for one byte: the answer tells the size and whether the origin serves ranges at all."""
        label = public_label(url)
        async with client.get(url, {"Range": "bytes=0-0"}) as response:
            if response.status == 416:
                raise SourceUnsupported(f"{label} is empty (0 bytes)")
            if response.status not in {200, 206}:
                raise status_error(response.status, label)
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise SourceUnsupported(f"{label} is only served compressed")
            pin = _Pin.of(response)
            delivered = delivered_range(response.headers.get("Content-Range"))
            if response.status == 206 and delivered is not None:
                return HttpRangeReader(client, url, size_bytes=delivered[1], pin=pin)
            if response.status == 200:
                body = _body(response, label)
                spool = self._spool
                return await stack.enter_async_context(
                    spooled(body, spool.directory, max_bytes=spool.max_bytes, etag=pin.etag)
                )
        raise SourceUnsupported(f"{label} answers range requests without saying its size")


@dataclass(frozen=True, slots=True)
class _Pin:
    """What must stay the same from the first request to the last."""

    etag: str | None
    last_modified: str | None

    @classmethod
    def of(cls, response: aiohttp.ClientResponse) -> "_Pin":
        return cls(response.headers.get("ETag"), response.headers.get("Last-Modified"))

    @property
    def condition(self) -> dict[str, str]:
        # RFC 9110 forbids weak tags in If-Range
        strong = self.etag if self.etag and not self.etag.startswith("W/") else None
        validator = strong or self.last_modified
        return {"If-Range": validator} if validator else {}

    def holds_for(self, response: aiohttp.ClientResponse) -> bool:
        # a 206 may leave out what the request's condition already settled
        now = _Pin.of(response)
        if self.etag and now.etag:
            return self.etag == now.etag
        return not (self.last_modified and now.last_modified) or self.last_modified == now.last_modified


class HttpRangeReader:
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
            async for chunk in _body(response, self._label):
                yield chunk[:missing]
                missing -= len(chunk)
                if missing <= 0:
                    return
        raise UpstreamFailure(f"{self._label} sent {missing} bytes less than it announced")

    def _require(self, response: aiohttp.ClientResponse, wanted: ByteRange) -> None:
        if response.status not in {200, 206, 412, 416}:
            raise status_error(response.status, self._label)
        delivered = delivered_range(response.headers.get("Content-Range"))
        # 200 is the answer to an If-Range that no longer holds, 416 that of a source which shrank
        same = response.status == 206 and self._pin.holds_for(response) and delivered is not None
        if not same or delivered is None or delivered[1] != self.size_bytes:
            raise UpstreamFailure(f"{self._label} changed while it was read")
        if delivered[0].start != wanted.start:
            raise UpstreamFailure(f"{self._label} sent other bytes than it was asked for")


async def _body(response: aiohttp.ClientResponse, label: str) -> AsyncGenerator[bytes, None]:
    try:
        async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
            yield chunk
    except (aiohttp.ClientError, TimeoutError, OSError) as exc:
        raise explain(exc, label) from exc
