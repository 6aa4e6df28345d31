"""A connection that dies in the middle of a write: all of it has happened or nothing, and repeating it does no harm."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import urlsplit

import asyncpg
import pytest

from tests.chaos.proxy import FaultProxy
from tests.conftest import LEASE_SECONDS
from tests.integration.continuation.long_jobs import CHAINS, LongJobs, pictures, split_into
from worker.continuation.store import RunStore
from worker.db.pool import Pool, open_pool
from worker.domain.outcome import PageDone, Snoozed
from worker.domain.paging import parse_page
from worker.errors import LeaseLost
from worker.jobs.store import JobStore
from worker.queue import PgBoss

Write = Callable[[RunStore], Awaitable[None]]
BROKEN = (OSError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError, asyncpg.AdminShutdownError)
TABLES = ("pgboss.job", "worker.jobs", "worker.job_events", "worker.runs", "worker.partition_progress", "worker.pages")
#: where a write is cut, in bytes of it that get through: in each statement, in some answers, and never
CUTS = (*range(50, 8000, 450), 10**9)


@pytest.fixture
async def proxy(dsn: str) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(urlsplit(dsn).port or 5432) as proxy:
        yield proxy


@pytest.fixture
async def far_pool(dsn: str, proxy: FaultProxy) -> AsyncIterator[Pool]:
    parts = urlsplit(dsn)
    through = parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{proxy.port}").geturl()
    pool = await open_pool(through, name="cut tests", size=1)
    yield pool
    pool.terminate()


@pytest.fixture
async def far(far_pool: Pool) -> RunStore:
    """The same store, on the other side of a network that breaks."""
    queue = await PgBoss.attach(far_pool)
    return RunStore(far_pool, queue, JobStore(far_pool, queue, LEASE_SECONDS))


async def beginning(long: LongJobs) -> Write:
    lease = (await long.parent(await long.submit())).lease
    return lambda runs: runs.begin(lease, split_into(*CHAINS))


async def finishing(long: LongJobs) -> Write:
    await long.start(pictures(0, 2))
    page = await long.page()
    return lambda runs: runs.finish_page(page.lease, PageDone(parse_page(page.spec), {"pictures": []}))


async def finishing_the_last(long: LongJobs) -> Write:
    await long.start(pictures(0, 1))
    page = await long.page()
    return lambda runs: runs.finish_page(page.lease, PageDone(parse_page(page.spec), {"pictures": []}))


async def snoozing(long: LongJobs) -> Write:
    job_id = await long.start()
    await long.room.pool.execute("DELETE FROM worker.jobs WHERE run_id = $1", job_id)
    await long.room.pool.execute("DELETE FROM pgboss.job WHERE name = 'clip.page'")
    lease = (await long.parent(job_id)).lease
    run = await long.runs.look(job_id)
    assert run is not None
    lost = tuple(run.idle)
    assert len(lost) == 2
    return lambda runs: runs.snooze(lease, Snoozed(lost))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("prepare", [beginning, finishing, finishing_the_last, snoozing])
async def test_write_that_is_cut_off_has_happened_or_not(
    long: LongJobs, far: RunStore, proxy: FaultProxy, prepare: Callable[[LongJobs], Awaitable[Write]]
) -> None:
    seen = set()
    for cut in CUTS:
        await long.room.pool.execute("TRUNCATE pgboss.job, worker.jobs, worker.job_events, worker.runs CASCADE")
        write = await prepare(long)
        before = await everything(long)
        proxy.cut_after(cut)
        is_broken = False
        try:
            await write(far)
        except BROKEN:
            is_broken = True
        proxy.cut_after(10**9)
        await nobody_else_writes(long)
        has_happened = await everything(long) != before
        seen.add((is_broken, has_happened))
        if has_happened:
            complete = await everything(long)
            with pytest.raises(LeaseLost):
                await write(long.runs)
            assert await everything(long) == complete
        else:
            await write(long.runs)
        await require_whole(long)
    assert {(True, False), (False, True)} <= seen, "it was never cut, or always"


async def test_backend_that_is_killed_before_the_commit_leaves_nothing(long: LongJobs, far: RunStore) -> None:
    job_id = await long.start(pictures(0, 2))
    page = await long.page()
    before = await everything(long)
    async with long.room.pool.acquire() as blocker, blocker.transaction():
        await blocker.execute("SELECT FROM worker.runs WHERE id = $1 FOR UPDATE", job_id)
        write = asyncio.create_task(far.finish_page(page.lease, PageDone(parse_page(page.spec), {"pictures": []})))
        await killed(long, blocker)
        with pytest.raises(BROKEN):
            await write
    assert await everything(long) == before
    await long.finish(page)
    assert await long.page_rows(job_id) == [(0, 0)]
    await require_whole(long)


async def killed(long: LongJobs, blocker: "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]") -> None:
    """Whoever waits for the blocker, as soon as somebody does."""
    async with asyncio.timeout(20):
        while not await long.room.pool.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cut tests'"
            " AND $1 = ANY (pg_blocking_pids(pid))",
            blocker.get_server_pid(),
        ):
            await asyncio.sleep(0.01)


async def nobody_else_writes(long: LongJobs) -> None:
    """The server notices a connection that is gone only when it wants to read from it."""
    async with asyncio.timeout(20):
        while await long.room.pool.fetchval(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE application_name = 'cut tests' AND (state <> 'idle' OR backend_xid IS NOT NULL)"
        ):
            await asyncio.sleep(0.01)


async def everything(long: LongJobs) -> dict[str, str]:
    """What stands in each table, told apart by a hash."""
    return {
        table: await long.room.pool.fetchval(
            f"SELECT count(*) || coalesce(md5(string_agg(each::text, '' ORDER BY each::text)), '') FROM {table} AS each"
        )
        for table in TABLES
    }


async def require_whole(long: LongJobs) -> None:
    """Every chain that is not complete has its page on the way, once; a job whose chains all are does not sleep."""
    await long.require_sound()
    (run,) = await long.room.pool.fetch(
        "SELECT run_id, open_partitions, waiting_pages + running_pages AS under_way, is_stuck FROM worker.run_status"
    )
    assert (run["under_way"], run["is_stuck"]) == (run["open_partitions"], False)
    assert (await long.waits_seconds(run["run_id"]) <= 0) == (run["open_partitions"] == 0)
