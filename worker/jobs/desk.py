"""What people ask about jobs, and the few things they may do to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from worker.db.pool import Connection, Executor, Pool
from worker.db.sql import load_queries
from worker.domain.job import JobId, JobStatus
from worker.domain.text import storable
from worker.errors import InvalidRequest, JobMissing, QueueMissing
from worker.queue import PgBoss


@dataclass(frozen=True, slots=True)
class JobSummary:
    id: JobId
    queue: str
    spec: Any
    status: JobStatus
    attempt_count: int
    max_attempts: int
    stage: str | None
    progress: float
    error_code: str | None
    error_message: str | None
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class JobDetail(JobSummary):
    crash_count: int
    result: Mapping[str, Any] | None
    worker_id: UUID | None
    cancel_requested_at: datetime | None
    updated_at: datetime
    processing_started_at: datetime | None
    #: of a page: the job it is a part of
    run_id: JobId | None


@dataclass(frozen=True, slots=True)
class PageSummary:
    """One page of a job that was split."""

    id: JobId
    kind: str | None
    partition: int
    offset: int
    status: JobStatus
    progress: float
    attempt_count: int
    error_code: str | None
    error_message: str | None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """How far the pages of a job are."""

    pages: int
    finished_pages: int
    percent: float
    running_pages: int
    waiting_pages: int
    failed_pages: int
    partitions: int
    open_partitions: int
    last_page_at: datetime | None
    #: something should wait or run, but nothing does
    is_stuck: bool
    #: those that were sent so far
    sent: tuple[PageSummary, ...] = ()


@dataclass(frozen=True, slots=True)
class JobEvent:
    id: int
    at: datetime
    attempt: int | None
    worker_id: UUID | None
    kind: str
    data: Mapping[str, Any] | None


class JobDesk:
    """Submit, look at, cancel and retry jobs, from any process that has the database."""

    def __init__(self, pool: Pool, queue: PgBoss) -> None:
        self._pool = pool
        self._sql = load_queries("worker.jobs", queue_schema=queue.schema, queue_version=queue.version)

    async def submit(
        self,
        queue: str,
        spec: Mapping[str, Any],
        options: Mapping[str, Any] | None = None,
        *,
        connection: Connection | None = None,
    ) -> JobId | None:
        """The new job's id, or None when the queue's policy refused it. `options` carry pg-boss's own names."""
        db: Executor = connection or self._pool
        try:
            found = await db.fetchval(
                "SELECT worker.submit($1, $2, $3)", queue, storable(dict(spec)), dict(options or {})
            )
        except asyncpg.UndefinedObjectError as exc:
            raise QueueMissing(
                f"queue {queue!r} does not exist; `python -m worker migrate` creates those in QUEUES"
            ) from exc
        except asyncpg.ProgramLimitExceededError as exc:
            raise InvalidRequest(exc.message or str(exc)) from exc
        return JobId(found) if found else None

    async def show(self, job_id: UUID) -> JobDetail:
        row = await self._pool.fetchrow(self._sql["get_job"], job_id)
        if row is None:
            raise JobMissing(f"there is no job {job_id}")
        return JobDetail(**{**row, "status": JobStatus(row["status"])})

    async def run(self, job_id: UUID) -> RunSummary | None:
        """None: the job was not split."""
        row = await self._pool.fetchrow(self._sql["get_run"], job_id)
        if row is None:
            return None
        pages = await self._pool.fetch(self._sql["list_pages"], job_id)
        return RunSummary(
            **row, sent=tuple(PageSummary(**{**page, "status": JobStatus(page["status"])}) for page in pages)
        )

    async def listing(
        self,
        queues: Sequence[str],
        *,
        status: JobStatus | None = None,
        queue: str | None = None,
        limit: int = 50,
        with_pages: bool = False,
    ) -> list[JobSummary]:
        """Newest first. `queues` are those in which jobs that only pg-boss knows are ours; `queue` narrows to one."""
        rows = await self._pool.fetch(self._sql["list_jobs"], list(queues), status, limit, queue, with_pages)
        return [JobSummary(**{**row, "status": JobStatus(row["status"])}) for row in rows]

    async def find(self, prefix: str, queues: Sequence[str]) -> list[JobId]:
        """Jobs whose id begins with these hexadecimal digits (dashes do not count); two are enough to be ambiguous."""
        digits = prefix.replace("-", "").lower()
        first, last = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
        rows = await self._pool.fetch(self._sql["find_jobs"], first, last, list(queues))
        return [JobId(row["id"]) for row in rows]

    async def events(self, job_id: UUID, *, after: int = 0) -> list[JobEvent]:
        return [JobEvent(**row) for row in await self._pool.fetch(self._sql["list_events"], job_id, after)]

    async def cancel(self, job_id: UUID) -> str:
        """The status the job then has; a running one stops as soon as its worker hears of it."""
        return await self._act("SELECT worker.cancel($1)", job_id)

    async def retry(self, job_id: UUID) -> str:
        return await self._act("SELECT worker.retry($1)", job_id)

    async def _act(self, statement: str, job_id: UUID) -> str:
        try:
            return str(await self._pool.fetchval(statement, job_id))
        except asyncpg.NoDataFoundError as exc:
            raise JobMissing(f"there is no job {job_id}") from exc
