"""Files that appear whole or not at all."""

import errno
import hashlib
import os
import secrets
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol

_CHUNK_BYTES = 1 << 20


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


@contextmanager
def temporary_beside(target: Path) -> Iterator[Path]:
    """A hidden name next to `target` that is gone afterwards, unless it was renamed."""
    part = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def remove_old_parts(root: Path, older_than_seconds: float) -> int:
    """What `temporary_beside` could not remove because its process was killed; returns how many."""
    removed = 0
    for part in root.rglob(".*.part"):
        try:
            if time.time() - part.stat().st_mtime > older_than_seconds:
                part.unlink()
                removed += 1
        except FileNotFoundError:
            continue  # finished meanwhile
    return removed


def copy_hashed(source: Readable, target: IO[bytes], stop: threading.Event) -> tuple[int, str]:
    """Copy everything; the size and sha256 of what was copied."""
    digest, size = hashlib.sha256(), 0
    while chunk := source.read(_CHUNK_BYTES):
        if stop.is_set():
            raise CancelledError
        target.write(chunk)
        digest.update(chunk)
        size += len(chunk)
    return size, digest.hexdigest()


def write_durably(file: IO[bytes]) -> None:
    file.flush()
    _sync(file.fileno())


def sync_directory(directory: Path) -> None:
    """A rename survives a power cut only once its directory is on disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as exc:
        # some network and overlay file systems do not know fsync; they have done what they can
        if exc.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
