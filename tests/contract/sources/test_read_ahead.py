"""Parallel pieces between the gateway and a real origin."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.contract.sources.conftest import MakeHttpSource
from tests.servers import RangeServer, range_server
from worker.errors import UpstreamFailure
from worker.sources.base import OpenedSource
from worker.sources.http import HttpSource
from worker.sources.slots import HostSlots

MEGABYTE = 1 << 20
FILM = os.urandom(12 * MEGABYTE)


@pytest.fixture
async def origin(tmp_path: Path) -> AsyncIterator[RangeServer]:
    root = tmp_path / "www"
    root.mkdir()
    (root / "film.mp4").write_bytes(FILM)
    async with range_server(root) as server:
        yield server


async def read(child: aiohttp.ClientSession, source: OpenedSource, start: int = 0, end: int = len(FILM)) -> bytes:
    async with child.get(source.input, headers={"Range": f"bytes={start}-{end - 1}"}) as answer:
        assert answer.status == 206
        return await answer.read()


async def quiet(origin: RangeServer) -> None:
    """Until nothing was sent for a while."""
    before, still = -1, 0
    async with asyncio.timeout(10):
        while still < 5:
            await asyncio.sleep(0.02)
            still = still + 1 if origin.bytes_sent == before else 0
            before = origin.bytes_sent


async def settled(origin: RangeServer) -> None:
    async with asyncio.timeout(5):
        while origin.in_flight:
            await asyncio.sleep(0.01)


async def test_throttled_origin_is_read_over_several_connections(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession
) -> None:
    origin.bytes_per_second = 8 * MEGABYTE
    async with http_source.open(origin.url("film.mp4")) as source:
        assert await read(child, source) == FILM
        assert source.traffic.bytes_fetched == len(FILM)
    assert 4 <= origin.most_in_flight <= 8


async def test_look_at_a_header_costs_little(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession
) -> None:
    async with http_source.open(origin.url("film.mp4")) as source:
        async with child.get(source.input) as answer:
            assert await answer.content.readexactly(1000) == FILM[:1000]
            answer.close()
        await settled(origin)
    assert origin.bytes_sent < MEGABYTE


async def test_reader_that_stands_still_holds_the_origin_back(http_source: HttpSource, origin: RangeServer) -> None:
    async with http_source.open(origin.url("film.mp4")) as source:
        target = urlsplit(source.input)
        slow = socket.socket()
        # as children do: what the kernel takes in is not in the reader's hands yet
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        slow.setblocking(False)
        await asyncio.get_running_loop().sock_connect(slow, (target.hostname, target.port))
        reader, writer = await asyncio.open_connection(sock=slow, limit=1024)
        writer.write(f"GET {target.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await reader.readexactly(4 * MEGABYTE)
        await quiet(origin)
        assert 4 * MEGABYTE < origin.bytes_sent < 6 * MEGABYTE
        writer.close()


async def test_reader_that_leaves_leaves_no_task_and_no_request(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession
) -> None:
    origin.bytes_per_second = 2 * MEGABYTE
    before = len(asyncio.all_tasks())
    async with http_source.open(origin.url("film.mp4")) as source:
        async with child.get(source.input) as answer:
            await answer.content.readexactly(2 * MEGABYTE)
            # from now on each piece would take many seconds
            origin.bytes_per_second = 5000
            while origin.in_flight < 2:
                await asyncio.sleep(0.01)
            answer.close()
        await settled(origin)
        assert source.failure() is None
    async with asyncio.timeout(5):
        while len(asyncio.all_tasks()) > before:
            await asyncio.sleep(0.01)


async def test_bytes_that_a_reader_comes_back_for_are_not_asked_for_again(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession
) -> None:
    """As demuxers do that read pictures and sound of a fragment in turns."""
    async with http_source.open(origin.url("film.mp4")) as source:
        origin.bytes_per_second = MEGABYTE
        origin.requests.clear()
        for start in (4 * MEGABYTE, 8 * MEGABYTE, 4 * MEGABYTE, 8 * MEGABYTE):
            headers = {"Range": f"bytes={start}-"}
            async with child.get(source.input, headers=headers) as answer:
                assert await answer.content.readexactly(1000) == FILM[start : start + 1000]
                answer.close()
    asked = sorted(tuple(map(int, str(wanted).removeprefix("bytes=").split("-"))) for _, wanted in origin.requests)
    assert all(last < first for (_, last), (first, _) in pairwise(asked))


async def test_pieces_that_break_go_on_where_they_broke(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession
) -> None:
    async with http_source.open(origin.url("film.mp4")) as source:
        origin.cut_after, origin.cuts_left = 70_000, 40
        assert await read(child, source) == FILM
        assert source.failure() is None
        # nothing that had arrived was asked for again
        assert source.traffic.bytes_fetched == len(FILM)
    assert origin.cuts_left == 0


async def test_change_between_two_pieces_is_noticed(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession
) -> None:
    origin.bytes_per_second = 8 * MEGABYTE
    async with http_source.open(origin.url("film.mp4")) as source:
        async with child.get(source.input) as answer:
            await answer.content.readexactly(2 * MEGABYTE)
            origin.etag = '"v2"'
            with pytest.raises(aiohttp.ClientError):
                await answer.read()
        assert isinstance(source.failure(), UpstreamFailure)
        assert "changed while it was read" in str(source.failure())


async def test_origin_that_pleads_for_less_is_read_more_narrowly(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession
) -> None:
    origin.bytes_per_second, origin.busy_above = 8 * MEGABYTE, 2
    async with http_source.open(origin.url("film.mp4")) as source:
        assert await read(child, source) == FILM
        assert source.failure() is None
    # 8 at once became 4, then 2; from then on nothing was refused
    assert 1 <= origin.refusals <= 8


async def test_plea_to_come_back_in_an_hour_is_for_the_next_attempt(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession
) -> None:
    async with http_source.open(origin.url("film.mp4")) as source:
        origin.busy_above, origin.retry_after = 0, "3600"
        with pytest.raises(aiohttp.ClientError):
            await read(child, source)
        assert "HTTP 429" in str(source.failure())
    assert sum(span == "bytes=4096-135167" for _, span in origin.requests) == 1


async def test_jobs_of_one_worker_share_the_places_at_a_host(
    make_source: MakeHttpSource, origin: RangeServer, child: aiohttp.ClientSession
) -> None:
    origin.bytes_per_second, origin.etag = 8 * MEGABYTE, None
    http = make_source(slots=HostSlots(3))
    async with http.open(origin.url("film.mp4")) as one, http.open(origin.url("film.mp4")) as other:
        assert await asyncio.gather(read(child, one), read(child, other)) == [FILM, FILM]
    assert origin.most_in_flight == 3


async def test_bytes_are_fetched_once_in_a_job(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession
) -> None:
    origin.etag = None
    async with http_source.open(origin.url("film.mp4")) as source:
        for _ in range(3):
            assert await read(child, source, 0, 2 * MEGABYTE) == FILM[: 2 * MEGABYTE]
        assert source.traffic.bytes_fetched == 2 * MEGABYTE
        assert source.traffic.bytes_served == 6 * MEGABYTE


@pytest.mark.parametrize(("etag", "fetched"), [('"v1"', 0), ('W/"v1"', MEGABYTE), (None, MEGABYTE)])
async def test_next_job_fetches_nothing_again_if_it_is_surely_the_same(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession, etag: str | None, fetched: int
) -> None:
    origin.etag = etag
    for expected in (MEGABYTE, fetched):
        async with http_source.open(origin.url("film.mp4")) as source:
            assert await read(child, source, 0, MEGABYTE) == FILM[:MEGABYTE]
            assert source.traffic.bytes_fetched == expected


@pytest.mark.parametrize("change", ["etag", "query"])
async def test_another_version_or_query_is_another_source(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession, change: str
) -> None:
    async with http_source.open(origin.url("film.mp4")) as source:
        await read(child, source, 0, MEGABYTE)
    (origin.root / "film.mp4").write_bytes(FILM[::-1])
    origin.etag = '"v2"' if change == "etag" else origin.etag
    async with http_source.open(origin.url("film.mp4") + ("?v=2" if change == "query" else "")) as source:
        assert await read(child, source, 0, MEGABYTE) == FILM[::-1][:MEGABYTE]
