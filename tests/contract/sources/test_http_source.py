"""http(s) sources against a real, sometimes misbehaving, origin."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.contract.sources.conftest import MakeHttpSource
from tests.servers import RangeServer, range_server
from worker.errors import (
    InvalidRequest,
    JobError,
    SourceForbidden,
    SourceNotFound,
    SourceTooLarge,
    SourceUnsupported,
    UpstreamFailure,
)
from worker.sources.address import AddressPolicy
from worker.sources.http import HttpSource

CONTENT = os.urandom(700_000)


@pytest.fixture
async def origin(tmp_path: Path) -> AsyncIterator[RangeServer]:
    root = tmp_path / "www"
    root.mkdir()
    (root / "talk.mp4").write_bytes(CONTENT)
    (root / "empty.mp4").touch()
    async with range_server(root) as server:
        yield server


async def read(child: aiohttp.ClientSession, url: str, span: str | None = None) -> bytes:
    async with child.get(url, headers={"Range": f"bytes={span}"} if span else {}) as answer:
        assert answer.status in {200, 206}
        return await answer.read()


async def refusal(source: HttpSource, url: str) -> JobError:
    with pytest.raises(JobError) as caught:
        async with source.open(url):
            pass
    return caught.value


async def test_only_the_asked_range_travels(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession
) -> None:
    async with http_source.open(origin.url("talk.mp4")) as source:
        assert (source.size_bytes, source.etag, source.protocols) == (len(CONTENT), '"v1"', ("http", "tcp"))
        assert await read(child, source.input, "5000-5999") == CONTENT[5000:6000]
        assert await read(child, source.input, "-5") == CONTENT[-5:]
    # one byte to learn the size, and the head, to see what it is
    assert origin.bytes_sent == 1 + 4096 + 1000 + 5


async def test_query_reaches_the_origin_but_not_the_label(http_source: HttpSource, origin: RangeServer) -> None:
    async with http_source.open(origin.url("talk.mp4") + "?sig=a%2Fb") as source:
        assert source.label == origin.url("talk.mp4")
        assert "sig" not in source.input
    assert origin.requests[0][0] == "/talk.mp4?sig=a%2Fb"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (404, SourceNotFound),
        (410, SourceNotFound),
        (401, SourceForbidden),
        (403, SourceForbidden),
        (451, SourceForbidden),
        (408, UpstreamFailure),
        (425, UpstreamFailure),
        (429, UpstreamFailure),
        (500, UpstreamFailure),
        (503, UpstreamFailure),
        (400, SourceUnsupported),
        (405, SourceUnsupported),
    ],
)
async def test_status_becomes_an_error_without_the_query(
    http_source: HttpSource, origin: RangeServer, status: int, error: type[JobError]
) -> None:
    origin.status = status
    failure = await refusal(http_source, origin.url("talk.mp4") + "?token=hush")
    assert type(failure) is error
    assert str(status) in str(failure)
    assert "hush" not in str(failure)


@pytest.mark.parametrize("ranges", [True, False])
async def test_empty_source_is_refused(http_source: HttpSource, origin: RangeServer, ranges: bool) -> None:
    origin.ranges = ranges
    failure = await refusal(http_source, origin.url("empty.mp4"))
    assert isinstance(failure, SourceUnsupported)
    assert "0 bytes" in str(failure)


async def test_refused_connection_is_an_upstream_failure(http_source: HttpSource) -> None:
    assert isinstance(await refusal(http_source, "http://127.0.0.1:9/x"), UpstreamFailure)


async def test_silent_origin_times_out(make_source: MakeHttpSource, origin: RangeServer) -> None:
    origin.delay_seconds = 30
    failure = await refusal(make_source(read_seconds=0.2), origin.url("talk.mp4"))
    assert isinstance(failure, UpstreamFailure)
    assert "in time" in str(failure)


async def test_plain_http_on_an_https_url_is_an_upstream_failure(http_source: HttpSource, origin: RangeServer) -> None:
    assert isinstance(await refusal(http_source, origin.url("x").replace("http:", "https:")), UpstreamFailure)


@pytest.mark.parametrize("url", ["http://", "http:///x", "http://host:99999/x", "http://a b/x"])
async def test_url_without_a_usable_host_is_invalid(http_source: HttpSource, url: str) -> None:
    assert isinstance(await refusal(http_source, url), InvalidRequest | SourceNotFound)


async def test_origin_without_ranges_is_taken_once(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession, tmp_path: Path
) -> None:
    origin.ranges = False
    async with http_source.open(origin.url("talk.mp4")) as source:
        assert source.size_bytes == len(CONTENT)
        assert await read(child, source.input, "1000-1999") == CONTENT[1000:2000]
        assert await read(child, source.input) == CONTENT
        assert list((tmp_path / "spool").iterdir()) == []
    assert len(origin.requests) == 1


async def test_origin_without_ranges_has_a_limit(make_source: MakeHttpSource, origin: RangeServer) -> None:
    origin.ranges = False
    failure = await refusal(make_source(max_bytes=100_000), origin.url("talk.mp4"))
    assert isinstance(failure, SourceTooLarge)
    assert "100000 bytes" in str(failure)


async def test_download_that_breaks_off_is_not_taken_for_whole(http_source: HttpSource, origin: RangeServer) -> None:
    origin.ranges, origin.cut_after = False, 300_000
    assert isinstance(await refusal(http_source, origin.url("talk.mp4")), UpstreamFailure)


async def test_broken_connection_is_resumed_where_it_broke(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession
) -> None:
    origin.cut_after, origin.cuts_left = 100_000, 2
    async with http_source.open(origin.url("talk.mp4")) as source:
        assert await read(child, source.input) == CONTENT
        assert source.failure() is None
    assert [span for _, span in origin.requests][2:6] == [
        "bytes=4096-135167",
        "bytes=104096-135167",
        "bytes=135168-266239",
        "bytes=235168-266239",
    ]
    assert source.traffic.bytes_fetched == len(CONTENT)


async def test_origin_that_keeps_breaking_is_an_upstream_failure(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession
) -> None:
    async with http_source.open(origin.url("talk.mp4")) as source:
        origin.cut_after = 1000
        with pytest.raises(aiohttp.ClientError):
            await read(child, source.input)
        assert isinstance(source.failure(), UpstreamFailure)
    assert len(origin.requests) == 2 + 1 + 3


@pytest.mark.parametrize("etag", ['"v1"', 'W/"v1"', None])
async def test_source_that_changes_while_read_is_noticed(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession, etag: str | None
) -> None:
    origin.etag = etag
    async with http_source.open(origin.url("talk.mp4")) as source:
        # with a tag even a film of the same size is told apart, without one only its size can tell
        (origin.root / "talk.mp4").write_bytes(CONTENT[::-1] if etag else CONTENT + b"x")
        origin.etag = etag and etag.replace("v1", "v2")
        with pytest.raises(aiohttp.ClientError):
            await read(child, source.input)
        assert isinstance(source.failure(), UpstreamFailure)
        assert "changed while it was read" in str(source.failure())


@pytest.mark.parametrize(("etag", "condition"), [('"v1"', '"v1"'), ('W/"v1"', None), (None, None)])
async def test_reads_are_tied_to_the_version_that_was_opened(
    http_source: HttpSource,
    origin: RangeServer,
    child: aiohttp.ClientSession,
    etag: str | None,
    condition: str | None,
) -> None:
    origin.etag = etag
    async with http_source.open(origin.url("talk.mp4")) as source:
        assert await read(child, source.input, "10-19") == CONTENT[10:20]
    assert origin.conditions == [None, condition]


async def test_redirects_are_followed(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession
) -> None:
    async with (
        range_server(origin.root, redirect=origin.url("talk.mp4")) as front,
        http_source.open(front.url("short")) as source,
    ):
        assert source.label == front.url("short")
        assert await read(child, source.input, "10-19") == CONTENT[10:20]


async def test_endless_redirects_end(http_source: HttpSource, origin: RangeServer) -> None:
    origin.redirect = origin.url("talk.mp4")
    failure = await refusal(http_source, origin.url("talk.mp4"))
    assert isinstance(failure, SourceUnsupported)
    assert len(origin.requests) == 6


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://x/y", "gopher://127.0.0.1/", "data:,x"])
async def test_redirect_to_another_scheme_is_forbidden(
    http_source: HttpSource, origin: RangeServer, target: str
) -> None:
    origin.redirect = target
    assert isinstance(await refusal(http_source, origin.url("x")), SourceForbidden)


async def test_redirect_to_nonsense_is_an_answer(http_source: HttpSource, origin: RangeServer) -> None:
    origin.redirect = "http://[half"
    assert isinstance(await refusal(http_source, origin.url("x")), SourceUnsupported)


class Answers(aiohttp.abc.AbstractResolver):
    """A name server of our own; each name may change its mind, as a rebinding attacker's does."""

    def __init__(self, **addresses: list[list[str]]) -> None:
        self.addresses = addresses
        self.asked = 0

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_INET) -> list[dict[str, object]]:
        found = self.addresses.get(host.partition(".")[0])
        if found is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        self.asked += 1
        answer = found.pop(0) if len(found) > 1 else found[0]
        return [
            {"hostname": host, "host": address, "port": port, "proto": 0, "flags": socket.AI_NUMERICHOST,
             "family": socket.AF_INET6 if ":" in address else socket.AF_INET}
            for address in answer
        ]  # fmt: skip

    async def close(self) -> None:
        pass


