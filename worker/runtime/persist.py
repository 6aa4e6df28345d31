"""Writes that must reach the database: a database that is away for a moment is not a failure of the job."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import asyncpg
import structlog
from tenacity import AsyncRetrying, RetryCallState, RetryError, retry_if_exception, wait_exponential

from worker.errors import LeaseLost
from worker.runtime.active import ActiveJob

log = structlog.get_logger(__name__)

#: a task that nobody waits for any more must not be forgotten by the garbage collector
_in_flight: set[asyncio.Future[None]] = set()

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
                await _until_stopped(write)
    except RetryError as exc:
        raise LeaseLost(f"the database stayed away until the lease of job {job.lease.job_id} ran out") from exc


async def _until_stopped(write: Callable[[], Awaitable[None]]) -> None:
    """Whoever is told to stop goes at once. The driver would first wait for the server to confirm that the statement
    is cancelled, and one that is away never does; should it go through later, the fence judges it."""
    task = asyncio.ensure_future(write())
    _in_flight.add(task)
    task.add_done_callback(_forget)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        raise


def _forget(task: asyncio.Future[None]) -> None:
    _in_flight.discard(task)
    if not task.cancelled():
        task.exception()  # somebody who was told to stop does not want to know


def _tell(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    log.warning("write_delayed", error=f"{type(error).__name__}: {error}", retry_seconds=state.upcoming_sleep)
