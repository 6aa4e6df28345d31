"""A job that is split: its own rows, its partitions, and the first page of each chain, in one transaction."""

import asyncpg
import pytest

from tests.integration.continuation.long_jobs import CHAINS, LongJobs, page_id, pictures, place, split_into
from tests.jobs import both_tables, event_kinds
from worker.continuation.store import LOOK_SECONDS
from worker.db.sql import load_queries
from worker.domain.paging import Chain, PageKind
from worker.errors import LeaseLost


async def test_split_job_is_put_aside_without_burning_an_attempt(long: LongJobs) -> None:
    job_id = await long.start()
    assert await both_tables(long.room, job_id) == ("queued", "created")
    job = await long.room.desk.show(job_id)
    assert (job.attempt_count, job.crash_count, job.error_code) == (0, 0, None)
    assert LOOK_SECONDS - 10 < await long.waits_seconds(job_id) <= LOOK_SECONDS
    assert await event_kinds(long.room, job_id) == ["submitted", "acquired", "split"]


@pytest.mark.parametrize("round_", [1, 5])
async def test_however_often_it_looks_it_is_the_first_attempt(long: LongJobs, round_: int) -> None:
    job_id = await long.start()
    for _ in range(round_):
        assert await long.look_again(job_id) == "snoozed"
    again = await long.parent(job_id)
    assert (again.number, again.crash_count, again.lease.retry_count) == (1, 0, 0)


async def test_first_pages_are_sent_with_the_run_and_the_urgency_of_their_job(long: LongJobs) -> None:
    job_id = await long.start(*CHAINS, options={"priority": 7})
    sent = await long.room.pool.fetch("SELECT id, name, priority, data FROM pgboss.job WHERE name = 'clip.page'")
    assert {row["id"] for row in sent} == {page_id(job_id, 0, 0), page_id(job_id, 1, 2)}
    assert {row["priority"] for row in sent} == {7}
    assert await long.page_jobs(job_id) == {(0, 0): "queued", (1, 2): "queued"}
    pages = await long.pages()
    assert sorted(place(page) for page in pages) == [(0, 0), (1, 2)]
    assert await long.offsets(job_id) == [0, 2]


async def test_the_split_tells_how_many_pages_there_are_and_why(long: LongJobs) -> None:
    job_id = await long.submit()
    chains = (Chain(PageKind.SOUND, 0, 1), pictures(0, 3))
    await long.runs.begin((await long.parent(job_id)).lease, split_into(*chains, fallback="no keyframes"))
    event = (await long.room.desk.events(job_id))[-1]
    expected = {"pages": 4, "partitions": 2, "kinds": ["pictures", "sound"], "reason": "no keyframes"}
    assert (event.kind, event.data) == ("split", expected)


async def test_plan_comes_back_as_it_was(long: LongJobs) -> None:
    split = split_into(*CHAINS)
    job_id = await long.submit()
    await long.runs.begin((await long.parent(job_id)).lease, split)
    run = await long.runs.look(job_id)
    assert run is not None
    assert run.plan == split.plan
    assert (run.pages, run.finished_pages, run.failed, run.idle) == (4, 0, None, [])


async def test_lost_lease_splits_nothing(long: LongJobs) -> None:
    job_id = await long.submit()
    attempt = await long.parent(job_id)
    await long.silence(attempt)
    await long.room.leases.recover(silent_are_dead=True)
    with pytest.raises(LeaseLost):
        await long.runs.begin(attempt.lease, split_into(*CHAINS))
    assert await long.runs.look(job_id) is None
    assert await long.pages() == []


async def test_splitting_twice_splits_once(long: LongJobs) -> None:
    job_id = await long.submit()
    attempt = await long.parent(job_id)
    await long.runs.begin(attempt.lease, split_into(*CHAINS))
    with pytest.raises(LeaseLost):
        await long.runs.begin(attempt.lease, split_into(*CHAINS))
    # and not by one who holds the same delivery, as pg-boss counts, under an older lease
    await long.parent(job_id)
    with pytest.raises(LeaseLost):
        await long.runs.begin(attempt.lease, split_into(*CHAINS))
    assert await long.offsets(job_id) == [0, 2]


async def test_more_pages_are_added_behind_those_there_are(long: LongJobs) -> None:
    job_id = await long.start()
    await long.finish_all()
    await long.runs.begin((await long.parent(job_id)).lease, split_into(pictures(1, 2)))
    assert await long.offsets(job_id) == [2, 4, 1]
    page = await long.page()
    assert place(page) == (2, 1)
    await long.deliver(page)
    assert await long.look_again(job_id) == "done"


async def test_pages_outlive_a_short_retention_of_their_job(long: LongJobs) -> None:
    job_id = await long.start(*CHAINS, options={"retentionSeconds": 5})
    await long.look_again(job_id)
    kept = await long.room.pool.fetchval(
        "SELECT keep_until > now() + interval '1 day' FROM pgboss.job WHERE id = $1", job_id
    )
    assert kept, "pg-boss would delete the job while its pages are at work"


async def test_cancel_that_came_just_before_is_not_forgotten(long: LongJobs) -> None:
    job_id = await long.submit()
    attempt = await long.parent(job_id)
    assert await long.room.desk.cancel(job_id) == "processing"
    await long.runs.begin(attempt.lease, split_into(*CHAINS))
    assert await both_tables(long.room, job_id) == ("cancelled", "cancelled")
    assert set((await long.page_jobs(job_id)).values()) == {"cancelled"}


async def test_next_offset_never_goes_back(long: LongJobs) -> None:
    job_id = await long.start()
    await long.deliver(await long.page_at(0, 0))
    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="would go back from page 1 to 0"):
        await long.room.pool.execute("UPDATE worker.partition_progress SET next_offset = 0 WHERE partition_id = 0")
    assert await long.offsets(job_id) == [1, 2]


async def test_every_statement_fits_the_schema(long: LongJobs) -> None:
    queue = long.room.queue
    for package in ("worker.continuation", "worker.jobs"):
        statements = load_queries(package, queue_schema=queue.schema, queue_version=queue.version)
        async with long.room.pool.acquire() as connection:
            for statement in statements.values():
                await connection.prepare(statement)
