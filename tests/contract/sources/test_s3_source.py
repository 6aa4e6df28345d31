"""s3:// sources on a real S3 server."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace

import aiohttp
import pytest

from tests.servers import S3Server
from worker.errors import InvalidRequest, JobError, SourceForbidden, SourceNotFound, SourceUnsupported, UpstreamFailure
from worker.s3 import S3Connection, S3Options
from worker.sources.gateway import Gateway
from worker.sources.s3 import S3Source

CONTENT = os.urandom(900_000)


@pytest.fixture
def options(s3_server: S3Server) -> S3Options:
    return S3Options(
        endpoint_url=s3_server.endpoint_url,
        access_key_id=s3_server.access_key,
        secret_access_key=s3_server.secret_key,
    )


@pytest.fixture
async def s3_source(gateway: Gateway, options: S3Options) -> AsyncIterator[S3Source]:
    connection = S3Connection(options)
    yield S3Source(gateway, connection)
    await connection.close()


async def refusal(source: S3Source, url: str) -> JobError:
    with pytest.raises(JobError) as caught:
        async with source.open(url):
            pass
    return caught.value


@pytest.mark.parametrize("key", ["talks/talk.mp4", "odd/a b+c%20d?e#f=ü.mp4"])
async def test_object_is_read_by_ranges_through_the_gateway(
    s3_source: S3Source, s3_server: S3Server, child: aiohttp.ClientSession, key: str
) -> None:
    s3_server.client().put_object(Bucket=s3_server.bucket, Key=key, Body=CONTENT)
    async with s3_source.open(f"s3://{s3_server.bucket}/{key}") as source:
        assert source.label == f"s3://{s3_server.bucket}/{key}"
        assert source.input.startswith("http://127.0.0.1:")
        assert source.size_bytes == len(CONTENT)
        async with child.get(source.input, headers={"Range": "bytes=1000-300999"}) as answer:
            assert await answer.read() == CONTENT[1000:301000]
        async with child.get(source.input) as answer:
            assert await answer.read() == CONTENT
        assert source.failure() is None


async def test_object_that_changes_while_read_is_noticed(
    s3_source: S3Source, s3_server: S3Server, child: aiohttp.ClientSession
) -> None:
    client = s3_server.client()
    client.put_object(Bucket=s3_server.bucket, Key="changing.mp4", Body=CONTENT)
    async with s3_source.open(f"s3://{s3_server.bucket}/changing.mp4") as source:
        client.put_object(Bucket=s3_server.bucket, Key="changing.mp4", Body=CONTENT[::-1])
        with pytest.raises(aiohttp.ClientError):
            async with child.get(source.input) as answer:
                await answer.read()
        assert isinstance(source.failure(), UpstreamFailure)
        assert "changed while it was read" in str(source.failure())


async def test_missing_object_and_bucket_are_not_found(s3_source: S3Source, s3_server: S3Server) -> None:
    assert isinstance(await refusal(s3_source, f"s3://{s3_server.bucket}/nothing.mp4"), SourceNotFound)
    assert isinstance(await refusal(s3_source, "s3://no-such-bucket/x.mp4"), SourceNotFound)


async def test_empty_object_is_refused(s3_source: S3Source, s3_server: S3Server) -> None:
    s3_server.client().put_object(Bucket=s3_server.bucket, Key="empty.mp4", Body=b"")
    assert isinstance(await refusal(s3_source, f"s3://{s3_server.bucket}/empty.mp4"), SourceUnsupported)


@pytest.mark.parametrize("change", [{"secret_access_key": "wrong"}, {"access_key_id": "nobody"}])
async def test_bad_keys_are_forbidden(
    gateway: Gateway, options: S3Options, s3_server: S3Server, change: dict[str, str]
) -> None:
    connection = S3Connection(replace(options, **change))
    failure = await refusal(S3Source(gateway, connection), f"s3://{s3_server.bucket}/x.mp4")
    assert isinstance(failure, SourceForbidden)
    assert "AWS_* keys" in str(failure)
    await connection.close()


async def test_server_that_is_down_is_an_upstream_failure(gateway: Gateway) -> None:
    connection = S3Connection(S3Options("http://127.0.0.1:9", access_key_id="a", secret_access_key="b"))
    assert isinstance(await refusal(S3Source(gateway, connection), "s3://media/x.mp4"), UpstreamFailure)
    await connection.close()


@pytest.mark.parametrize("url", ["s3://", "s3://bucket", "s3://bucket/", "s3:///key", "s3://B AD/x"])
async def test_url_without_bucket_or_key_is_invalid(s3_source: S3Source, url: str) -> None:
    assert isinstance(await refusal(s3_source, url), InvalidRequest)


async def test_object_is_fetched_in_parallel_pieces_and_its_head_once_by_all_jobs(
    s3_source: S3Source, s3_server: S3Server, child: aiohttp.ClientSession
) -> None:
    film = os.urandom(9_000_000)
    s3_server.client().put_object(Bucket=s3_server.bucket, Key="film.mp4", Body=film)
    for fetched in (len(film), len(film) - (8 << 20)):
        async with s3_source.open(f"s3://{s3_server.bucket}/film.mp4") as source:
            async with child.get(source.input) as answer:
                assert await answer.read() == film
            assert source.failure() is None
            assert source.traffic.bytes_fetched <= fetched


async def test_reader_that_leaves_an_object_leaves_no_task(
    s3_source: S3Source, s3_server: S3Server, child: aiohttp.ClientSession
) -> None:
    s3_server.client().put_object(Bucket=s3_server.bucket, Key="left.mp4", Body=bytes(9_000_000))
    before = len(asyncio.all_tasks())
    async with s3_source.open(f"s3://{s3_server.bucket}/left.mp4") as source, child.get(source.input) as answer:
        await answer.content.readexactly(2_000_000)
        answer.close()
    async with asyncio.timeout(5):
        while len(asyncio.all_tasks()) > before:
            await asyncio.sleep(0.01)
    assert source.failure() is None
