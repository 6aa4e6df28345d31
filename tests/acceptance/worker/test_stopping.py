"""Signals, crashes and cancels: no job is lost, no child is left."""

import asyncio
import signal
import time

import pytest

from tests.jobs import both_tables
from tests.processes import Bench, all_gone, children_of, eventually
from tests.servers import RangeServer
from worker.domain.job import JobStatus
from worker.media.ffmpeg import find_ffmpeg

DONE, QUEUED, CANCELLED = JobStatus.DONE, JobStatus.QUEUED, JobStatus.CANCELLED

#: slow enough that a job can be met in the middle of its clip stage
TRICKLE = 40_000


async def exit_code(process: object) -> int:
    return await asyncio.to_thread(process.wait, 30)  # type: ignore[attr-defined]


async def test_sigterm_lets_a_running_job_finish(bench: Bench, origin: RangeServer) -> None:
    job_id = await bench.submit(source=origin.url("talk.mp4"))
    origin.bytes_per_second = 300_000
    with bench.worker() as worker:
        await bench.wait_for_event(job_id, "stage:started", "clip")
        children = await children_of(worker)
        worker.send_signal(signal.SIGTERM)
        assert await exit_code(worker) == 0
    assert (await bench.job(job_id)).status == DONE
    assert await all_gone(children, seconds=2)


async def test_job_that_takes_too_long_to_finish_is_handed_back_and_done_by_the_next_worker(
    bench: Bench, origin: RangeServer
) -> None:
    job_id = await bench.submit(source=origin.url("talk.mp4"))
    origin.bytes_per_second = TRICKLE
    with bench.worker(SHUTDOWN_TIMEOUT_SEC="0.5") as worker:
        await bench.wait_for_event(job_id, "stage:started", "clip")
        children = await children_of(worker)
        worker.send_signal(signal.SIGTERM)
        assert await exit_code(worker) == 0
    assert await all_gone(children, seconds=2)
    kinds = [event.kind for event in await bench.room.desk.events(job_id)]
    assert kinds[-1] == "aborted:shutdown"
    assert await both_tables(bench.room, job_id) == ("processing", "active")
    assert not list((bench.scratch / "jobs").iterdir())
    origin.bytes_per_second = None
    assert (await bench.run("run", "--drain")).returncode == 0
    job = await bench.job(job_id)
    assert (job.status, job.attempt_count) == (DONE, 0)


async def test_second_signal_does_not_wait(bench: Bench, origin: RangeServer) -> None:
    job_id = await bench.submit(source=origin.url("talk.mp4"))
    origin.bytes_per_second = TRICKLE
    with bench.worker(SHUTDOWN_TIMEOUT_SEC="300") as worker:
        await bench.wait_for_event(job_id, "stage:started", "clip")
        worker.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.3)
        assert worker.poll() is None
        worker.send_signal(signal.SIGTERM)
        assert await exit_code(worker) == 0
    assert [event.kind for event in await bench.room.desk.events(job_id)][-1] == "aborted:shutdown"


async def test_idle_worker_stops_at_once(bench: Bench) -> None:
    with bench.worker() as worker:
        await eventually(lambda: asyncio.to_thread(lambda: "worker_started" in bench.log()))
        started = time.monotonic()
        worker.send_signal(signal.SIGINT)
        assert await exit_code(worker) == 0
        assert time.monotonic() - started < 5


async def test_killed_worker_leaves_no_child_and_its_job_is_done_by_another(bench: Bench, origin: RangeServer) -> None:
    job_id = await bench.submit(source=origin.url("talk.mp4"))
    origin.bytes_per_second = TRICKLE
    short = {"LEASE_TIMEOUT_SEC": "2", "HEARTBEAT_INTERVAL_SEC": "0.5"}
    with bench.worker(**short) as worker:
        await bench.wait_for_event(job_id, "stage:started", "clip")
        children = await children_of(worker)
        worker.kill()
        assert await all_gone(children, seconds=2)
    origin.bytes_per_second = None
    with bench.worker(**short):
        job = await bench.wait_for(job_id, DONE)
    assert (job.attempt_count, job.crash_count) == (1, 1)
    kinds = [event.kind for event in await bench.room.desk.events(job_id)]
    assert "requeued:stale" in kinds
    # The scratch of the dead worker was swept by the living one.
    assert not list((bench.scratch / "jobs").iterdir())


