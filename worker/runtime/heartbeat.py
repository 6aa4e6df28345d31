"""Keeps the leases of running jobs alive, and hears what must stop."""

import asyncio
import time
from collections.abc import Callable, Sequence

import asyncpg
import structlog

from worker.db.pool import open_connection
from worker.domain.job import Lease
from worker.domain.outcome import Cancelled, LeaseLost
from worker.jobs.store import BeatAnswer, JobStore
from worker.runtime.active import ActiveJob, ActiveJobs
from worker.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)


class Heartbeat:
    """One statement for all jobs. `run_once` belongs to a thread of its own, see `pulse`: work that blocks the
    worker's loop for a moment costs no lease, and beats never queue behind other statements."""

    def __init__(
        self,
        dsn: str,
        store: JobStore,
        active: ActiveJobs,
        *,
        name: str,
        timeout_seconds: float,
        is_alive: Callable[[], bool],
        metrics: Metrics,
    ) -> None:
        self._dsn = dsn
        self._store = store
        self._active = active
        self._name = name
        self._timeout_seconds = timeout_seconds
        self._is_alive = is_alive
        self._metrics = metrics
        self._loop = asyncio.get_running_loop()
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None

    async def run_once(self) -> None:
        jobs = [job for job in self._active if job.stop_reason is None]
        if not jobs:
            return
        if not self._is_alive():
            # A loop that hangs does no work: its jobs must go to somebody who does.
            log.error("beats_withheld", jobs=len(jobs), reason="the worker's loop does not move")
            return
        # The lease is counted from before the statement: what is confirmed was true then at the latest.
        before = time.monotonic()
        answer = await self._beat([job.lease for job in jobs])
        self._metrics.heartbeats.inc()
        for job in jobs:
            if job.lease.job_id not in answer.lost | answer.cancelled:
                job.renewed_at = before
        if answer.lost or answer.cancelled:
            self._loop.call_soon_threadsafe(_stop, jobs, answer)

    async def stop_expired(self) -> None:
        for job in self._active:
            job.stop_if_expired()

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def _beat(self, leases: Sequence[Lease]) -> BeatAnswer:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                if self._connection is None or self._connection.is_closed():
                    self._connection = await open_connection(self._dsn, name=self._name)
                return await self._store.beat(leases, connection=self._connection)
        except BaseException:
            # Whatever state it is in now, the next beat starts on a fresh one.
            self._metrics.heartbeat_failures.inc()
            await self.close()
            raise


def _stop(jobs: Sequence[ActiveJob], answer: BeatAnswer) -> None:
    for job in jobs:
        if job.lease.job_id in answer.cancelled:
            job.stop(Cancelled())
        elif job.lease.job_id in answer.lost and not job.is_recording:
            # One that ended while the beat was under way is not lost; were it, the fence would tell.
            log.warning("lease_lost", job_id=str(job.lease.job_id))
            job.stop(LeaseLost())
