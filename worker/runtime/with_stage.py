"""The wrapper around every stage: timeline, timing, log context, and errors that know their class."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import structlog
from structlog.contextvars import bound_contextvars

from worker.domain.job import StageName
from worker.domain.progress import overall
from worker.errors import LeaseLost
from worker.jobs.store import JobStore
from worker.runtime.active import ActiveJob
from worker.runtime.classify import classify
from worker.runtime.persist import persist
from worker.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)

#: of the task that asks: stages may run side by side
_current_stage: ContextVar[StageName] = ContextVar("current_stage", default=StageName.RESOLVE)


class StageReport:
    """What stages see of the outside."""

    def __init__(self, job: ActiveJob, store: JobStore) -> None:
        self._job = job
        self._store = store

    async def event(self, kind: str, data: Mapping[str, Any] | None = None) -> None:
        stage = _current_stage.get()
        detail = {"stage": stage, **(data or {})}
        await persist(self._job, lambda: self._store.note(self._job.lease, kind, detail, stage=stage))

    def progress(self, fraction: float) -> None:
        self._job.progress = max(self._job.progress, overall(_current_stage.get(), fraction))


@asynccontextmanager
async def with_stage(job: ActiveJob, name: StageName, *, report: StageReport, metrics: Metrics) -> AsyncIterator[None]:
    """Run the body as a stage. Leaves with a JobError, LeaseLost, or the cancellation that stopped it."""
    _current_stage.set(name)
    with bound_contextvars(stage=str(name)):
        await report.event("stage:started")
        # Frozen or starved behind that write: the next look at leases may come after the work has begun.
        await job.go_on()
        report.progress(0.0)
        started = time.monotonic()
        try:
            yield
        except (LeaseLost, asyncio.CancelledError):
            raise
        except Exception as exc:
            error = classify(exc)
            log.warning("stage_failed", code=error.code, error=str(error), exc_info=error is not exc)
            job.timings_ms[name] = _ms_since(started)
            await report.event("stage:failed", {"code": error.code, "message": str(error), "ms": _ms_since(started)})
            raise error from exc
        else:
            job.timings_ms[name] = _ms_since(started)
            report.progress(1.0)
            await report.event("stage:finished", {"ms": _ms_since(started)})
        finally:
            metrics.stage_duration.labels(stage=name).observe(time.monotonic() - started)


def _ms_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