async def test_cancel_of_a_running_job_takes_less_than_two_seconds(bench: Bench, origin: RangeServer) -> None:
    job_id = await bench.submit(source=origin.url("talk.mp4"))
    origin.bytes_per_second = TRICKLE
    with bench.worker() as worker:
        await bench.wait_for_event(job_id, "stage:started", "clip")
        children = await children_of(worker)
        await bench.room.desk.cancel(job_id)
        await bench.wait_for(job_id, CANCELLED, seconds=2)
        assert await both_tables(bench.room, job_id) == ("cancelled", "cancelled")
        assert await all_gone(children, seconds=1)
        assert not list((bench.scratch / "jobs").iterdir())
        # and it goes on working
        origin.bytes_per_second = None
        await bench.wait_for(await bench.submit(source=origin.url("talk.mp4"), end=1), DONE)


async def test_cancel_by_a_node_producer_stops_the_work(bench: Bench, origin: RangeServer) -> None:
    job_id = await bench.submit(source=origin.url("talk.mp4"))
    origin.bytes_per_second = TRICKLE
    with bench.worker(HEARTBEAT_INTERVAL_SEC="0.3"):
        await bench.wait_for_event(job_id, "stage:started", "clip")
        await bench.room.queue.cancel("clip", [job_id])
        await bench.wait_for(job_id, CANCELLED, seconds=5)


async def test_job_over_its_time_limit_is_retried_and_then_exhausted(bench: Bench, origin: RangeServer) -> None:
    origin.bytes_per_second = TRICKLE
    job_id = await bench.room.desk.submit(
        "clip", {"source": origin.url("talk.mp4")}, {"expireInSeconds": 3, "retryLimit": 1}
    )
    assert job_id is not None
    with bench.worker():
        job = await bench.wait_for(job_id, JobStatus.FAILED)
    assert job.error_code == "RETRIES_EXHAUSTED"
    assert "JOB_TIMEOUT" in (job.error_message or "")
    assert job.attempt_count == 2


@pytest.mark.timeout(90)
async def test_worker_outlives_a_database_that_drops_every_connection(bench: Bench, origin: RangeServer) -> None:
    origin.bytes_per_second = 300_000
    job_id = await bench.submit(source=origin.url("talk.mp4"))
    with bench.worker(HEARTBEAT_INTERVAL_SEC="0.3"):
        await bench.wait_for_event(job_id, "stage:started", "clip")
        await bench.room.pool.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name LIKE 'clipboss:%' AND datname = current_database()"
        )
        job = await bench.wait_for(job_id, DONE)
        assert job.attempt_count == 0
        origin.bytes_per_second = None
        second = await bench.submit(source=origin.url("talk.mp4"), end=1)
        await bench.wait_for(second, DONE)


async def test_child_that_ignores_sigterm_holds_up_neither_cancel_nor_exit(bench: Bench, origin: RangeServer) -> None:
    stubborn = bench.scratch / "ffmpeg"
    stubborn.write_text(
        f'#!/bin/sh\ncase "$*" in *-i*) ;; *) exec {find_ffmpeg(None)} "$@" ;; esac\n'
        "trap '' TERM\nwhile :; do sleep 0.1; done\n"
    )
    stubborn.chmod(0o755)
    cancelled, handed_back = (
        await bench.submit(source=origin.url("talk.mp4")),
        await bench.submit(source=origin.url("talk.mp4"), end=1),
    )
    with bench.worker(FFMPEG=str(stubborn), SHUTDOWN_TIMEOUT_SEC="0") as worker:
        await bench.wait_for_event(cancelled, "stage:started", "clip")
        await bench.wait_for_event(handed_back, "stage:started", "clip")
        children = await children_of(worker)
        await bench.room.desk.cancel(cancelled)
        await bench.wait_for(cancelled, CANCELLED, seconds=7)
        worker.send_signal(signal.SIGTERM)
        assert await exit_code(worker) == 0
    assert await all_gone(children, seconds=1)
    assert [event.kind for event in await bench.room.desk.events(handed_back)][-1] == "aborted:shutdown"
    assert not list((bench.scratch / "jobs").iterdir())
