"""An HTTP origin that means harm: it speaks as no real server would, byte by byte if need be."""

import asyncio
import gzip
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache

Answer = Callable[["HostileOrigin", asyncio.StreamWriter, dict[str, str]], Awaitable[None]]

ENDLESS_BYTES = 1 << 50


class HostileOrigin:
    """Serves `files` by ranges under their names, and everything in ANSWERS its own way."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.port = 0
        self.files: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.requests: list[str] = []
        self._talks: set[asyncio.Task[None]] = set()
        self.headers: list[dict[str, str]] = []

    @property
    def base(self) -> str:
        return f"http://{self.host}:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        assert talk is not None
        self._talks.add(talk)
        try:
            await self._talk(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            writer.close()
            with suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()
            self._talks.discard(talk)

    async def hang_up(self) -> None:
        """Some of its answers never end by themselves."""
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            name = head[0].split(" ")[1].lstrip("/").partition("?")[0]
            self.requests.append(name)
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
            self.headers.append(headers)
            if name in self.redirects:
                await say(writer, 302, {"Location": self.redirects[name], "Content-Length": "0"})
            elif name in self.files:
                await ranged(self.files[name], len(self.files[name]), writer, headers)
            elif name in ANSWERS:
                await ANSWERS[name](self, writer, headers)
                return
            else:
                await say(writer, 404, {"Content-Length": "0"})


async def say(writer: asyncio.StreamWriter, status: int, headers: dict[str, str]) -> None:
    lines = [f"HTTP/1.1 {status} x", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    writer.write("\r\n".join(lines).encode())
    await writer.drain()


async def ranged(content: bytes, size: int, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    """A well-behaved range answer; `content` repeats itself up to `size`."""
    first, last = re.fullmatch(r"bytes=(\d+)-(\d*)", headers.get("range", "bytes=0-")).groups()  # type: ignore[union-attr]
    start, end = int(first), min(size, int(last) + 1) if last else size
    told = {"Content-Length": str(end - start), "ETag": '"1"'}
    if "range" in headers:
        told["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    await say(writer, 206 if "range" in headers else 200, told)
    while start < end:
        offset = start % len(content)
        chunk = content[offset : offset + min(1 << 18, end - start)]
        writer.write(chunk)
        await writer.drain()
        start += len(chunk)


async def endless_body(origin: HostileOrigin, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    await say(writer, 200, {"Connection": "close"})
    while True:
        writer.write(bytes(1 << 18))
        await writer.drain()


async def endless_film(origin: HostileOrigin, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    await ranged(origin.files["film.ts"], ENDLESS_BYTES, writer, headers)


async def endless_sound(origin: HostileOrigin, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    await ranged(origin.files["sound.mp3"], ENDLESS_BYTES, writer, headers)


@cache
def bomb(megabytes: int) -> bytes:
    return gzip.compress(bytes(megabytes << 20), 1)


async def gzip_bomb(origin: HostileOrigin, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    body = bomb(200)
    await say(writer, 200, {"Content-Encoding": "gzip", "Content-Length": str(len(body))})
    writer.write(body)
    await writer.drain()


async def gzip_bomb_in_ranges(origin: HostileOrigin, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    body = bomb(50)
    told = {"Content-Range": f"bytes 0-0/{len(body)}", "Content-Length": "1", "Content-Encoding": "gzip"}
    await say(writer, 206, told)
    writer.write(body[:1])
    await writer.drain()


async def huge_header(origin: HostileOrigin, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    await say(writer, 200, {"X-Long": "x" * (64 << 20), "Content-Length": "0"})


async def endless_headers(origin: HostileOrigin, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    writer.write(b"HTTP/1.1 200 x\r\n")
    while True:
        writer.write(b"X-Again: %s\r\n" % (b"y" * 4000))
        await writer.drain()


async def dripping_head(origin: HostileOrigin, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    writer.write(b"HTTP/1.1 200 x\r\nX: ")
    while True:
        writer.write(b"z")
        await writer.drain()
        await asyncio.sleep(0.2)


async def dripping_body(origin: HostileOrigin, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    await say(writer, 200, {"Content-Length": "100000000"})
    while True:
        writer.write(b"z")
        await writer.drain()
        await asyncio.sleep(0.2)


async def dripping_ranges(origin: HostileOrigin, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    if headers.get("range") == "bytes=0-0":
        await ranged(bytes(1 << 20), ENDLESS_BYTES, writer, headers)
        return
    await say(writer, 206, {"Content-Range": f"bytes 0-{ENDLESS_BYTES - 1}/{ENDLESS_BYTES}", "Connection": "close"})
    while True:
        writer.write(b"\0")
        await writer.drain()
        await asyncio.sleep(0.2)


async def short_body(origin: HostileOrigin, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    content = origin.files["film.mp4"]
    await say(writer, 200, {"Content-Length": str(len(content) * 4)})
    writer.write(content)
    await writer.drain()


async def claims_more(origin: HostileOrigin, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    """Sends less than each range it announces."""
    content = origin.files["film.mp4"]
    if headers.get("range") == "bytes=0-0":
        await ranged(content, len(content), writer, headers)
        return
    size = len(content)
    await say(writer, 206, {"Content-Range": f"bytes 0-{size - 1}/{size}", "Content-Length": str(size), "ETag": '"1"'})
    writer.write(content[:100])
    await writer.drain()


async def negative_length(origin: HostileOrigin, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    await say(writer, 200, {"Content-Length": "-5"})


async def other_range(origin: HostileOrigin, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    """Answers every question with the same four bytes."""
    await say(writer, 206, {"Content-Range": "bytes 7-10/99999", "Content-Length": "4"})
    writer.write(b"moov")
    await writer.drain()


async def slams_the_door(origin: HostileOrigin, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    writer.transport.abort()


async def no_http(origin: HostileOrigin, writer: asyncio.StreamWriter, headers: dict[str, str]) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n" * 1000)
    await writer.drain()


ANSWERS: dict[str, Answer] = {
    f"{answer.__name__}.mp4": answer
    for answer in (
        endless_body, endless_film, endless_sound, gzip_bomb, gzip_bomb_in_ranges, huge_header, endless_headers,
        dripping_head, dripping_body, dripping_ranges, short_body, claims_more, negative_length, other_range,
        slams_the_door, no_http,
    )
}  # fmt: skip


@asynccontextmanager
async def hostile_origin(host: str) -> AsyncIterator[HostileOrigin]:
    origin = HostileOrigin(host)
    for megabytes in (50, 200):
        # takes a second or two, in which nobody else would be answered
        bomb(megabytes)
    server = await asyncio.start_server(origin.serve, host, 0, limit=1 << 20)
    origin.port = server.sockets[0].getsockname()[1]
    try:
        yield origin
    finally:
        server.close()
        await origin.hang_up()
