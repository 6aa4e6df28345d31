"""The gateway as children see it."""

import asyncio
import logging
from collections.abc import AsyncGenerator

import aiohttp
import pytest

from worker.errors import SourceTooLarge, UpstreamFailure
from worker.sources.gateway import Gateway

CONTENT = bytes(range(256)) * 4096


class Memory:
    size_bytes = len(CONTENT)
    etag = '"v1"'
    is_remote = True

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        self.fail_at: int | None = None
        self.produced = 0

    async def read(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        try:
            for position in range(start, end, 65536):
                if self.fail_at is not None and position >= self.fail_at:
                    raise UpstreamFailure("the origin went away")
                chunk = CONTENT[position : min(end, position + 65536)]
                self.produced += len(chunk)
                yield chunk
        finally:
            self.closed.set()


@pytest.mark.parametrize(
    ("header", "status", "body", "content_range"),
    [
        (None, 200, CONTENT, None),
        ("bytes=0-", 206, CONTENT, f"bytes 0-{len(CONTENT) - 1}/{len(CONTENT)}"),
        ("bytes=1000-1999", 206, CONTENT[1000:2000], f"bytes 1000-1999/{len(CONTENT)}"),
        ("bytes=-10", 206, CONTENT[-10:], f"bytes {len(CONTENT) - 10}-{len(CONTENT) - 1}/{len(CONTENT)}"),
        ("bytes=99999999-", 416, None, f"bytes */{len(CONTENT)}"),
    ],
)
async def test_ranges_are_served(
    gateway: Gateway,
    child: aiohttp.ClientSession,
    header: str | None,
    status: int,
    body: bytes | None,
    content_range: str | None,
) -> None:
    headers = {"Range": header} if header else {}
    async with (
        gateway.publish(Memory(), label="x") as source,
        child.get(source.input, headers=headers) as answer,
    ):
        assert answer.status == status
        assert answer.headers.get("Content-Range") == content_range
        if body is not None:
            assert answer.headers["Accept-Ranges"] == "bytes"
            assert await answer.read() == body
            assert source.traffic.bytes_served == len(body)
    assert source.failure() is None


async def test_head_tells_the_size(gateway: Gateway, child: aiohttp.ClientSession) -> None:
    async with gateway.publish(Memory(), label="x") as source:
        async with child.head(source.input) as answer:
            assert (answer.status, answer.content_length) == (200, len(CONTENT))
        assert source.size_bytes == len(CONTENT)
        assert source.traffic.bytes_served == 0


async def test_only_loopback_listens_and_only_the_token_opens(gateway: Gateway, child: aiohttp.ClientSession) -> None:
    async with gateway.publish(Memory(), label="x") as source:
        base, _, token = source.input.rpartition("/")
        assert base.startswith("http://127.0.0.1:")
        assert len(token) >= 40
        for guess in ("", "x", token[:-1], f"{token}/", f"../{token}x"):
            async with child.get(f"{base}/{guess}") as answer:
                assert answer.status == 404
        async with child.put(source.input, data=b"x") as answer:
            assert answer.status == 405


async def test_token_dies_with_the_source(gateway: Gateway, child: aiohttp.ClientSession) -> None:
    async with gateway.publish(Memory(), label="x") as source:
        pass
    async with child.get(source.input) as answer:
        assert answer.status == 404


async def test_failure_cuts_the_body_and_is_remembered(
    gateway: Gateway, child: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    memory = Memory()
    memory.fail_at = 131072
    with caplog.at_level(logging.WARNING):
        async with gateway.publish(memory, label="x") as source:
            with pytest.raises(aiohttp.ClientError):
                async with child.get(source.input) as answer:
                    await answer.read()
            assert str(source.failure()) == "the origin went away"
            async with child.get(source.input) as answer:
                assert answer.status == 502
    assert caplog.records == []


async def test_reader_that_leaves_stops_the_upstream_read(gateway: Gateway, child: aiohttp.ClientSession) -> None:
    memory = Memory()
    async with gateway.publish(memory, label="x") as source:
        async with child.get(source.input) as answer:
            await answer.content.readexactly(10)
            answer.close()
        async with asyncio.timeout(5):
            await memory.closed.wait()
        assert source.failure() is None


async def test_slow_reader_does_not_make_the_gateway_buffer(gateway: Gateway) -> None:
    memory = Memory()
    memory.size_bytes = 1 << 40

    async def endless(start: int, end: int) -> AsyncGenerator[bytes, None]:
        try:
            for _ in range(start, end, 65536):
                memory.produced += 65536
                yield bytes(65536)
        finally:
            memory.closed.set()

    memory.read = endless  # type: ignore[method-assign]
    async with gateway.publish(memory, label="x") as source:
        _, port_and_path = source.input.removeprefix("http://").split(":")
        port, _, path = port_and_path.partition("/")
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port), limit=1024)
        writer.write(f"GET /{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        before, quiet = -1, 0
        async with asyncio.timeout(10):
            while quiet < 5:
                await asyncio.sleep(0.02)
                quiet = quiet + 1 if memory.produced == before else 0
                before = memory.produced
        assert memory.produced < 4 << 20
        writer.close()
        del reader


async def test_closing_the_source_cuts_off_its_readers(gateway: Gateway, child: aiohttp.ClientSession) -> None:
    memory = Memory()
    started = asyncio.Event()

    async def stuck(start: int, end: int) -> AsyncGenerator[bytes, None]:
        try:
            yield b"x"
            started.set()
            await asyncio.Event().wait()
        finally:
            memory.closed.set()

    memory.read = stuck  # type: ignore[method-assign]
    async with gateway.publish(memory, label="x") as source:
        answer = await child.get(source.input)
        await started.wait()
    assert memory.closed.is_set()
    with pytest.raises(aiohttp.ClientError):
        await answer.read()
    assert source.failure() is None


async def test_source_that_outgrows_its_limit_is_cut_off(child: aiohttp.ClientSession) -> None:
    async with Gateway(max_bytes=len(CONTENT) - 1000) as gateway, gateway.publish(Memory(), label="x") as source:
        async with child.get(source.input, headers={"Range": "bytes=0-499999"}) as answer:
            assert await answer.read() == CONTENT[:500000]
        with pytest.raises(aiohttp.ClientError):
            async with child.get(source.input) as answer:
                await answer.read()
        assert isinstance(source.failure(), SourceTooLarge)
        assert source.traffic.bytes_fetched > len(CONTENT) - 1000
