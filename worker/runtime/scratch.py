"""Room to work in: one directory an attempt, removed afterwards, and swept when its owner died."""

import asyncio
import fcntl
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from worker.domain.job import Lease
from worker.errors import DiskFull


class Scratch:
    def __init__(self, root: Path, *, min_free_bytes: int) -> None:
        self._jobs = root.absolute() / "jobs"
        self._min_free_bytes = min_free_bytes
        #: what running jobs said they need, by their room
        self._reserved: dict[Path, int] = {}

    @asynccontextmanager
    async def room_for(self, lease: Lease) -> AsyncIterator[Path]:
        """A directory of this attempt's own. A later attempt must not meet the files of one that lost its lease."""
        room = self._jobs / str(lease.job_id) / str(lease.token)
        handle = await asyncio.to_thread(self._open, room)
        try:
            yield room
        finally:
            await asyncio.shield(asyncio.to_thread(_close, room, handle))
            self._reserved.pop(room, None)

    def reserve(self, room: Path, size_bytes: int) -> None:
        """Keep this much of the disk for a room; DiskFull when other jobs of this worker need it too."""
        rooms = self._reserved.items()
        promised = sum(max(0, size - _used_bytes(other)) for other, size in rooms if other != room)
        free = shutil.disk_usage(room).free - promised
        if free - size_bytes < self._min_free_bytes:
            raise DiskFull(
                f"the job needs about {_megabytes(size_bytes)} MB in SCRATCH_DIR; {_megabytes(max(0, free))} MB are "
                f"free and not promised to other jobs, of which SCRATCH_MIN_FREE_MB keeps "
                f"{_megabytes(self._min_free_bytes)}"
            )
        self._reserved[room] = size_bytes

    def sweep(self) -> int:
        """Remove directories whose owner is gone; returns how many."""
        rooms = [room for job in _directories(self._jobs) for room in _directories(job)]
        return sum(_remove_if_orphaned(room) for room in rooms)

    def _open(self, room: Path) -> int:
        room.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(room).free
        if free < self._min_free_bytes:
            _remove(room)
            raise DiskFull(
                f"only {free // 2**20} MB are free for SCRATCH_DIR; "
                f"SCRATCH_MIN_FREE_MB asks for {self._min_free_bytes // 2**20}"
            )
        # Held as long as this process lives: the sweeper of any worker on this machine can tell.
        while (handle := _lock(room)) is None:
            room.mkdir(parents=True, exist_ok=True)
        return handle


def _lock(room: Path) -> int | None:
    """None when a sweeper came between making the directory and locking it, and took it away."""
    try:
        handle = os.open(room, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    fcntl.flock(handle, fcntl.LOCK_EX)
    if room.exists() and room.stat().st_ino == os.fstat(handle).st_ino:
        return handle
    os.close(handle)
    return None


def _close(room: Path, handle: int) -> None:
    _remove(room)
    os.close(handle)


def _remove(room: Path) -> None:
    shutil.rmtree(room, ignore_errors=True)
    try:
        room.parent.rmdir()
    except OSError:
        return  # another attempt of the same job is in there


def _remove_if_orphaned(room: Path) -> bool:
    try:
        handle = os.open(room, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        _remove(room)
        return True
    finally:
        os.close(handle)


def _used_bytes(room: Path) -> int:
    """Of files that vanish while they are looked at, nothing."""
    used = 0
    for entry in os.scandir(room) if room.is_dir() else ():
        with suppress(OSError):
            used += entry.stat(follow_symlinks=False).st_size
    return used


def _megabytes(size_bytes: int) -> int:
    return size_bytes // 2**20


def _directories(folder: Path) -> list[Path]:
    return [entry for entry in folder.iterdir() if entry.is_dir()] if folder.is_dir() else []
