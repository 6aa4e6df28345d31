"""`python -m tests.chaos.worker_main`: a real worker whose jobs may ask for trouble, and whose store may find it."""

import os

from tests.chaos.clock import shift_wall_clock

if float(os.environ.get("CHAOS_CLOCK_SHIFT_SEC", "0")):
    # before anything can take a copy of the clock
    shift_wall_clock(float(os.environ["CHAOS_CLOCK_SHIFT_SEC"]))

import asyncio
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

from tests.chaos.failpoints import FailpointPlan, Failpoints, Leases, Tracing, traced
from tests.chaos.stages import chaos_courses
from tests.chaos.trace import TraceWriter
from worker import app as composition
from worker.app import media_courses, open_app, open_worker
from worker.continuation.store import RunStore
from worker.errors import ClipbossError
from worker.jobs.recovery import ScanReport, StaleLeases
from worker.jobs.store import JobStore
from worker.runtime.supervisor import stop_on_signals
from worker.settings import Settings, load_settings
from worker.stages.base import Courses
from worker.storage.base import Storage
from worker.telemetry.logs import configure_logging


def store_class() -> type[JobStore]:
    if os.environ.get("CHAOS_STORE") == "unfenced":
        from tests.integration.leases.unfenced import UnfencedStore  # noqa: PLC0415 - only where it is asked for

        return UnfencedStore
    return JobStore


def leases_class(trace: TraceWriter) -> type[StaleLeases]:
    class TracedLeases(StaleLeases):
        async def recover(self, *, silent_are_dead: bool) -> ScanReport:
            before = time.monotonic()
            report = await super().recover(silent_are_dead=silent_are_dead)
            trace.record("scan", before=before, silent_are_dead=silent_are_dead)
            return report

    return TracedLeases


async def main() -> None:
    settings = load_settings()
    configure_logging(settings.log_format, settings.log_level)
    name = os.environ["CHAOS_PROCESS"]
    trace = TraceWriter(Path(os.environ["CHAOS_TRACES"]) / f"{name}.jsonl", name)
    trace.record("boot", pid=os.getpid())
    plan = FailpointPlan(float(os.environ.get("CHAOS_FAILPOINT_PROBABILITY", "0")), os.environ.get("CHAOS_SEED", name))
    leases = Leases()
    composition.StaleLeases = leases_class(trace)  # type: ignore[misc]
    store = traced(store_class(), Tracing(leases, trace, Failpoints(plan, trace)))

    async def courses(settings: Settings, storage: Storage, runs: RunStore, stack: AsyncExitStack) -> Courses:
        return chaos_courses(await media_courses(settings, storage, runs, stack), storage, leases, trace)

    async with (
        open_app(settings, role="worker") as app,
        open_worker(app, make_courses=courses, make_store=store) as supervisor,
    ):
        trace.record("ready")
        stop_on_signals(supervisor.stop)
        await supervisor.run(drain="--drain" in sys.argv)
    trace.record("stopped")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except ClipbossError as exc:
        sys.exit(f"{exc.code}: {exc}")
