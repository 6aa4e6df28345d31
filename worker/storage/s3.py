"""A bucket as storage; boto3 and s3transfer talk to it in threads, and every upload is compared after."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError, FlexibleChecksumError
from s3transfer.manager import TransferConfig, TransferManager
from s3transfer.subscribers import BaseSubscriber
from s3transfer.utils import ChunksizeAdjuster

from worker.errors import ConfigError, OutputCorrupt, StorageUploadFailed
from worker.s3 import S3Connection, S3Problem, explain
from worker.storage.base import StoredObject
from worker.storage.checksums import FileChecksums, file_checksums
from worker.storage.files import copy_hashed, temporary_beside
from worker.storage.naming import require_key, require_metadata
from worker.storage.threads import STOP_GRACE_SECONDS, run_stoppable

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_s3.type_defs import HeadObjectOutputTypeDef

_PART_BYTES = 16 << 20
# Our own words among an object's metadata.
_SHA256 = "sha256"
_SIZE = "size"


class S3Storage:
    def __init__(self, bucket: str, prefix: str, connection: S3Connection) -> None:
        self._bucket = bucket
        self._prefix = f"{require_key(prefix)}/" if prefix else ""
        self._connection = connection
        self._transfers: TransferManager | None = None
        self._conditions: dict[str, dict[str, str]] = {}
        #: not every server that speaks S3 does
        self._knows_conditions = True

    async def check(self) -> None:
        name = f"{self._prefix}.clipboss-write-check"

        def write_something(client: "S3Client") -> None:
            client.put_object(Bucket=self._bucket, Key=name, Body=b"clipboss")
            client.delete_object(Bucket=self._bucket, Key=name)

        try:
            await self._connection.call(self._look_for_bucket)
            await self._connection.call(write_something)
        except (ClientError, BotoCoreError) as exc:
            _, sentence = explain(exc, self._bucket, absent=S3Problem.NO_BUCKET)
            raise ConfigError(f"artifacts cannot be stored: {sentence}") from exc

    async def head(self, key: str) -> StoredObject | None:
        require_key(key)
        with self._translated(key):
            found = await self._find(key)
        return self._describe(key, found)

    async def put(
        self,
        key: str,
        path: Path,
        *,
        content_type: str,
        metadata: Mapping[str, str],
        replacing: StoredObject | None = None,
    ) -> StoredObject:
        require_key(key)
        words = require_metadata(metadata)
        with self._translated(key):
            found = await self._find(key)
            there = self._describe(key, found)
            if there is not None and (replacing is None or replacing.version != there.version):
                return there
            sent = await self._connection.call(lambda _: _checksums(path))
            arguments = {
                "ContentType": content_type,
                "Metadata": {**words, _SHA256: sent.sha256, _SIZE: str(sent.size_bytes)},
                "ChecksumAlgorithm": "SHA256",
            }
            condition = {"IfNoneMatch": "*"} if found is None else {"IfMatch": found["ETag"]}
            is_first = await self._upload_if(condition, key, path, arguments)
            arrived = await self._find(key)
        stored = self._describe(key, arrived)
        if arrived is None or stored is None or (is_first and not _is_same(arrived, sent)):
            raise StorageUploadFailed(f"{self._url(key)} does not hold what was sent: size or checksum differ")
        return stored

    async def get(self, key: str, path: Path) -> None:
        require_key(key)

        def fetch(stop: threading.Event) -> None:
            found = self._connection.client().get_object(Bucket=self._bucket, Key=self._prefix + key)
            with temporary_beside(path) as part:
                with found["Body"] as body, part.open("xb") as copy:
                    _, sha256 = copy_hashed(body, copy, stop)
                if found["Metadata"].get(_SHA256, sha256) != sha256:
                    raise OutputCorrupt(f"{self._url(key)} does not hold what was stored: sha256 differs")
                part.replace(path)

        with self._translated(key):
            await run_stoppable(self._connection.executor, fetch)

    async def delete(self, key: str) -> None:
        require_key(key)
        with self._translated(key):
            await self._connection.call(
                lambda client: client.delete_object(Bucket=self._bucket, Key=self._prefix + key)
            )

    async def sweep(self, *, older_than_seconds: float) -> int:
        before = datetime.now(UTC) - timedelta(seconds=older_than_seconds)

        def abort(client: "S3Client") -> int:
            pages = client.get_paginator("list_multipart_uploads").paginate(Bucket=self._bucket, Prefix=self._prefix)
            stale = [item for page in pages for item in page.get("Uploads", []) if item["Initiated"] < before]
            for item in stale:
                client.abort_multipart_upload(Bucket=self._bucket, Key=item["Key"], UploadId=item["UploadId"])
            return len(stale)

        with self._translated(""):
            return await self._connection.call(abort)

    async def close(self) -> None:
        if self._transfers is not None:
            await asyncio.to_thread(self._transfers.shutdown, cancel=True)
        await self._connection.close()

    def _url(self, key: str) -> str:
        return f"s3://{self._bucket}/{self._prefix}{key}"

    def _describe(self, key: str, found: "HeadObjectOutputTypeDef | None") -> StoredObject | None:
        if found is None:
            return None
        metadata = dict(found["Metadata"])
        sha256, size = metadata.pop(_SHA256, ""), found["ContentLength"]
        if size == 0 or metadata.pop(_SIZE, str(size)) != str(size):
            return None
        return StoredObject(key, self._url(key), size, sha256, metadata, found["ETag"])

    def _look_for_bucket(self, client: "S3Client") -> None:
        try:
            client.head_bucket(Bucket=self._bucket)
        except ClientError as exc:
            # who may write is not always allowed to look: writing decides then
            if explain(exc, self._bucket)[0] is not S3Problem.DENIED:
                raise

    async def _find(self, key: str) -> "HeadObjectOutputTypeDef | None":
        try:
            return await self._connection.call(
                lambda client: client.head_object(Bucket=self._bucket, Key=self._prefix + key, ChecksumMode="ENABLED")
            )
        except ClientError as exc:
            if explain(exc, self._bucket)[0] is S3Problem.NO_KEY:
                return None
            raise

    async def _upload_if(self, condition: dict[str, str], key: str, path: Path, arguments: dict[str, Any]) -> bool:
        """False when somebody else was first: a worker that lost its lease must not overwrite what results point to."""
        name = self._prefix + key
        if self._knows_conditions:
            self._conditions[name] = condition
        try:
            await self._upload(key, path, arguments)
        except ClientError as exc:
            match exc.response.get("Error", {}).get("Code"):
                case "PreconditionFailed" | "ConditionalRequestConflict" | "412":
                    return False
                case "NotImplemented" if self._knows_conditions:
                    self._knows_conditions = False
                    return await self._upload_if(condition, key, path, arguments)
            raise
        finally:
            if self._conditions.get(name) is condition:
                del self._conditions[name]
        return True

    def _add_condition(self, params: dict[str, Any], **_: object) -> None:
        """s3transfer passes no conditions on, so botocore is asked to add them to the request that publishes."""
        params.update(self._conditions.get(params["Key"], {}))

    async def _upload(self, key: str, path: Path, arguments: dict[str, Any]) -> None:
        client = await self._connection.call(lambda client: client)
        if self._transfers is None:
            for operation in ("PutObject", "CompleteMultipartUpload"):
                client.meta.events.register(f"provide-client-params.s3.{operation}", self._add_condition)
            self._transfers = TransferManager(
                client,
                TransferConfig(
                    multipart_threshold=_PART_BYTES,
                    multipart_chunksize=_PART_BYTES,
                    max_request_concurrency=8,
                    max_submission_concurrency=2,
                ),
            )
        finished = _Finished()
        transfer = self._transfers.upload(
            str(path), self._bucket, self._prefix + key, extra_args=arguments, subscribers=[finished]
        )
        try:
            await asyncio.shield(finished.future)
        except asyncio.CancelledError:
            # s3transfer aborts the multipart upload, so that no parts stay behind
            transfer.cancel()
            await asyncio.wait([finished.future], timeout=STOP_GRACE_SECONDS)
            raise
        transfer.result()

    @contextmanager
    def _translated(self, key: str) -> Iterator[None]:
        try:
            yield
        except FlexibleChecksumError as exc:
            raise OutputCorrupt(f"{self._url(key)} does not hold what was stored: checksum differs") from exc
        except (ClientError, BotoCoreError) as exc:
            raise StorageUploadFailed(f"{self._url(key)}: {explain(exc, self._bucket)[1]}") from exc
        except OSError as exc:
            raise StorageUploadFailed(f"{self._url(key)}: {exc.filename}: {exc.strerror}") from exc


class _Finished(BaseSubscriber):
    """Carries the end of a transfer, cleaning up included, from s3transfer's threads to the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self._loop.create_future()

    def on_done(self, future: object, **_: object) -> None:  # noqa: ARG002 — s3transfer passes it by name
        self._loop.call_soon_threadsafe(self.future.set_result, None)


def _checksums(path: Path) -> FileChecksums:
    part_bytes = ChunksizeAdjuster().adjust_chunksize(_PART_BYTES, path.stat().st_size)
    return file_checksums(path, part_bytes=part_bytes)


def _is_same(arrived: "HeadObjectOutputTypeDef", sent: FileChecksums) -> bool:
    reported = arrived.get("ChecksumSHA256")
    same_checksum = reported is None or sent.agrees_with(reported)
    return same_checksum and arrived["ContentLength"] == sent.size_bytes
