"""A temporary file for origins that only send everything at once; ranges are then read from the disk."""

import asyncio
import errno
import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from worker.errors import DiskFull, SourceTooLarge, UpstreamFailure

_CHUNK_BYTES = 256 * 1024


class SpooledReader:
    """A RangeReader over an open file descriptor."""

    is_remote = False

    def __init__(self, descriptor: int, size_bytes: int, etag: str | None) -> None:
        self.size_bytes = size_bytes
        self.etag = etag
        self._descriptor = descriptor

    async def read(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        while start < end:
            wanted = min(_CHUNK_BYTES, end - start)
            chunk = await asyncio.to_thread(os.pread, self._descriptor, wanted, start)
            if not chunk:
                raise UpstreamFailure("the worker's copy of the source ended early")
            yield chunk
            start += len(chunk)


@asynccontextmanager
async def spooled(
    chunks: AsyncIterable[bytes], directory: Path, *, max_bytes: int, etag: str | None
) -> AsyncIterator[SpooledReader]:
    """Take `chunks` to a file without a name, which vanishes with the process, whatever ends it."""
    try:
        await asyncio.to_thread(directory.mkdir, parents=True, exist_ok=True)
        file = await asyncio.to_thread(tempfile.TemporaryFile, dir=directory, buffering=0)
    except OSError as exc:
        raise _translate(exc, directory) from exc
    with file:
        size = 0
        try:
            async for chunk in chunks:
                size += len(chunk)
                if size > max_bytes:
                    raise SourceTooLarge(
                        f"the source's server sends everything at once, and that is more than {max_bytes} bytes "
                        f"(SOURCE_SPOOL_MAX_MB)"
                    )
                await asyncio.to_thread(_write_all, file.fileno(), chunk)
        except OSError as exc:
            raise _translate(exc, directory) from exc
        yield SpooledReader(file.fileno(), size, etag)


def _write_all(descriptor: int, chunk: bytes) -> None:
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _translate(error: OSError, directory: Path) -> DiskFull | UpstreamFailure:
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return DiskFull(f"no space left in {directory} for the source: free some, or set SCRATCH_DIR elsewhere")
    return UpstreamFailure(f"the source could not be kept in {directory}: {error.strerror}")
