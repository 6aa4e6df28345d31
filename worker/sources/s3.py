"""s3:// sources, signed by the worker: children and their command lines see neither keys nor signed URLs."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from worker.errors import (
    InvalidRequest,
    JobError,
    SourceForbidden,
    SourceNotFound,
    SourceUnsupported,
    UpstreamFailure,
)
from worker.s3 import S3Connection, S3Problem, explain
from worker.sources.base import OpenedSource
from worker.sources.gateway import Gateway
from worker.sources.resume import OriginBusyError
from worker.sources.slots import HostSlots

if TYPE_CHECKING:
    from botocore.response import StreamingBody
    from types_boto3_s3 import S3Client
    from types_boto3_s3.type_defs import GetObjectOutputTypeDef, HeadObjectOutputTypeDef

_CHUNK_BYTES = 256 * 1024
_BUSY_CODES = frozenset({"503", "SlowDown", "ServiceUnavailable", "RequestLimitExceeded", "TooManyRequests", "429"})


class S3Source:
    schemes = frozenset({"s3"})

    def __init__(self, gateway: Gateway, connection: S3Connection, *, slots: HostSlots | None = None) -> None:
        self._gateway = gateway
        self._connection = connection
        self._slots = slots or HostSlots()

    @asynccontextmanager
    async def open(self, url: str) -> AsyncIterator[OpenedSource]:
        bucket, key = _location(url)
        label = f"s3://{bucket}/{key}"

        def head(client: "S3Client") -> "HeadObjectOutputTypeDef":
            return client.head_object(Bucket=bucket, Key=key)

        try:
            found = await self._connection.call(head)
        except (ClientError, BotoCoreError) as exc:
            raise _translate(exc, bucket, label) from exc
        if found["ContentLength"] == 0:
            raise SourceUnsupported(f"{label} is empty (0 bytes)")
        reader = S3RangeReader(self._connection, bucket, key, head=found, slots=self._slots)
        identity = (label, found["ContentLength"], found["ETag"])
        async with self._gateway.publish(reader, label=label, identity=identity, add_index=True) as opened:
            yield opened


class S3RangeReader:
    is_remote = True

    def __init__(
        self,
        connection: S3Connection,
        bucket: str,
        key: str,
        *,
        head: "HeadObjectOutputTypeDef",
        slots: HostSlots | None = None,
    ) -> None:
        self.size_bytes = head["ContentLength"]
        self.etag: str | None = head["ETag"]
        self._connection = connection
        self._bucket = bucket
        self._key = key
        self._slots = slots or HostSlots()

    async def read(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        label = f"s3://{self._bucket}/{self._key}"

        def get(client: "S3Client") -> "GetObjectOutputTypeDef":
            return client.get_object(
                Bucket=self._bucket, Key=self._key, Range=f"bytes={start}-{end - 1}", IfMatch=self.etag or "*"
            )

        try:
            async with self._slots.hold("s3"), self._opened(get) as body:
                missing = end - start
                while missing > 0:
                    chunk = await self._connection.call(lambda _: body.read(_CHUNK_BYTES))
                    if not chunk:
                        raise UpstreamFailure(f"{label} ended {missing} bytes early")
                    missing -= len(chunk)
                    yield chunk
        except (ClientError, BotoCoreError) as exc:
            raise _translate(exc, self._bucket, label) from _plea_for_less(exc) or exc
        except OSError as exc:
            raise UpstreamFailure(f"{label}: the connection broke off ({type(exc).__name__})") from exc

    @asynccontextmanager
    async def _opened(self, get: "Callable[[S3Client], GetObjectOutputTypeDef]") -> AsyncIterator["StreamingBody"]:
        asked = asyncio.ensure_future(self._connection.call(get))
        try:
            body = (await asyncio.shield(asked))["Body"]
        except asyncio.CancelledError:
            # a thread cannot be stopped: the answer comes all the same, and its connection must not stay open
            asked.add_done_callback(_close_unwanted)
            raise
        try:
            yield body
        finally:
            body.close()


def _close_unwanted(asked: "asyncio.Future[GetObjectOutputTypeDef]") -> None:
    if not asked.cancelled() and asked.exception() is None:
        asked.result()["Body"].close()


def _plea_for_less(error: ClientError | BotoCoreError) -> OriginBusyError | None:
    code = error.response.get("Error", {}).get("Code") if isinstance(error, ClientError) else None
    return OriginBusyError() if code in _BUSY_CODES else None


def _location(url: str) -> tuple[str, str]:
    # taken literally, as all S3 tools do: '%', '?' and '#' are characters of the key
    bucket, _, key = url.partition("://")[2].partition("/")
    if not bucket or not key:
        raise InvalidRequest("an S3 source is written s3://bucket/key")
    return bucket, key


def _translate(error: ClientError | BotoCoreError, bucket: str, label: str) -> JobError:
    problem, sentence = explain(error, bucket)
    message = f"{label}: {sentence}"
    if problem in {S3Problem.NO_KEY, S3Problem.NO_BUCKET}:
        return SourceNotFound(message)
    if problem is S3Problem.DENIED:
        return SourceForbidden(message)
    if problem is S3Problem.BAD_NAME:
        return InvalidRequest(message)
    return UpstreamFailure(message)
