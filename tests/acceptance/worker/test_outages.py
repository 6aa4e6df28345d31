"""The database goes away, turns read-only, goes silent: the worker neither exits nor spins, and no job runs twice."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import psutil
import pytest

from tests.chaos.postgres import ChaosPostgres
from tests.chaos.proxy import FaultProxy, Mode
from tests.conftest import LEASE_SECONDS, Room
from tests.jobs import both_tables
from tests.processes import Bench, all_gone, children_of, eventually
from tests.servers import RangeServer
from worker.db.migrate import migrate
from worker.db.pool import open_pool
from worker.domain.job import JobStatus
from worker.jobs.desk import JobDesk
from worker.jobs.recovery import StaleLeases
from worker.jobs.store import JobStore
from worker.queue import PgBoss

DONE = JobStatus.DONE
LEASE = 6.0
#: what the workers of these tests run with
QUICK = {
    "LEASE_TIMEOUT_SEC": str(LEASE),
    "HEARTBEAT_INTERVAL_SEC": "0.5",
    "RECOVERY_SCAN_INTERVAL_SEC": "0.5",
    "POLL_INTERVAL_SEC": "0.5",
}
#: some 12 s for the talk
SLOW = 40_000

pytestmark = pytest.mark.timeout(120)


@dataclass
class Shaky:
    """A database of the test's own, a proxy in front of it, and workers that reach it through that only."""

    postgres: ChaosPostgres
    proxy: FaultProxy
    bench: Bench

    async def kinds(self, job_id: UUID) -> list[str]:
        return [event.kind for event in await self.bench.room.desk.events(job_id)]


@pytest.fixture
async def shaky(tmp_path: Path, media: Path) -> AsyncIterator[Shaky]:
    directory = tmp_path / "shaky"
    directory.mkdir()
    postgres = ChaosPostgres(directory)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(postgres.close)
        await postgres.start()
        assert postgres.port is not None
        proxy = await stack.enter_async_context(FaultProxy(postgres.port))
        pool = await open_pool(postgres.dsn(), name="tests")
        stack.callback(pool.terminate)
        queue = await PgBoss.install(pool)
        await migrate(pool, queue_schema=queue.schema)
        await queue.create_queue("clip", retry_limit=2, notify=True)
        leases = StaleLeases(pool, queue, lease_seconds=LEASE_SECONDS)
        room = Room(pool, queue, JobStore(pool, queue, LEASE_SECONDS), JobDesk(pool, queue), leases)
        yield Shaky(postgres, proxy, Bench(postgres.dsn(proxy.port), tmp_path, media, room, QUICK))


async def test_job_of_a_living_worker_runs_once_at_a_time_through_an_outage_of_two_leases(
    shaky: Shaky, origin: RangeServer
) -> None:
    bench = shaky.bench
    origin.bytes_per_second = SLOW
    job_id = await bench.submit(source=origin.url("talk.mp4"))
    with bench.worker() as first, bench.worker() as second:
        await bench.wait_for_event(job_id, "stage:started", "clip")
        children = await children_of(first, second)
        await shaky.postgres.stop()
        # Cut off, the holder stops by itself while nobody else could have started.
        assert await all_gone(children, seconds=LEASE)
        await asyncio.sleep(LEASE)
        origin.bytes_per_second = None
        await shaky.postgres.start()
        job = await bench.wait_for(job_id, DONE)
        assert first.poll() is second.poll() is None
    kinds = await shaky.kinds(job_id)
    turns = [kind for kind in kinds if kind in {"acquired", "aborted:cut-off", "requeued:handed-back", "done"}]
    assert turns == ["acquired", "aborted:cut-off", "requeued:handed-back", "acquired", "done"]
    assert "requeued:stale" not in kinds
    assert (job.attempt_count, job.crash_count) == (0, 0)


async def test_short_outage_costs_nothing(shaky: Shaky, origin: RangeServer) -> None:
    bench = shaky.bench
    origin.bytes_per_second = 150_000
    job_id = await bench.submit(source=origin.url("talk.mp4"))
    with bench.worker(LEASE_TIMEOUT_SEC="20") as worker:
        await bench.wait_for_event(job_id, "stage:started", "clip")
        await shaky.postgres.stop(immediate=True)
        # Long enough for the clip to be finished while nobody can be told.
        await asyncio.sleep(6)
        await shaky.postgres.start()
        job = await bench.wait_for(job_id, DONE)
        assert worker.poll() is None
    assert (await shaky.kinds(job_id)).count("acquired") == 1
    assert (job.attempt_count, job.crash_count) == (0, 0)


