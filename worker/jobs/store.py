"""The authoritative record of jobs: every change of a job's state goes through here, fenced, on both tables at once."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg

from worker.db.pool import Connection, Executor, Pool
from worker.db.sql import load_queries
from worker.domain.job import Attempt, JobId, JobStatus, Lease, LeaseToken, StageName, WorkerId
from worker.domain.outcome import AbortReason
from worker.domain.text import storable
from worker.errors import JobError, LeaseLost
from worker.queue import Fence, PgBoss

#: an error message is for reading; ffmpeg's last words fit, a whole log does not
MAX_MESSAGE_CHARS = 8000


@dataclass(frozen=True, slots=True)
class Acquired:
    attempts: list[Attempt]
    #: of these, jobs that were already asked to stop
    cancelled: frozenset[JobId]
    #: deliveries of jobs that were done already; they were settled with the stored result
    settled: int


@dataclass(frozen=True, slots=True)
class BeatAnswer:
    lost: frozenset[JobId]
    cancelled: frozenset[JobId]


class JobStore:
    """One instance a process. LeaseLost from any write means: stop, write nothing more, somebody else owns the job."""

    def __init__(self, pool: Pool, queue: PgBoss, lease_seconds: float) -> None:
        self._pool = pool
        self._queue = queue
        self._lease_seconds = lease_seconds
        self._sql = load_queries("worker.jobs", queue_schema=queue.schema, queue_version=queue.version)

    async def acquire(self, queue: str, count: int, worker_id: WorkerId) -> Acquired:
        """Take up to `count` due jobs, most urgent first."""
        try:
            rows = await self._pool.fetch(self._sql["acquire"], queue, count, worker_id, self._lease_seconds)
        except (asyncpg.UniqueViolationError, asyncpg.DeadlockDetectedError):
            # Another worker took the same key of a one-at-a-time policy in the same instant, or two of them crosswise.
            return Acquired([], frozenset(), 0)
        rows.sort(key=lambda row: (-row["priority"], row["created_on"]))
        taken = [row for row in rows if row["lease_token"] is not None]
        return Acquired(
            [_attempt(queue, row) for row in taken],
            frozenset(JobId(row["id"]) for row in taken if row["is_cancel_requested"]),
            len(rows) - len(taken),
        )

    async def finish(self, lease: Lease, result: Mapping[str, Any], *, connection: Connection | None = None) -> None:
        """`connection`: inside the caller's transaction."""
        found = await (connection or self._pool).fetchval(
            self._sql["finish"],
            lease.queue,
            lease.job_id,
            lease.token,
            lease.retry_count,
            storable(dict(result)),
        )
        _require(found, lease)

    async def requeue(self, lease: Lease, error: JobError) -> None:
        """Another attempt after the delivery's own delay; failed for good when the policy has no room for it."""
        async with self._ending() as connection:
            states = await self._queue.fail(
                lease.queue, [_fence(lease)], [_error_output(error)], is_final=False, connection=connection
            )
            _require(states, lease)
            status = JobStatus.QUEUED if states[lease.job_id] == "retry" else JobStatus.FAILED
            event = "retry:scheduled" if status is JobStatus.QUEUED else "failed"
            await self._close(connection, lease, status, event, error=error, attempts=1)

    async def give_up(self, lease: Lease, error: JobError) -> None:
        async with self._ending() as connection:
            settled = await self._queue.fail(
                lease.queue, [_fence(lease)], [_error_output(error)], is_final=True, connection=connection
            )
            _require(settled, lease)
            await self._close(connection, lease, JobStatus.FAILED, "failed", error=error, attempts=1)

    async def put_aside(
        self, lease: Lease, event: str, detail: Mapping[str, Any], *, wait_seconds: float, connection: Connection
    ) -> None:
        """Back to the queue for a while, inside the caller's transaction; no attempt is lost."""
        waiting = await self._queue.restore(
            lease.queue, [_fence(lease)], wait_seconds=wait_seconds, connection=connection
        )
        _require(lease.job_id in waiting, lease)
        await self._close(connection, lease, JobStatus.QUEUED, event, detail=detail)

    async def mark_cancelled(self, lease: Lease) -> None:
        async with self._ending() as connection:
            # Zero rows are fine here: a Node producer's cancel has settled the delivery already.
            await self._queue.cancel(lease.queue, [lease.job_id], connection=connection)
            await self._close(connection, lease, JobStatus.CANCELLED, "cancelled")

    async def release(self, lease: Lease, reason: AbortReason = AbortReason.SHUTDOWN) -> None:
        """Give a lease back; recovery, here or on another machine, requeues the job."""
        found = await self._pool.fetchval(self._sql["release"], [lease.job_id], [lease.token], f"aborted:{reason}")
        _require(found, lease)

    async def beat(self, leases: Sequence[Lease], *, connection: Executor | None = None) -> BeatAnswer:
        """Renew all leases in one statement and learn which are lost or wanted back."""
        rows = await (connection or self._pool).fetch(
            self._sql["beat"],
            [lease.queue for lease in leases],
            [lease.job_id for lease in leases],
            [lease.token for lease in leases],
            [lease.retry_count for lease in leases],
        )
        cancelled = frozenset(JobId(row["id"]) for row in rows if row["is_cancelled"])
        lost = frozenset(JobId(row["id"]) for row in rows if not row["is_held"]) - cancelled
        return BeatAnswer(lost, cancelled)

    async def note(
        self,
        lease: Lease,
        kind: str,
        data: Mapping[str, Any] | None = None,
        *,
        stage: StageName | None = None,
    ) -> None:
        """Write an event of the running attempt."""
        detail = storable(dict(data)) if data else None
        found = await self._pool.fetchval(self._sql["note_stage"], lease.job_id, lease.token, stage, kind, detail)
        _require(found, lease)

    async def note_progress(self, progress: Mapping[Lease, float]) -> None:
        await self._pool.execute(
            self._sql["note_progress"],
            [lease.job_id for lease in progress],
            [lease.token for lease in progress],
            list(progress.values()),
        )

    @asynccontextmanager
    async def _ending(self) -> AsyncIterator[Connection]:
        """A transaction that settles the delivery first and the job second: both or neither."""
        async with self._pool.acquire() as connection, connection.transaction():
            yield connection

    async def _close(
        self,
        connection: Connection,
        lease: Lease,
        status: JobStatus,
        event: str,
        *,
        error: JobError | None = None,
        detail: Mapping[str, Any] | None = None,
        attempts: int = 0,
    ) -> None:
        code = error.code if error else None
        message = storable(str(error)[:MAX_MESSAGE_CHARS]) if error else None
        if error is not None:
            detail = {"code": code, "message": message}
        found = await connection.fetchval(
            self._sql["close"], lease.job_id, lease.token, status, attempts, code, message, event, detail
        )
        _require(found, lease)


def _attempt(queue: str, row: asyncpg.Record) -> Attempt:
    lease = Lease(JobId(row["id"]), queue, LeaseToken(row["lease_token"]), row["retry_count"])
    return Attempt(
        lease=lease,
        spec=row["data"],
        number=row["attempt_count"] + 1,
        max_attempts=row["retry_limit"] + 1,
        crash_count=row["crash_count"],
        expire_seconds=row["expire_seconds"],
        heartbeat_seconds=row["heartbeat_seconds"],
    )


def _fence(lease: Lease) -> Fence:
    return Fence(lease.job_id, lease.retry_count)


def _error_output(error: JobError) -> dict[str, Any]:
    """The shape a Node producer finds in `output`: an error's name and message, and our code."""
    return {"name": type(error).__name__, "message": str(error)[:MAX_MESSAGE_CHARS], "code": error.code}


def _require(found: object, lease: Lease) -> None:
    if not found:
        raise LeaseLost(f"job {lease.job_id} is no longer held under lease {lease.token}")
