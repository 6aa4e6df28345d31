"""Writes that must reach the database: a database that is away for a moment is not a failure of the job."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import asyncpg
import structlog

from worker.errors import LeaseLost
from worker.runtime.active import ActiveJob

log = structlog.get_logger(__name__)

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0


def is_transient(exc: BaseException) -> bool:
    """Could the same statement succeed a moment later? True for a database that is away, restarting or read-only."""
    return isinstance(
        exc,
        OSError
        | TimeoutError
        | asyncpg.PostgresConnectionError
        | asyncpg.InterfaceError
        | asyncpg.OperatorInterventionError
        | asyncpg.InsufficientResourcesError
        | asyncpg.TransactionRollbackError
        | asyncpg.ReadOnlySQLTransactionError
        | asyncpg.InternalClientError,
    )


async def persist(job: ActiveJob, write: Callable[[], Awaitable[None]]) -> None:
    """Repeat a fenced write until it is through or the lease is over, which is LeaseLost."""
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return await write()
        except Exception as exc:
            if not is_transient(exc):
                raise
            if time.monotonic() + pause >= job.deadline:
                raise LeaseLost(f"the database stayed away until the lease of job {job.lease.job_id} ran out") from exc
            log.warning("write_delayed", error=f"{type(exc).__name__}: {exc}", retry_seconds=pause)
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