async def test_read_only_database_is_waited_for(shaky: Shaky, origin: RangeServer) -> None:
    bench = shaky.bench
    origin.bytes_per_second = 300_000
    job_id = await bench.submit(source=origin.url("talk.mp4"))
    with bench.worker(LEASE_TIMEOUT_SEC="20") as worker:
        await bench.wait_for_event(job_id, "stage:started", "clip")
        async with shaky.postgres.read_only():
            await asyncio.sleep(4)
        job = await bench.wait_for(job_id, DONE)
        assert job.attempt_count == 0
        await bench.wait_for(await bench.submit(source=origin.url("talk.mp4"), end=1), DONE)
        assert worker.poll() is None


async def test_pool_listener_and_beats_recover_from_connections_that_went_silent(
    shaky: Shaky, origin: RangeServer
) -> None:
    bench = shaky.bench
    # Hardly any polling: only a LISTEN that works can tell of the job in time.
    with bench.worker(POLL_INTERVAL_SEC="600") as worker:
        await eventually(lambda: asyncio.to_thread(lambda: "worker_started" in bench.log()))
        origin.bytes_per_second = SLOW
        job_id = await bench.submit(source=origin.url("talk.mp4"))
        await bench.wait_for_event(job_id, "stage:started", "clip")
        shaky.proxy.mode = Mode.BLACKHOLE
        await asyncio.sleep(2 * LEASE)
        spent = psutil.Process(worker.pid).cpu_times()
        await asyncio.sleep(3)
        busy = psutil.Process(worker.pid).cpu_times()
        assert (busy.user + busy.system) - (spent.user + spent.system) < 1.0
        # What hung in the hole never arrives: those connections are dead and only look alive.
        shaky.proxy.reset()
        shaky.proxy.mode = Mode.PASS
        origin.bytes_per_second = None
        await bench.wait_for(job_id, DONE)
        await bench.wait_for(await bench.submit(source=origin.url("talk.mp4"), end=1), DONE, seconds=20)
        assert worker.poll() is None


@pytest.mark.parametrize("silent", [False, True], ids=["stopped", "silent"])
async def test_exit_does_not_wait_for_a_database_that_is_away(
    shaky: Shaky, origin: RangeServer, *, silent: bool
) -> None:
    bench = shaky.bench
    origin.bytes_per_second = SLOW
    job_id = await bench.submit(source=origin.url("talk.mp4"))
    with bench.worker(SHUTDOWN_TIMEOUT_SEC="1", LEASE_TIMEOUT_SEC="20") as worker:
        await bench.wait_for_event(job_id, "stage:started", "clip")
        children = await children_of(worker)
        if silent:
            shaky.proxy.mode = Mode.BLACKHOLE
        else:
            await shaky.postgres.stop()
        worker.send_signal(signal.SIGTERM)
        started = time.monotonic()
        assert await asyncio.to_thread(worker.wait, 30) == 0
        assert time.monotonic() - started < 1 + 20
    assert await all_gone(children, seconds=2)


async def test_job_of_a_killed_worker_is_taken_over_within_lease_and_scan_interval(
    shaky: Shaky, origin: RangeServer
) -> None:
    bench = shaky.bench
    # Half a lease without any scan looks like an outage; a machine that is busy needs a moment to start another worker.
    lease, scan = 12.0, 1.0
    timing = {"LEASE_TIMEOUT_SEC": str(lease), "RECOVERY_SCAN_INTERVAL_SEC": str(scan)}
    origin.bytes_per_second = SLOW
    with bench.worker(**timing) as worker:
        # Scans have to have gone well for a lease before anybody counts as dead.
        await eventually(lambda: asyncio.to_thread(lambda: "worker_started" in bench.log()))
        await asyncio.sleep(lease)
        job_id = await bench.submit(source=origin.url("talk.mp4"))
        await bench.wait_for_event(job_id, "stage:started", "clip")
        worker.kill()
        killed_at = await bench.room.pool.fetchval("SELECT clock_timestamp()")
    origin.bytes_per_second = None
    with bench.worker(**timing):
        job = await bench.wait_for(job_id, DONE)
    events = await bench.room.desk.events(job_id)
    (requeued,) = [event for event in events if event.kind == "requeued:stale"]
    assert (requeued.at - killed_at).total_seconds() <= (lease + scan) * 1.1
    assert (job.attempt_count, job.crash_count) == (1, 1)
    assert await both_tables(bench.room, job_id) == ("done", "completed")
