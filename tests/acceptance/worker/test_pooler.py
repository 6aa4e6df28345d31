"""Workers behind PgBouncer in transaction mode, where each statement may meet another backend."""

import asyncio
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.chaos.pgbouncer import find_pgbouncer, pgbouncer
from tests.processes import Bench, children_of, terminate
from worker.db.pool import open_pool
from worker.domain.job import JobStatus

pytestmark = pytest.mark.skipif(
    find_pgbouncer() is None, reason="pgbouncer is not installed (on Debian: apt install pgbouncer)"
)

#: fewer than two workers would take by themselves
BACKENDS = 3


@pytest.fixture
def pooled_dsn(dsn: str) -> Iterator[str]:
    parts = urlsplit(dsn)
    user, password, database = parts.username or "", parts.password or "", parts.path.strip("/")
    with pgbouncer(
        parts.port or 5432, password, host=parts.hostname or "127.0.0.1", user=user, database=database, size=BACKENDS
    ) as port:
        yield urlunsplit(parts._replace(netloc=f"{user}:{password}@127.0.0.1:{port}"))


async def test_pooler_is_recognised_and_nothing_is_prepared(pooled_dsn: str) -> None:
    pool = await open_pool(pooled_dsn, name="clipboss:test", size=2)
    try:
        for _ in range(3):
            async with pool.acquire() as one, pool.acquire() as other:
                assert await asyncio.gather(one.fetchval("SELECT $1::int", 1), other.fetchval("SELECT $1::int", 2)) == [
                    1,
                    2,
                ]
        named = "SELECT count(*) FROM pg_prepared_statements WHERE name <> ''"
        assert await pool.fetchval(named) == 0
    finally:
        await pool.close()


async def test_two_workers_share_three_backends_and_do_real_jobs(bench: Bench, pooled_dsn: str) -> None:
    source = str(bench.media / "talk.mp4")
    jobs = [await bench.submit(source=source, start=n * 0.5, end=n * 0.5 + 1, mode="smart") for n in range(8)]
    ends = [asyncio.create_task(bench.run("run", "--drain", DATABASE_URL=pooled_dsn)) for _ in range(2)]
    backends = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name LIKE 'clipboss:%'"
    )
    most = 0
    while not all(end.done() for end in ends):
        most = max(most, await bench.room.pool.fetchval(backends))
        await asyncio.sleep(0.02)

    assert [end.result().returncode for end in ends] == [0, 0], [end.result().stderr for end in ends]
    for job_id in jobs:
        job = await bench.job(job_id)
        assert (job.status, job.attempt_count) == (JobStatus.DONE, 0), job.error_message
        assert job.result is not None
        assert job.result["frames"] == 30
    assert 1 <= most <= BACKENDS


async def test_job_is_handed_back_through_the_pooler_and_done_by_the_next_worker(bench: Bench, pooled_dsn: str) -> None:
    job_id = await bench.submit(source=str(bench.media / "talk.mp4"), mode="exact", renditions=[90, 60])
    with bench.worker(DATABASE_URL=pooled_dsn, SHUTDOWN_TIMEOUT_SEC="0") as worker:
        await bench.wait_for_event(job_id, "stage:started", "clip")
        terminate(worker)
        assert await asyncio.to_thread(worker.wait, 20) == 0
    with bench.worker(DATABASE_URL=pooled_dsn):
        job = await bench.wait_for(job_id, JobStatus.DONE)
    assert job.attempt_count == 0


async def test_cancel_is_heard_with_a_beat_though_nobody_rings(bench: Bench, pooled_dsn: str) -> None:
    job_id = await bench.submit(source=str(bench.media / "talk.mp4"), mode="exact", quality="best")
    with bench.worker(DATABASE_URL=pooled_dsn, HEARTBEAT_INTERVAL_SEC="0.5") as worker:
        await bench.wait_for_event(job_id, "stage:started", "clip")
        for child in await children_of(worker):
            # so that it cannot be done before it hears
            child.suspend()
        await bench.room.desk.cancel(job_id)
        await bench.wait_for(job_id, JobStatus.CANCELLED)
