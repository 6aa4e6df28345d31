"""Takes jobs from the queues as slots become free, and starts them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import structlog

from worker.domain.job import Attempt, JobId, WorkerId
from worker.domain.outcome import Cancelled
from worker.jobs.store import JobStore
from worker.runtime.active import ActiveJob, ActiveJobs
from worker.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)


class Dispatcher:
    """Free slots first, then fetch: nothing is acquired that could not start at once."""

    def __init__(
        self,
        store: JobStore,
        active: ActiveJobs,
        execute: Callable[[ActiveJob], Awaitable[None]],
        *,
        queues: Sequence[str],
        worker_id: Callable[[], WorkerId | None],
        max_concurrency: int,
        lease_holds_seconds: float,
        metrics: Metrics,
    ) -> None:
        """`worker_id`: what leases carry from now on; None while this worker is known to nobody."""
        self._store = store
        self._active = active
        self._execute = execute
        self._queues = list(queues)
        self._worker_id = worker_id
        self._slots = asyncio.Semaphore(max_concurrency)
        self._running: set[asyncio.Task[None]] = set()
        self._holds_seconds = lease_holds_seconds
        self._metrics = metrics
        self.on_slot_free: Callable[[], None] = lambda: None
        self.is_stopping = False

    async def run_once(self) -> int:
        """Fill the free slots; returns how many jobs were started."""
        started = 0
        for queue in self._queues:
            while self.is_open and (reserved := await self._reserve()):
                taken = await self._take(queue, reserved)
                started += taken
                if taken < reserved:
                    break
        # Another queue goes first next time, so that none starves.
        self._queues.append(self._queues.pop(0))
        return started

    @property
    def is_open(self) -> bool:
        """May jobs be taken at all?"""
        return not (self.is_stopping or self._active.solitude.is_wanted or self._worker_id() is None)

    def look_again(self) -> None:
        """Jobs may be taken that could not be taken before."""
        self.on_slot_free()

    async def _reserve(self) -> int:
        reserved = 0
        while not self._slots.locked():
            await self._slots.acquire()
            reserved += 1
        return reserved

    async def _take(self, queue: str, reserved: int) -> int:
        before = time.monotonic()
        taken = 0
        try:
            if (worker_id := self._worker_id()) is None:
                return 0
            acquired = await self._store.acquire(queue, reserved, worker_id)
            self._metrics.acquire_conflicts.inc(acquired.settled)
            for attempt in acquired.attempts:
                self._start(attempt, before, cancelled=acquired.cancelled)
                taken += 1
            return taken
        finally:
            for _ in range(reserved - taken):
                self._slots.release()

    def _start(self, attempt: Attempt, acquired_at: float, *, cancelled: frozenset[JobId]) -> None:
        job = ActiveJob(attempt, acquired_at, self._holds_seconds)
        self._active.add(job)
        self._metrics.concurrent_jobs.inc()
        log.info("job_acquired", job_id=str(attempt.job_id), queue=attempt.queue, attempt=attempt.number)
        task = asyncio.create_task(self._run(job), name=f"job-{attempt.job_id}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        if attempt.job_id in cancelled:
            job.stop(Cancelled())

    async def _run(self, job: ActiveJob) -> None:
        job.task = asyncio.current_task()
        try:
            await self._execute(job)
        except Exception:
            # The lease runs out and recovery gives the job to somebody else.
            log.exception("job_abandoned", job_id=str(job.attempt.job_id))
        finally:
            self._active.remove(job)
            self._metrics.concurrent_jobs.dec()
            self._slots.release()
            self.on_slot_free()
