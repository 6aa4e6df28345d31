"""Which errors are worth another attempt."""

import errno

import asyncpg
import pytest

from worker.errors import ClipFailed
from worker.runtime.classify import classify


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (ClipFailed("x"), "CLIP_FAILED", False),
        (OSError(errno.ENOSPC, "No space left on device"), "DISK_FULL", True),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "DISK_FULL", True),
        (ConnectionResetError("reset"), "INTERNAL_TRANSIENT", True),
        (TimeoutError(), "INTERNAL_TRANSIENT", True),
        (asyncpg.CannotConnectNowError("starting up"), "INTERNAL_TRANSIENT", True),
        (asyncpg.DeadlockDetectedError("deadlock"), "INTERNAL_TRANSIENT", True),
        (asyncpg.AdminShutdownError("shutting down"), "INTERNAL_TRANSIENT", True),
        (asyncpg.UndefinedTableError("no table"), "INTERNAL_ERROR", False),
        (KeyError("bug"), "INTERNAL_ERROR", False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_class_of_an_error(error: Exception, code: str, retryable: bool) -> None:
    found = classify(error)
    assert (found.code, found.retryable) == (code, retryable)
