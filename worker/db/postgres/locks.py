"""File locks that the kernel gives back when their holder dies, however it dies."""

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

POLL_SECONDS = 0.02


class FileLock:
    """One open file and at most one lock on it: shared by many holders, or exclusive to one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None

    @property
    def is_open(self) -> bool:
        return self._fd is not None

    def fileno(self) -> int:
        assert self._fd is not None, f"{self.path} is not open"
        return self._fd

    def try_acquire(self, *, exclusive: bool) -> bool:
        """Take, or convert to, the lock without waiting. A failed conversion may lose the old one."""
        try:
            fcntl.flock(self._open(), (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            self.release()
            raise
        return True

    def acquire(self, *, exclusive: bool, deadline: float, give_up: Callable[[], bool] = lambda: False) -> None:
        """Take the lock; TimeoutError when `deadline` (time.monotonic) or `give_up` comes first."""
        while not self.try_acquire(exclusive=exclusive):
            if give_up() or time.monotonic() > deadline:
                self.release()
                raise TimeoutError(f"{self.path} stays locked")
            time.sleep(POLL_SECONDS)

    def wait_exclusive(self) -> None:
        """Block, without polling, until nobody else holds the lock in any form."""
        fcntl.flock(self._open(), fcntl.LOCK_EX)

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self) -> int:
        if self._fd is None:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._fd


def is_held_exclusively(path: Path) -> bool:
    """Whether some living process holds the exclusive lock."""
    probe = FileLock(path)
    try:
        return not probe.try_acquire(exclusive=False)
    finally:
        probe.release()
