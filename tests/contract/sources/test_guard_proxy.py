"""The proxy for programs that go to the web themselves: real requests through it, on loopback."""

import asyncio
import base64
import socket
from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from tests.servers import RangeServer, range_server
from worker.sources.address import AddressPolicy
from worker.sources.guard_proxy import GuardProxy

OPEN = AddressPolicy(allow_private=True)


class Names(AbstractResolver):
    """Each question takes the next answer; the last one stays."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        address = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)]

    async def close(self) -> None:
        pass


@pytest.fixture
async def origin(tmp_path: Path) -> AsyncIterator[RangeServer]:
    (tmp_path / "page.html").write_bytes(b"hello")
    async with range_server(tmp_path) as server:
        yield server


async def get(proxy: str, url: str) -> tuple[int, bytes]:
    async with aiohttp.ClientSession() as session, session.get(url, proxy=proxy) as response:
        return response.status, await response.read()


async def say(proxy: GuardProxy, head: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
    writer.write(head.encode())
    answer = await reader.read(1000)
    writer.close()
    return answer


async def test_an_allowed_page_comes_through(origin: RangeServer) -> None:
    async with GuardProxy(OPEN) as proxy:
        assert await get(proxy.url, origin.url("page.html?a=b")) == (200, b"hello")
    assert origin.requests == [("/page.html?a=b", None)]
    assert not proxy.has_refused


async def test_an_allowed_tunnel_comes_through_also_by_way_of_another_proxy(origin: RangeServer) -> None:
    async with GuardProxy(OPEN) as upstream, GuardProxy(OPEN, upstream=upstream.url) as proxy:
        # a plain request is carried on in a tunnel
        assert await get(proxy.url, origin.url("page.html")) == (200, b"hello")


@pytest.mark.parametrize("method", ["GET http://127.0.0.1:{port}/page.html", "CONNECT 127.0.0.1:{port}"])
async def test_a_private_address_is_refused_and_remembered(origin: RangeServer, method: str) -> None:
    async with GuardProxy(AddressPolicy()) as proxy:
        secret = base64.b64encode(proxy.url.removeprefix("http://").partition("@")[0].encode()).decode()
        line = method.format(port=origin.port)
        answer = await say(proxy, f"{line} HTTP/1.1\r\nProxy-Authorization: Basic {secret}\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 403")
        assert proxy.has_refused
    assert origin.requests == []


@pytest.mark.parametrize("credential", ["", "Proxy-Authorization: Basic Y2xpcGJvc3M6d3Jvbmc=\r\n"])
async def test_strangers_are_not_served(origin: RangeServer, credential: str) -> None:
    async with GuardProxy(OPEN) as proxy:
        answer = await say(proxy, f"GET {origin.url('page.html')} HTTP/1.1\r\n{credential}\r\n")
    assert answer.startswith(b"HTTP/1.1 407")
    assert origin.requests == []


async def test_the_address_that_was_judged_is_the_one_connected_to(origin: RangeServer) -> None:
    names = Names("127.0.0.1", "127.0.0.9")
    policy = AddressPolicy(private_networks=(ip_network("127.0.0.1/32"),))
    async with GuardProxy(policy, resolver=names) as proxy:
        assert await get(proxy.url, f"http://changes.test:{origin.port}/page.html") == (200, b"hello")
        status, _ = await get(proxy.url, f"http://changes.test:{origin.port}/page.html")
    assert status == 403
    assert len(origin.requests) == 1


async def test_no_more_is_carried_than_is_allowed(origin: RangeServer, tmp_path: Path) -> None:
    (tmp_path / "large.bin").write_bytes(bytes(1_000_000))
    async with GuardProxy(OPEN, max_bytes=200_000) as proxy:
        with pytest.raises(aiohttp.ClientError):
            await get(proxy.url, origin.url("large.bin"))


async def test_leaving_it_ends_connections_that_are_still_open(origin: RangeServer) -> None:
    origin.delay_seconds = 30
    async with GuardProxy(OPEN) as proxy:
        waiting = asyncio.create_task(get(proxy.url, origin.url("page.html")))
        while not origin.requests:
            await asyncio.sleep(0.01)
    with pytest.raises(aiohttp.ClientError):
        await asyncio.wait_for(waiting, 5)
