"""A directory as storage: objects are plain files, with what was put recorded in a hidden file beside."""

import asyncio
import errno
import fcntl
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from worker.errors import ConfigError, DiskFull, OutputCorrupt, StorageUploadFailed
from worker.storage.base import StoredObject
from worker.storage.files import copy_hashed, remove_old_parts, sync_directory, temporary_beside, write_durably
from worker.storage.naming import require_key, require_metadata
from worker.storage.threads import run_stoppable


@dataclass(frozen=True, slots=True)
class _Record:
    size_bytes: int
    sha256: str
    content_type: str
    metadata: dict[str, str]


class LocalStorage:
    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    async def check(self) -> None:
        def write_something() -> None:
            self._root.mkdir(parents=True, exist_ok=True)
            with temporary_beside(self._root / "check") as part:
                part.write_bytes(b"clipboss")

        try:
            await asyncio.to_thread(write_something)
        except OSError as exc:
            raise ConfigError(
                f"artifacts cannot be written to {self._root} ({exc.strerror}): correct STORAGE_URL or rights"
            ) from exc

    async def head(self, key: str) -> StoredObject | None:
        path = self._path(key)
        with _translated(path):
            return await asyncio.to_thread(self._head, key, path)

    async def put(
        self,
        key: str,
        path: Path,
        *,
        content_type: str,
        metadata: Mapping[str, str],
        replacing: StoredObject | None = None,
    ) -> StoredObject:
        target, words = self._path(key), require_metadata(metadata)

        def store(stop: threading.Event) -> StoredObject:
            target.parent.mkdir(parents=True, exist_ok=True)
            with temporary_beside(target) as part:
                with path.open("rb") as source, part.open("xb") as copy:
                    size, sha256 = copy_hashed(source, copy, stop)
                    write_durably(copy)
                if part.stat().st_size != size:
                    raise StorageUploadFailed(f"{target} was not written completely")
                return self._publish(key, part, _Record(size, sha256, content_type, words), replacing)

        with _translated(target):
            return await run_stoppable(None, store)

    async def get(self, key: str, path: Path) -> None:
        stored = self._path(key)

        def fetch(stop: threading.Event) -> None:
            with self._locked():
                record, source = _read_record(stored), stored.open("rb")
            with source, temporary_beside(path) as part:
                with part.open("xb") as copy:
                    _, sha256 = copy_hashed(source, copy, stop)
                if record is not None and record.sha256 != sha256:
                    raise OutputCorrupt(f"{stored} does not hold what was stored: its sha256 differs")
                part.replace(path)

        with _translated(stored):
            await run_stoppable(None, fetch)

    async def delete(self, key: str) -> None:
        path = self._path(key)

        def remove() -> None:
            if not path.parent.is_dir():
                return
            with self._locked():
                path.unlink(missing_ok=True)
                _record_path(path).unlink(missing_ok=True)

        with _translated(path):
            await asyncio.to_thread(remove)

    async def sweep(self, *, older_than_seconds: float) -> int:
        with _translated(self._root):
            return await asyncio.to_thread(remove_old_parts, self._root, older_than_seconds)

    async def close(self) -> None:
        """Nothing is kept open."""

    def _path(self, key: str) -> Path:
        return self._root / require_key(key)

    def _head(self, key: str, path: Path) -> StoredObject | None:
        try:
            with self._locked():
                return _describe(key, path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _publish(self, key: str, part: Path, record: _Record, replacing: StoredObject | None) -> StoredObject:
        target = self._path(key)
        with temporary_beside(_record_path(target)) as record_part:
            with record_part.open("xb") as file:
                file.write(json.dumps(asdict(record)).encode())
                write_durably(file)
            with self._locked():
                there = _describe(key, target) if target.exists() else None
                if there is not None and (replacing is None or replacing.version != there.version):
                    return there
                # a crash in between leaves an object without record: unknown, never wrong
                _record_path(target).unlink(missing_ok=True)
                part.replace(target)
                record_part.replace(_record_path(target))
                stored = StoredObject(
                    key, target.as_uri(), record.size_bytes, record.sha256, record.metadata, _version(target)
                )
        sync_directory(target.parent)
        return stored

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Object and record change together, also for other processes on the same directory."""
        lock = os.open(self._root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _describe(key: str, path: Path) -> StoredObject | None:
    record, size = _read_record(path), path.stat().st_size
    if size == 0 or (record is not None and record.size_bytes != size):
        return None
    sha256, metadata = (record.sha256, record.metadata) if record else ("", {})
    return StoredObject(key, path.as_uri(), size, sha256, metadata, _version(path))


def _version(path: Path) -> str:
    found = path.stat()
    return f"{found.st_ino}-{found.st_mtime_ns}"


def _record_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.json")


def _read_record(path: Path) -> _Record | None:
    try:
        return _Record(**json.loads(_record_path(path).read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        if exc.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise DiskFull(f"no space left for {path}: free some, or move STORAGE_URL") from exc
        raise StorageUploadFailed(f"{path}: {exc.strerror} ({exc.filename})") from exc
