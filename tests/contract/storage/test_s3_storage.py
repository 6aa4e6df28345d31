"""What is true of S3 alone: bad buckets, bad keys, no server, parts that must not stay behind."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.servers import S3Server
from worker.errors import ConfigError, StorageUploadFailed
from worker.s3 import S3Connection, S3Options
from worker.storage.checksums import FileChecksums
from worker.storage.s3 import S3Storage

MakeFile = Callable[[bytes], Path]
NOWHERE = S3Options(endpoint_url="http://127.0.0.1:9", access_key_id="a", secret_access_key="b")


@asynccontextmanager
async def closing(bucket: str, options: S3Options) -> AsyncIterator[S3Storage]:
    storage = S3Storage(bucket, "p", S3Connection(options))
    yield storage
    await storage.close()


async def failures(bucket: str, options: S3Options, path: Path) -> tuple[str, str]:
    async with closing(bucket, options) as storage:
        with pytest.raises(ConfigError) as checked:
            await storage.check()
        with pytest.raises(StorageUploadFailed) as put:
            await storage.put("clip.mp4", path, content_type="video/mp4", metadata={})
    return str(checked.value), str(put.value)


async def test_missing_bucket_is_named(s3_options: S3Options, s3_server: S3Server) -> None:
    async with closing("no-such-bucket", s3_options) as storage:
        with pytest.raises(ConfigError, match="no bucket 'no-such-bucket': create it"):
            await storage.check()
    assert [bucket["Name"] for bucket in s3_server.client().list_buckets()["Buckets"]] == [s3_server.bucket]


async def test_wrong_secret_is_told_apart(s3_options: S3Options, s3_server: S3Server, make_file: MakeFile) -> None:
    wrong = replace(s3_options, secret_access_key="wrong-secret-77")
    for message in await failures(s3_server.bucket, wrong, make_file(b"x")):
        assert "refused access" in message
        assert "AWS_* keys" in message
        assert "wrong-secret-77" not in message


async def test_server_that_is_down_is_told_apart(make_file: MakeFile) -> None:
    for message in await failures("media", NOWHERE, make_file(b"x")):
        assert "does not answer" in message
        assert "S3_ENDPOINT_URL" in message


@pytest.mark.parametrize("endpoint", ["localhost:8333", "nonsense", "http://"])
async def test_endpoint_that_is_no_url_is_named(endpoint: str) -> None:
    async with closing("media", replace(NOWHERE, endpoint_url=endpoint)) as storage:
        with pytest.raises(ConfigError, match="S3_ENDPOINT_URL"):
            await storage.check()


async def test_bucket_name_that_cannot_be_is_a_config_error(s3_options: S3Options) -> None:
    async with closing("Not A Bucket", s3_options) as storage:
        with pytest.raises(ConfigError, match="'Not A Bucket'"):
            await storage.check()


async def test_content_type_and_checksum_reach_the_object(
    s3_options: S3Options, s3_server: S3Server, make_file: MakeFile
) -> None:
    async with closing(s3_server.bucket, s3_options) as storage:
        await storage.put("typed.vtt", make_file(b"WEBVTT"), content_type="text/vtt", metadata={})
    found = s3_server.client().head_object(Bucket=s3_server.bucket, Key="p/typed.vtt", ChecksumMode="ENABLED")
    assert found["ContentType"] == "text/vtt"
    assert found["ChecksumSHA256"]


async def test_cancelled_multipart_upload_leaves_no_parts(
    s3_options: S3Options, s3_server: S3Server, make_file: MakeFile
) -> None:
    client = s3_server.client()

    def uploads() -> list[str]:
        return [item["Key"] for item in client.list_multipart_uploads(Bucket=s3_server.bucket).get("Uploads", [])]

    async with closing(s3_server.bucket, s3_options) as storage:
        path = make_file(os.urandom(150_000_000))
        task = asyncio.create_task(storage.put("big.mp4", path, content_type="video/mp4", metadata={}))
        async with asyncio.timeout(10):
            while "p/big.mp4" not in await asyncio.to_thread(uploads):
                assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await storage.head("big.mp4") is None
    assert uploads() == []


async def test_upload_that_differs_from_what_was_measured_is_noticed(
    s3_options: S3Options, s3_server: S3Server, make_file: MakeFile
) -> None:
    path = make_file(b"what was measured")

    class FileChangesAfterMeasuring(S3Connection):
        async def call(self, do):
            result = await super().call(do)
            if isinstance(result, FileChecksums):
                path.write_bytes(b"what was uploaded")
            return result

    storage = S3Storage(s3_server.bucket, "p", FileChangesAfterMeasuring(s3_options))
    with pytest.raises(StorageUploadFailed, match="does not hold what was sent"):
        await storage.put("changed.mp4", path, content_type="video/mp4", metadata={})
    await storage.close()


async def test_sweep_aborts_uploads_that_were_cut_off(s3_server: S3Server, s3_options: S3Options) -> None:
    client, key = s3_server.client(), "swept/job/clip.mp4"
    upload = client.create_multipart_upload(Bucket=s3_server.bucket, Key=key)["UploadId"]
    client.upload_part(Bucket=s3_server.bucket, Key=key, UploadId=upload, PartNumber=1, Body=b"x")
    storage = S3Storage(s3_server.bucket, "swept", S3Connection(s3_options))
    assert await storage.sweep(older_than_seconds=3600) == 0
    assert await storage.sweep(older_than_seconds=-60) == 1
    assert not client.list_multipart_uploads(Bucket=s3_server.bucket, Prefix="swept/").get("Uploads")
    await storage.close()