async def test_unknown_name_is_not_found(make_source: MakeHttpSource) -> None:
    failure = await refusal(make_source(resolver=Answers()), "http://nobody.example/x")
    assert isinstance(failure, SourceNotFound)
    assert "no host" in str(failure)


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["10.1.2.3", "127.0.0.1"], ["::1"], ["169.254.169.254"], ["::ffff:127.0.0.1", "192.168.0.1"]],
)
async def test_name_of_private_addresses_is_forbidden(
    make_source: MakeHttpSource, origin: RangeServer, addresses: list[str]
) -> None:
    source = make_source(allow_private=False, resolver=Answers(inside=[addresses]))
    failure = await refusal(source, f"http://inside.example:{origin.port}/talk.mp4")
    assert isinstance(failure, SourceForbidden)
    assert "ALLOW_PRIVATE_SOURCES" in str(failure)
    assert origin.requests == []


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1", "[::1]",
     "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "0.0.0.0", "[::]", "①②⑦.0.0.1"],
)  # fmt: skip
async def test_every_spelling_of_loopback_is_refused(
    make_source: MakeHttpSource, origin: RangeServer, host: str
) -> None:
    failure = await refusal(make_source(allow_private=False), f"http://{host}:{origin.port}/talk.mp4")
    assert not failure.retryable
    assert isinstance(failure, SourceForbidden | InvalidRequest | SourceNotFound)
    assert origin.requests == []


