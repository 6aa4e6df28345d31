"""Writes that must reach the database: a database that is away for a moment is not a failure of the job."""

import time
from collections.abc import Awaitable, Callable

import asyncpg
import structlog
from tenacity import AsyncRetrying, RetryCallState, RetryError, retry_if_exception, wait_exponential

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


async def persist(job: ActiveJob, write: Callable[[], Awaitable[None]], *, however_late: bool = False) -> None:
    """Repeat a fenced write until it is through or the lease is over, which is LeaseLost.

    `however_late`: giving a lease back helps as long as nobody has taken it, and the fence knows.
    """
    retrying = AsyncRetrying(
        retry=retry_if_exception(is_transient),
        wait=wait_exponential(multiplier=FIRST_PAUSE_SECONDS, max=LONGEST_PAUSE_SECONDS),
        stop=lambda state: not however_late and time.monotonic() + state.upcoming_sleep >= job.deadline,
        before_sleep=_tell,
    )
    try:
        async for attempt in retrying:
            with attempt:
                await write()
    except RetryError as exc:
        raise LeaseLost(f"the database stayed away until the lease of job {job.lease.job_id} ran out") from exc


def _tell(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    log.warning("write_delayed", error=f"{type(error).__name__}: {error}", retry_seconds=state.upcoming_sleep)
