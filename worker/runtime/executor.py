"""Runs one acquired job: through its stages, to an outcome, to a step, into the database."""

import asyncio
import time
from contextlib import AsyncExitStack
from functools import partial
from typing import assert_never

import structlog
from structlog.contextvars import bound_contextvars

from worker.continuation.store import RunStore
from worker.domain.decide import Drop, Finish, GiveUp, MarkCancelled, Release, Requeue, Step, decide
from worker.domain.outcome import Done, Ending, Failed, LeaseLost, Outcome, PageDone, Snoozed, Split
from worker.errors import JobError, JobTimeout
from worker.errors import LeaseLost as LeaseLostError
from worker.jobs.store import JobStore
from worker.runtime.active import ActiveJob
from worker.runtime.classify import classify
from worker.runtime.persist import persist
from worker.runtime.scratch import Scratch
from worker.runtime.side_by_side import side_by_side
from worker.runtime.solitude import Solitude
from worker.runtime.tally import Tally
from worker.runtime.with_stage import StageReport, with_stage
from worker.stages.base import Courses, Stage, Work
from worker.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)

#: we stop a job ourselves this long before pg-boss's supervisor would take it away
TIME_LIMIT_MARGIN_SECONDS = 2.0


class Executor:
    def __init__(
        self,
        courses: Courses,
        *,
        store: JobStore,
        runs: RunStore,
        scratch: Scratch,
        solitude: Solitude,
        tally: Tally,
        metrics: Metrics,
    ) -> None:
        self._courses = courses
        self._store = store
        self._runs = runs
        self._scratch = scratch
        self._solitude = solitude
        self._tally = tally
        self._metrics = metrics

    async def run(self, job: ActiveJob) -> None:
        """Never raises for a reason that lies in the job."""
        started = time.monotonic()
        with bound_contextvars(job_id=str(job.attempt.job_id), attempt=job.attempt.number):
            outcome = job.stop_reason or await self._attempt(job)
            job.is_recording = True
            step = decide(job.attempt, outcome)
            recorded = step if await self._record(job, step) else Drop()
            self._tell(job, recorded, time.monotonic() - started)

    async def _attempt(self, job: ActiveJob) -> Outcome:
        limit = asyncio.timeout_at(_time_limit(job))
        try:
            async with limit:
                return await self._run_stages(job)
        except LeaseLostError:
            return job.stop_reason or LeaseLost()
        except asyncio.CancelledError:
            if job.stop_reason is None:
                raise
            if (task := asyncio.current_task()) is not None:
                task.uncancel()  # what follows is the orderly end, not part of what was cancelled
            return job.stop_reason
        except Exception as exc:  # noqa: BLE001 - whatever went wrong becomes the attempt's outcome
            if job.stop_reason is not None:
                return job.stop_reason  # what breaks while a job is being stopped is not its fault
            if limit.expired():
                return Failed(JobTimeout(f"the job took longer than its limit of {job.attempt.expire_seconds} s"))
            return Failed(classify(exc))

    async def _run_stages(self, job: ActiveJob) -> Ending:
        report = StageReport(job, self._store)
        async with (
            self._solitude.seat(alone=job.attempt.is_suspect),
            self._scratch.room_for(job.lease) as scratch,
            AsyncExitStack() as resources,
        ):
            if job.attempt.is_suspect:
                await report.event("isolated", {"crashes": job.attempt.crash_count})
            reserve = partial(self._scratch.reserve, scratch)
            work = Work(job.attempt.job_id, job.attempt.spec, scratch, report, resources, reserve)
            for stages in self._courses.of(job.attempt.queue):
                await side_by_side([partial(self._run_stage, job, stage, work, report) for stage in stages])
                if work.ending is not None:
                    return work.ending
        return Done({**work.result, "timings_ms": dict(job.timings_ms)})

    async def _run_stage(self, job: ActiveJob, stage: Stage, work: Work, report: StageReport) -> None:
        async with with_stage(job, stage.name, report=report, metrics=self._metrics):
            await stage.run(work)

    async def _record(self, job: ActiveJob, step: Step) -> bool:
        """An error here is not an error of the job: the write is repeated until the lease is over."""
        try:
            await persist(job, lambda: self._write(job, step), however_late=isinstance(step, Release))
            return True
        except LeaseLostError as exc:
            self._metrics.lease_lost.inc()
            log.warning("lease_lost", reason=str(exc))
            return False

    async def _write(self, job: ActiveJob, step: Step) -> None:
        match step:
            case Finish(result):
                await self._store.finish(job.lease, result)
            case Split():
                await self._runs.begin(job.lease, step)
            case Snoozed():
                await self._runs.snooze(job.lease, step)
            case PageDone():
                await self._runs.finish_page(job.lease, step)
            case Requeue(error):
                await self._store.requeue(job.lease, error)
            case GiveUp(error):
                await self._store.give_up(job.lease, error)
            case MarkCancelled():
                await self._store.mark_cancelled(job.lease)
            case Release(reason):
                await self._store.release(job.lease, reason)
            case Drop():
                self._metrics.lease_lost.inc()
            case _:
                assert_never(step)

    def _tell(self, job: ActiveJob, step: Step, seconds: float) -> None:
        outcome, error = _words(step)
        self._metrics.job_duration.labels(queue=job.attempt.queue, outcome=outcome).observe(seconds)
        if isinstance(step, Requeue):
            self._metrics.retry_attempts.labels(code=step.error.code).inc()
        if error is not None:
            self._tally.note_error(job.attempt, error)
        elif isinstance(step, Finish | PageDone):
            self._tally.note_success(job.attempt)
        detail = {"code": error.code, "error": str(error)} if error else {}
        log.info("job_ended", outcome=outcome, seconds=round(seconds, 3), queue=job.attempt.queue, **detail)


def _time_limit(job: ActiveJob) -> float:
    """In the loop's time, which is monotonic time. pg-boss counts from the acquire, waiting included."""
    seconds = max(1.0, job.attempt.expire_seconds - TIME_LIMIT_MARGIN_SECONDS)
    return asyncio.get_running_loop().time() + seconds - (time.monotonic() - job.acquired_at)


def _words(step: Step) -> tuple[str, JobError | None]:
    match step:
        case Finish() | PageDone():
            return "done", None
        case Split():
            return "split", None
        case Snoozed():
            return "snoozed", None
        case Requeue(error):
            return "retried", error
        case GiveUp(error):
            return "failed", error
        case MarkCancelled():
            return "cancelled", None
        case Release():
            return "handed_back", None
        case Drop():
            return "dropped", None