async def test_redirect_into_the_machine_is_forbidden(
    make_source: MakeHttpSource, origin: RangeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # one loopback address plays the internet here, so that the redirect's target can be told from it
    monkeypatch.setattr(AddressPolicy, "allows", lambda _, address: address == "127.0.0.2")
    async with range_server(origin.root, redirect=origin.url("talk.mp4"), host="127.0.0.2") as public:
        failure = await refusal(make_source(allow_private=False), public.url("x"))
        assert isinstance(failure, SourceForbidden)
        assert len(public.requests) == 1
    assert origin.requests == []


async def test_name_is_resolved_once_so_it_cannot_rebind(
    make_source: MakeHttpSource, origin: RangeServer, child: aiohttp.ClientSession
) -> None:
    names = Answers(rebinding=[["127.0.0.1"], ["127.0.0.99"]])
    origin.cut_after, origin.cuts_left = 100_000, 3
    async with make_source(resolver=names).open(f"http://rebinding.example:{origin.port}/talk.mp4") as source:
        assert await read(child, source.input) == CONTENT
    assert names.asked == 1


async def test_proxy_of_the_environment_is_not_used(
    http_source: HttpSource, origin: RangeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    async with http_source.open(origin.url("talk.mp4")) as source:
        assert source.size_bytes == len(CONTENT)


async def test_closing_while_a_child_reads_leaves_no_task(
    http_source: HttpSource, origin: RangeServer, child: aiohttp.ClientSession
) -> None:
    before = len(asyncio.all_tasks())
    async with http_source.open(origin.url("talk.mp4")) as source:
        answer = await child.get(source.input)
        await answer.content.readexactly(10)
    answer.close()
    async with asyncio.timeout(5):
        while len(asyncio.all_tasks()) > before:
            await asyncio.sleep(0.01)
