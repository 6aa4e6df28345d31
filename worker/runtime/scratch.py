"""Room to work in: one directory an attempt, removed afterwards, and swept when its owner died."""

import asyncio
import fcntl
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from worker.domain.job import Lease
from worker.errors import DiskFull


class Scratch:
    def __init__(self, root: Path, *, min_free_bytes: int) -> None:
        self._jobs = root.absolute() / "jobs"
        self._min_free_bytes = min_free_bytes

    @asynccontextmanager
    async def room_for(self, lease: Lease) -> AsyncIterator[Path]:
        """A directory of this attempt's own. A later attempt must not meet the files of one that lost its lease."""
        room = self._jobs / str(lease.job_id) / str(lease.token)
        handle = await asyncio.to_thread(self._open, room)
        try:
            yield room
        finally:
            await asyncio.shield(asyncio.to_thread(_close, room, handle))

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
        handle = os.open(room, os.O_RDONLY | os.O_DIRECTORY)
        # Held as long as this process lives: the sweeper of any worker on this machine can tell.
        fcntl.flock(handle, fcntl.LOCK_EX)
        return handle


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


def _directories(folder: Path) -> list[Path]:
    return [entry for entry in folder.iterdir() if entry.is_dir()] if folder.is_dir() else []
