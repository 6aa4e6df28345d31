"""The jobs this process holds right now, and how each can be told to stop."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import structlog

from worker.domain.job import Attempt, JobId, Lease
from worker.domain.outcome import AbortReason, Cancelled, HandedBack, LeaseLost
from worker.runtime.solitude import Solitude

log = structlog.get_logger(__name__)

StopReason = Cancelled | HandedBack | LeaseLost


@dataclass(eq=False, slots=True)
class ActiveJob:
    attempt: Attempt
    #: monotonic time before the last confirmed beat (at first: before the acquire)
    renewed_at: float
    #: how long after that the lease holds, with a margin for stopping in time
    holds_seconds: float
    acquired_at: float = field(init=False)
    #: set once it runs: a task that is cancelled before that would never run, not even to give the job back
    task: asyncio.Task[None] | None = None
    stop_reason: StopReason | None = None
    #: 0 … 1 over all stages
    progress: float = 0.0
    timings_ms: dict[str, int] = field(default_factory=dict)
    #: the work is over and its outcome is being written; stopping can change nothing any more
    is_recording: bool = False

    def __post_init__(self) -> None:
        self.acquired_at = self.renewed_at

    @property
    def lease(self) -> Lease:
        return self.attempt.lease

    @property
    def deadline(self) -> float:
        """Monotonic time at which we must assume that the lease is gone."""
        return self.renewed_at + self.holds_seconds

    @property
    def is_expired(self) -> bool:
        return time.monotonic() >= self.deadline

    def stop(self, reason: StopReason) -> None:
        """Interrupt the work, or do not let it begin; the first reason counts."""
        if self.stop_reason is None and not self.is_recording:
            self.stop_reason = reason
            if self.task is not None:
                self.task.cancel()

    def stop_if_expired(self) -> bool:
        """Self-fencing: work on a lease that we could not renew in time ends before it can start elsewhere."""
        if not self.is_expired or self.stop_reason is not None or self.is_recording:
            return False
        log.error("lease_expired", job_id=str(self.lease.job_id))
        self.stop(HandedBack(AbortReason.CUT_OFF))
        return True

    async def go_on(self) -> None:
        """Ends whoever was told to stop, or must be told now. A cancellation may have got lost on its way: what is
        awaited may come to its end in the same moment, or end with an error of its own instead."""
        if self.stop_if_expired() or self.stop_reason is not None:
            await asyncio.sleep(0)  # it arrives here, if it is still under way
            raise asyncio.CancelledError


class ActiveJobs:
    def __init__(self) -> None:
        self._jobs: dict[JobId, ActiveJob] = {}
        self.solitude = Solitude()
        self._emptied = asyncio.Event()
        self._emptied.set()

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[ActiveJob]:
        return iter(list(self._jobs.values()))

    def get(self, job_id: JobId) -> ActiveJob | None:
        return self._jobs.get(job_id)

    def add(self, job: ActiveJob) -> None:
        if (older := self._jobs.get(job.attempt.job_id)) is not None:
            # It was taken from us and came back: from here on nobody would fence the attempt before.
            older.stop(LeaseLost())
        self._jobs[job.attempt.job_id] = job
        self._emptied.clear()

    def remove(self, job: ActiveJob) -> None:
        # The same job may have been acquired anew while a lost attempt was still being cleaned up.
        if self._jobs.get(job.attempt.job_id) is job:
            del self._jobs[job.attempt.job_id]
        if not self._jobs:
            self._emptied.set()

    async def wait_empty(self) -> None:
        await self._emptied.wait()
