"""The rows that workers have: each writes its own, anybody may look at all."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from worker.db.pool import STATEMENT_TIMEOUT_SECONDS, Connection, Pool
from worker.db.sql import load_queries
from worker.domain.job import JobId, WorkerId
from worker.domain.text import storable
from worker.domain.worker import WorkerState, worker_state
from worker.queue import PgBoss

#: of `last_error`; the job's own row has all of it
MAX_ERROR_CHARS = 500


@dataclass(frozen=True, slots=True)
class Place:
    """Where a worker runs, and how much it takes on."""

    host: str
    pid: int
    slots: int


@dataclass(frozen=True, slots=True)
class QueueTotal:
    #: successes and errors together
    processed: int = 0
    last_job: JobId | None = None


@dataclass(frozen=True, slots=True)
class HeldJob:
    """A job a worker is at work on right now."""

    id: JobId
    queue: str
    stage: str | None
    progress: float
    attempt: int
    spec: Any
    running_seconds: float


@dataclass(frozen=True, slots=True)
class QueueCount:
    queue: str
    processed: int
    last_job: str | None


@dataclass(frozen=True, slots=True)
class WorkerSummary:
    """All but `id`, `state`, `queues` and `jobs` are unknown of a worker that has no row."""

    id: WorkerId
    state: WorkerState
    version: str | None
    host: str | None
    pid: int | None
    slots: int | None
    expected_seconds: float | None
    silent_seconds: float | None
    started_at: datetime | None
    last_heartbeat: datetime | None
    stopped_at: datetime | None
    successes: int
    errors: int
    last_error: str | None
    last_error_at: datetime | None
    queues: tuple[QueueCount, ...]
    jobs: tuple[HeldJob, ...]


class WorkerRows:
    """Counts travel as totals and are added as what is new of them, under the row's lock: after a failure that left
    open whether a write went through, it is simply written again."""

    def __init__(self, pool: Pool, queue: PgBoss, *, timeout_seconds: float = STATEMENT_TIMEOUT_SECONDS) -> None:
        self._pool = pool
        self._timeout_seconds = timeout_seconds
        self._sql = load_queries("worker.jobs", queue_schema=queue.schema, queue_version=queue.version)

    async def start(self, version: str, *, expected_seconds: float, place: Place) -> WorkerId:
        async with self._connection() as connection, connection.transaction():
            found = await connection.fetchval(self._sql["worker_start"], version, expected_seconds)
            await connection.execute(self._sql["worker_place"], found, place.host, place.pid, place.slots)
        return WorkerId(found)

    async def heartbeat(self, worker_id: WorkerId, *, successes: int, errors: int, last_error: str | None) -> bool:
        """Totals since `start`. False: the row is gone."""
        error = storable(last_error[:MAX_ERROR_CHARS]) if last_error is not None else None
        async with self._connection() as connection:
            found = await connection.fetchval(self._sql["worker_heartbeat"], worker_id, successes, errors, error)
        return bool(found)

    async def progress(self, worker_id: WorkerId, totals: Mapping[str, QueueTotal]) -> None:
        """Totals since `start`, by queue."""
        async with self._connection() as connection:
            if totals.keys() - await self._count(connection, worker_id, totals):
                # Made in a statement of its own, committed before anything is added to it.
                await connection.execute(self._sql["worker_queues"], worker_id, list(totals))
                await self._count(connection, worker_id, totals)

    async def stop(self, worker_id: WorkerId) -> None:
        async with self._connection() as connection:
            await connection.execute(self._sql["worker_stop"], worker_id)

    async def prune(self, *, older_than_seconds: float) -> int:
        async with self._connection() as connection:
            return int(await connection.fetchval(self._sql["prune_workers"], older_than_seconds))

    async def listing(self, *, with_stopped: bool = False) -> list[WorkerSummary]:
        """The living, late and dead first, in the order in which they began."""
        return [_summary(dict(row)) for row in await self._pool.fetch(self._sql["list_workers"], with_stopped)]

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Connection]:
        """A connection that is dropped when it does not answer in time, or when whoever waits for it must go: the
        driver would first wait until the server confirms that the statement is cancelled."""
        async with asyncio.timeout(self._timeout_seconds), self._pool.acquire() as connection:
            try:
                yield connection
            except asyncpg.PostgresError:
                raise
            except BaseException:
                connection.terminate()
                raise

    async def _count(self, connection: Connection, worker_id: WorkerId, totals: Mapping[str, QueueTotal]) -> set[str]:
        """Returns the queues that have a row, and so are counted."""
        rows = await connection.fetch(
            self._sql["worker_progress"],
            worker_id,
            list(totals),
            [total.processed for total in totals.values()],
            [str(total.last_job) if total.last_job else None for total in totals.values()],
        )
        return {row["queue"] for row in rows}


def _summary(facts: dict[str, Any]) -> WorkerSummary:
    state = worker_state(facts["silent_seconds"], facts["expected_seconds"], is_stopped=facts["stopped_at"] is not None)
    queues = tuple(QueueCount(**counted) for counted in facts.pop("queues"))
    jobs = tuple(HeldJob(**{**held, "id": JobId(UUID(held["id"]))}) for held in facts.pop("jobs"))
    return WorkerSummary(state=state, queues=queues, jobs=jobs, **facts)
