"""A loopback proxy for programs that go to the web by themselves: whatever they ask for is judged like a source."""

import asyncio
import base64
import hmac
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import unquote, urlsplit

from aiohttp.abc import AbstractResolver
from aiohttp.resolver import ThreadedResolver

from worker.sources.address import AddressPolicy

_CONNECT_SECONDS: Final = 10.0
_HEAD_SECONDS: Final = 10.0
_CHUNK_BYTES: Final = 64 * 1024
_REQUEST_LINE: Final = re.compile(rb"([A-Z]{1,16}) (\S{1,16384}) HTTP/1\.[01]")
#: between one hop and the next; the rest goes on as it is
_HOP_HEADERS: Final = (b"proxy-", b"connection:", b"keep-alive:")

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _RefusedError(PermissionError):
    """The name leads to addresses that the policy forbids."""


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    host: str
    port: int
    #: what goes on to the origin; empty for a tunnel
    head: bytes


class GuardProxy:
    """Answers on 127.0.0.1 to whoever knows its secret; use as `async with`.

    Names are resolved here, once a connection, and the address that was judged is the one connected to, also when
    an upstream proxy makes the connection.
    """

    def __init__(
        self,
        policy: AddressPolicy,
        *,
        resolver: AbstractResolver | None = None,
        upstream: str | None = None,
        max_bytes: int | None = None,
    ) -> None:
        self._policy = policy
        self._resolver = resolver or ThreadedResolver()
        self._upstream = upstream
        self._bytes_left = max_bytes
        self._secret = secrets.token_urlsafe(32)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        #: whether anything was asked for that the policy forbids
        self.has_refused = False

    @property
    def url(self) -> str:
        """With its secret: not for command lines nor logs."""
        assert self._server is not None, "the proxy is not running"
        return f"http://clipboss:{self._secret}@127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> "GuardProxy":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_CHUNK_BYTES)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None, "the proxy is not running"
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, TimeoutError, EOFError, asyncio.LimitOverrunError):
                await self._forward(reader, writer)
        finally:
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        if not self._knows_secret(head):
            await _say(writer, b"407 Proxy Authentication Required")
            return
        request = _parse(head)
        if request is None:
            await _say(writer, b"400 Bad Request")
            return
        try:
            origin = await self._connect(request)
        except _RefusedError:
            self.has_refused = True
            await _say(writer, b"403 Forbidden")
        except (OSError, TimeoutError, EOFError):
            await _say(writer, b"502 Bad Gateway")
        else:
            await self._splice((reader, writer), origin, request)

    def _knows_secret(self, head: bytes) -> bool:
        given = re.search(rb"(?im)^proxy-authorization:\s*basic\s+(\S+)\s*$", head)
        known = base64.b64encode(f"clipboss:{self._secret}".encode())
        return given is not None and hmac.compare_digest(given.group(1), known)

    async def _connect(self, request: _Request) -> Streams:
        async with asyncio.timeout(_CONNECT_SECONDS):
            allowed = [each for each in await self._addresses(request) if self._policy.allows(each)]
            if not allowed:
                raise _RefusedError
            if self._upstream is None:
                return await asyncio.open_connection(allowed[0], request.port)
            return await _through(self._upstream, allowed[0], request.port)

    async def _addresses(self, request: _Request) -> list[str]:
        try:
            return [str(ip_address(request.host))]
        except ValueError:
            return [answer["host"] for answer in await self._resolver.resolve(request.host, request.port)]

    async def _splice(self, client: Streams, origin: Streams, request: _Request) -> None:
        try:
            if request.head:
                origin[1].write(request.head)
                client[1].write(await _final_head(origin[0]))
            else:
                await _say(client[1], b"200 Connection established", closes=False)
            ways = [
                asyncio.create_task(self._copy(client[0], origin[1])),
                asyncio.create_task(self._copy(origin[0], client[1])),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            origin[1].close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(_CHUNK_BYTES):
            if self._bytes_left is not None:
                self._bytes_left -= len(chunk)
                if self._bytes_left < 0:
                    raise ConnectionAbortedError
            writer.write(chunk)
            await writer.drain()


def _parse(head: bytes) -> _Request | None:
    line, *headers = head.rstrip().split(b"\r\n")
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        return None
    method, target = match.group(1).decode(), match.group(2).decode("latin-1")
    try:
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or (method == "CONNECT") is (parts.scheme == "http"):
        return None
    if method == "CONNECT":
        return _Request(method, host, port or 443, b"")
    path = target[target.index(parts.netloc) + len(parts.netloc) :]
    kept = [header for header in headers if not header.lower().startswith(_HOP_HEADERS)]
    first = f"{method} {path if path.startswith('/') else '/' + path} HTTP/1.1".encode("latin-1")
    return _Request(method, host, port or 80, b"\r\n".join([first, *kept, b"Connection: close", b"", b""]))


async def _final_head(origin: asyncio.StreamReader) -> bytes:
    """The head of an answer, with the word that no other request may follow: it could be for another host."""
    while re.match(rb"HTTP/1\.[01] 1\d\d", head := await origin.readuntil(b"\r\n\r\n")):
        pass
    kept = [line for line in head.rstrip().split(b"\r\n") if not line.lower().startswith(_HOP_HEADERS)]
    return b"\r\n".join([*kept, b"Connection: close", b"", b""])


async def _through(upstream: str, address: str, port: int) -> Streams:
    """A tunnel to `address` made by another proxy."""
    parts = urlsplit(upstream)
    assert parts.hostname is not None, "settings have checked it"
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    target = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if parts.username is not None:
        account = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(account.encode()).decode()}")
    try:
        writer.write("\r\n".join([*lines, "", ""]).encode())
        _require_tunnel(await reader.readuntil(b"\r\n\r\n"))
    except BaseException:
        writer.close()
        raise
    return reader, writer


def _require_tunnel(answer: bytes) -> None:
    if not re.match(rb"HTTP/1\.[01] 200\b", answer):
        raise ConnectionRefusedError


async def _say(writer: asyncio.StreamWriter, status: bytes, *, closes: bool = True) -> None:
    more = b"Content-Length: 0\r\nConnection: close\r\n" if closes else b""
    writer.write(b"HTTP/1.1 " + status + b"\r\n" + more + b"\r\n")
    await writer.drain()
