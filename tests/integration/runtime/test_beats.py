"""Beats go on while the worker's loop is busy, and stop when it hangs."""

import asyncio
import time
from uuid import uuid4

import pytest

from tests.conftest import Room
from tests.jobs import one_attempt
from worker.domain.job import WorkerId
from worker.domain.outcome import Cancelled, LeaseLost
from worker.runtime.active import ActiveJob, ActiveJobs
from worker.runtime.heartbeat import Heartbeat
from worker.runtime.pulse import Pulse, Ticker
from worker.telemetry.metrics import Metrics


class Worker:
    """A job in hand, its beats, and a loop that ticks."""

    def __init__(self, room: Room, dsn: str, job: ActiveJob, *, stall_seconds: float) -> None:
        self.metrics = Metrics()
        active = ActiveJobs()
        active.add(job)
        self.ticker = Ticker(interval_seconds=0.05, stall_seconds=stall_seconds, metrics=self.metrics)
        beats = Heartbeat(
            dsn,
            room.store,
            active,
            name="beats",
            timeout_seconds=5,
            is_alive=self.ticker.is_moving,
            metrics=self.metrics,
        )
        self.pulse = Pulse("heartbeat", beats.run_once, beats.close, seconds=0.05)

    @property
    def beats(self) -> float:
        return float(self.metrics.registry.get_sample_value("worker_heartbeats_total") or 0)


@pytest.fixture
async def job(room: Room) -> ActiveJob:
    await room.desk.submit("clip", {})
    attempt = await one_attempt(room, WorkerId(uuid4()))
    job = ActiveJob(attempt, time.monotonic(), 30)
    job.task = asyncio.create_task(asyncio.Event().wait())  # type: ignore[arg-type]
    return job


async def reached(worker: Worker, beats: float) -> None:
    async with asyncio.timeout(10):
        while worker.beats < beats:
            await worker.ticker.run_once()
            await asyncio.sleep(0.01)


async def test_beats_go_on_while_the_loop_is_blocked_for_a_moment(room: Room, dsn: str, job: ActiveJob) -> None:
    worker = Worker(room, dsn, job, stall_seconds=30)
    worker.pulse.start()
    await reached(worker, 1)
    before, renewed = worker.beats, job.renewed_at
    time.sleep(1)  # blocks the loop, which is the point
    assert worker.beats >= before + 3
    assert job.renewed_at > renewed
    await worker.pulse.stop(timeout_seconds=5)


async def test_beats_stop_when_the_loop_hangs(room: Room, dsn: str, job: ActiveJob) -> None:
    worker = Worker(room, dsn, job, stall_seconds=0.3)
    worker.pulse.start()
    await reached(worker, 1)
    time.sleep(1)  # blocks the loop, which is the point
    after = worker.beats
    time.sleep(0.5)
    assert worker.beats == after
    await reached(worker, after + 1)  # moving again
    await worker.pulse.stop(timeout_seconds=5)


@pytest.mark.parametrize("reason", [Cancelled(), LeaseLost()])
async def test_what_a_beat_learns_reaches_the_job(
    room: Room, dsn: str, job: ActiveJob, reason: Cancelled | LeaseLost
) -> None:
    worker = Worker(room, dsn, job, stall_seconds=30)
    worker.pulse.start()
    if reason == Cancelled():
        await room.desk.cancel(job.attempt.job_id)
    else:
        await room.pool.execute("UPDATE pgboss.job SET retry_count = 9")
    assert job.task is not None
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(job.task, 10)
    assert job.stop_reason == reason
    await worker.pulse.stop(timeout_seconds=5)


async def test_beats_find_their_way_back_after_a_cut(room: Room, dsn: str, job: ActiveJob) -> None:
    worker = Worker(room, dsn, job, stall_seconds=30)
    worker.pulse.start()
    await reached(worker, 1)
    await room.pool.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'beats'")
    await reached(worker, worker.beats + 3)
    await worker.pulse.stop(timeout_seconds=5)
    job.task.cancel()  # type: ignore[union-attr]
