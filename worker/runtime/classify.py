"""Turns whatever a stage raised into an error that knows whether trying again makes sense."""

import errno

from worker.errors import DiskFull, FatalError, JobError, RetryableError
from worker.runtime.persist import is_transient

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def classify(exc: Exception) -> JobError:
    match exc:
        case JobError():
            return exc
        case OSError() if exc.errno in _NO_ROOM:
            return DiskFull("no space left on the scratch disk; free some, or give SCRATCH_DIR more room")
        case _ if is_transient(exc):
            return RetryableError(f"{type(exc).__name__}: {exc}")
        case _:
            return FatalError(f"unexpected {type(exc).__name__}: {exc}")
