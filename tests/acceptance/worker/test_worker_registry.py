"""Real workers in the registry: who is seen alive and dead, and that the counts are those of the timelines."""

import asyncio
import json
import signal
import subprocess
import time
from contextlib import ExitStack
from typing import Any
from uuid import UUID

import pytest

from tests.processes import Bench, eventually
from tests.servers import RangeServer
from worker.domain.job import JobStatus
from worker.jobs.workers import WorkerRows, WorkerSummary

DONE, FAILED = JobStatus.DONE, JobStatus.FAILED
INTERVAL = 2.0
QUICK = {"HEARTBEAT_INTERVAL_SEC": str(INTERVAL), "LEASE_TIMEOUT_SEC": "8", "MAX_CONCURRENCY": "2"}
#: slow enough that a job can be met in the middle of its clip stage
TRICKLE = 40_000
EVENTS = """
SELECT worker_id, count(*) FILTER (WHERE kind = 'done') AS done,
       count(*) FILTER (WHERE kind IN ('failed', 'retry:scheduled')) AS errors
FROM worker.job_events WHERE worker_id IS NOT NULL GROUP BY worker_id
"""
BY_QUEUE = """
SELECT event.worker_id, queue, count(*) FROM worker.job_events AS event JOIN worker.jobs AS job ON job.id = event.job_id
WHERE event.worker_id IS NOT NULL AND kind IN ('done', 'failed', 'retry:scheduled') GROUP BY event.worker_id, queue
"""

pytestmark = pytest.mark.timeout(180)


async def listing(bench: Bench) -> list[WorkerSummary]:
    return await WorkerRows(bench.room.pool, bench.room.queue).listing(with_stopped=True)


async def told(bench: Bench, *args: str) -> list[dict[str, Any]]:
    done = await bench.run("workers", "--json", *args)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


async def registered(bench: Bench, count: int) -> list[WorkerSummary]:
    async def all_there() -> list[WorkerSummary] | None:
        found = await listing(bench)
        return found if len(found) == count else None

    return await eventually(all_there, seconds=60, tell=bench.log)


async def is_counted(bench: Bench) -> bool:
    """Does every row say what the timelines say, in all and by queue?"""
    found = await listing(bench)
    events = {row["worker_id"]: (row["done"], row["errors"]) for row in await bench.room.pool.fetch(EVENTS)}
    by_queue = {(row["worker_id"], row["queue"]): row["count"] for row in await bench.room.pool.fetch(BY_QUEUE)}
    counted = {(worker.id, each.queue): each.processed for worker in found for each in worker.queues if each.processed}
    in_all = {worker.id: (worker.successes, worker.errors) for worker in found}
    return in_all == {worker.id: events.get(worker.id, (0, 0)) for worker in found} and counted == by_queue


async def send_a_mixture(bench: Bench, origin: RangeServer) -> list[UUID]:
    """Jobs that are done, one of them in pages, jobs that fail at once, and jobs that fail three times."""
    source = (bench.media / "talk.mp4").as_uri()
    specs: list[dict[str, object]] = [
        *({"source": source, "start": n * 0.3, "end": n * 0.3 + 0.5, "mode": "audio"} for n in range(6)),
        *({"source": (bench.media / f"missing-{n}.mp4").as_uri()} for n in range(3)),
        *({"source": f"http://127.0.0.1:1/refused-{n}.mp4"} for n in range(2)),
        {"source": source, "start": 0, "end": 6, "mode": "exact", "pages": {"seconds": 3}},
    ]
    return [await bench.submit(**spec) for spec in specs]


async def test_killed_worker_is_seen_dead_within_two_intervals_and_counts_are_those_of_the_timelines(
    bench: Bench, origin: RangeServer
) -> None:
    with ExitStack() as stack:
        processes = [stack.enter_context(bench.worker(**QUICK)) for _ in range(3)]
        by_pid = {worker.pid: worker for worker in await registered(bench, 3)}
        assert set(by_pid) == {process.pid for process in processes}
        for job_id in await send_a_mixture(bench, origin):
            await bench.wait_for(job_id, DONE, FAILED, seconds=90)
        await eventually(lambda: is_counted(bench), tell=bench.log)
        before = await listing(bench)
        assert sum(worker.successes for worker in before) > 7, "six clips, pages, and the job they are of"
        assert sum(worker.errors for worker in before) == 3 + 2 * 3
        assert {each.queue for worker in before for each in worker.queues} == {"clip", "clip.page"}

        origin.bytes_per_second = TRICKLE
        job_id = await bench.submit(source=origin.url("talk.mp4"))
        await bench.wait_for_event(job_id, "stage:started", "clip")
        holder = (await bench.job(job_id)).worker_id
        (shown,) = [worker for worker in await told(bench) if worker["id"] == str(holder)]
        assert [(job["id"], job["stage"]) for job in shown["jobs"]] == [(str(job_id), "clip")]
        (victim,) = [process for process in processes if by_pid[process.pid].id == holder]
        victim.kill()
        await wait_until_dead(bench, holder, within=2 * INTERVAL)
        assert {worker["id"]: worker["state"] for worker in await told(bench)}[str(holder)] == "dead"

        origin.bytes_per_second = None
        job = await bench.wait_for(job_id, DONE)
        assert (job.attempt_count, job.crash_count) == (1, 1)
        assert job.worker_id not in {None, holder}
        await stop([process for process in processes if process is not victim])
    assert await is_counted(bench), await listing(bench)
    ended = {worker["id"]: worker["state"] for worker in await told(bench, "--all")}
    assert ended == {str(worker.id): "dead" if worker.id == holder else "stopped" for worker in by_pid.values()}
    assert [worker["id"] for worker in await told(bench)] == [str(holder)]


async def test_worker_whose_row_vanished_goes_on_under_a_new_id_and_finishes_what_it_holds(
    bench: Bench, origin: RangeServer
) -> None:
    with bench.worker(**QUICK) as process:
        (first,) = await registered(bench, 1)
        origin.bytes_per_second = TRICKLE
        job_id = await bench.submit(source=origin.url("talk.mp4"))
        await bench.wait_for_event(job_id, "stage:started", "clip")
        await bench.room.pool.execute("DELETE FROM worker.worker_process")
        assert [(worker.id, worker.state) for worker in await listing(bench)] == [(first.id, "unregistered")]

        async def is_back() -> WorkerSummary | None:
            return next((worker for worker in await listing(bench) if worker.id != first.id), None)

        second = await eventually(is_back, tell=bench.log)
        assert second.pid == process.pid == first.pid
        origin.bytes_per_second = None
        job = await bench.wait_for(job_id, DONE)
        assert (job.worker_id, job.attempt_count) == (first.id, 0)
        other = await bench.wait_for(await bench.submit(source=origin.url("talk.mp4"), end=1), DONE)
        assert other.worker_id == second.id
        await stop([process])
    (last,) = await listing(bench)
    assert (last.id, last.state, last.successes) == (second.id, "stopped", 2)


async def wait_until_dead(bench: Bench, worker_id: UUID | None, *, within: float) -> None:
    async def is_dead() -> bool:
        return any(worker.id == worker_id and worker.state == "dead" for worker in await listing(bench))

    killed_at = time.monotonic()
    await eventually(is_dead, seconds=within + 5)
    assert time.monotonic() - killed_at < within + 0.5  # we look now and then only


async def stop(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        assert await asyncio.to_thread(process.wait, 30) == 0
