"""Bad ends: of a page, which ends its job, and of a job, which ends its pages; and how both come to life again."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.integration.continuation.long_jobs import CHAINS, ME, LongJobs, page_id, pictures, place, split_into
from tests.jobs import both_tables, event_kinds, one_attempt
from worker.domain.job import Attempt, JobId
from worker.domain.paging import PAGE_QUEUE
from worker.errors import ClipFailed, RetriesExhausted

CANCELLED = ("cancelled", "cancelled")


async def test_cancelled_job_takes_its_pages_along(long: LongJobs) -> None:
    job_id = await long.start(*CHAINS, pictures(4, 6))
    running = await one_attempt(long.room, ME, PAGE_QUEUE)
    assert await long.room.desk.cancel(job_id) == "cancelled"
    assert await both_tables(long.room, job_id) == CANCELLED
    assert await both_tables(long.room, running.job_id) == ("processing", "active")
    waiting = [
        page_id(job_id, at, first) for at, first in enumerate((0, 2, 4)) if page_id(job_id, at, first) != running.job_id
    ]
    assert [await both_tables(long.room, each) for each in waiting] == [CANCELLED, CANCELLED]
    assert (await long.room.store.beat([running.lease])).cancelled == {running.job_id}
    await long.room.store.mark_cancelled(running.lease)
    assert await both_tables(long.room, running.job_id) == CANCELLED
    assert await long.pages() == []


async def test_job_and_pages_are_cancelled_together_or_not_at_all(long: LongJobs) -> None:
    job_id = await long.start()
    async with long.room.pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("SELECT worker.cancel($1)", job_id)
        await transaction.rollback()
    assert await both_tables(long.room, job_id) == ("queued", "created")
    assert await long.page_jobs(job_id) == {(0, 0): "queued", (1, 2): "queued"}


async def test_running_page_whose_row_was_busy_hears_of_the_cancel_with_its_next_beat(long: LongJobs) -> None:
    job_id = await long.start(pictures(0, 2))
    running = await long.page()
    async with long.room.pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT FROM pgboss.job WHERE id = $1 FOR UPDATE", running.job_id)
        async with asyncio.timeout(5):
            await long.room.desk.cancel(job_id)  # and does not wait
    assert (await long.room.store.beat([running.lease])).cancelled == {running.job_id}


async def test_cancel_and_beats_of_many_pages_do_not_wait_in_a_circle(long: LongJobs) -> None:
    """A beat locks pages in an order of its own: whoever cancels them must not hold one and wait for another."""
    job_id = await long.start(*(pictures(number, number + 1) for number in range(3)))
    first, second, third = sorted(await long.pages(), key=lambda page: page.job_id)
    async with long.room.pool.acquire() as blocker:
        transaction = blocker.transaction()
        await transaction.start()
        await blocker.execute("SELECT FROM pgboss.job WHERE id = $1 FOR UPDATE", second.job_id)
        cancel = asyncio.create_task(long.room.desk.cancel(job_id))
        await waits_or_is_done(long, cancel, waiting=1)
        beat = asyncio.create_task(long.room.store.beat([third.lease, first.lease]))
        await waits_or_is_done(long, beat, waiting=2)
        await transaction.rollback()
        await asyncio.gather(cancel, beat)
    assert await both_tables(long.room, job_id) == CANCELLED


async def waits_or_is_done(long: LongJobs, task: "asyncio.Task[object]", *, waiting: int) -> None:
    async with asyncio.timeout(20):
        while not task.done() and waiting != await long.room.pool.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0"
            " AND datname = current_database()"
        ):
            await asyncio.sleep(0.01)


async def test_cancel_through_node_reaches_the_pages(long: LongJobs) -> None:
    job_id = await long.start()
    await long.room.queue.cancel("clip", [job_id])
    await long.settle_strays()
    assert await both_tables(long.room, job_id) == CANCELLED
    assert set((await long.page_jobs(job_id)).values()) == {"cancelled"}


async def fatal(long: LongJobs, page: Attempt) -> None:
    await long.fail_for_good(page)


async def exhausted(long: LongJobs, page: Attempt) -> None:
    await long.fail_for_good(page, RetriesExhausted("UPSTREAM_FAILURE: 503 (gave up after 3 attempts)"))


async def poisoned(long: LongJobs, page: Attempt) -> None:
    await long.room.pool.execute("UPDATE worker.jobs SET crash_count = 2 WHERE id = $1", page.job_id)
    await long.silence(page)
    await long.room.leases.recover(silent_are_dead=True)


async def out_of_attempts(long: LongJobs, page: Attempt) -> None:
    await long.room.pool.execute("UPDATE worker.jobs SET attempt_count = 2 WHERE id = $1", page.job_id)
    await long.silence(page)
    await long.room.leases.recover(silent_are_dead=True)


async def cancelled_by_an_operator(long: LongJobs, page: Attempt) -> None:
    await long.room.desk.cancel(page.job_id)
    await long.room.store.mark_cancelled(page.lease)


async def failed_by_node(long: LongJobs, page: Attempt) -> None:
    await long.room.queue.fail(PAGE_QUEUE, [page.job_id], is_final=True)
    await long.silence(page)
    await long.room.leases.recover(silent_are_dead=True)


End = Callable[[LongJobs, Attempt], Awaitable[None]]


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (fatal, "CLIP_FAILED"),
        (exhausted, "RETRIES_EXHAUSTED"),
        (poisoned, "POISON_JOB"),
        (out_of_attempts, "RETRIES_EXHAUSTED"),
        (cancelled_by_an_operator, "PAGE_FAILED"),
        (failed_by_node, "DELIVERY_GONE"),
    ],
)
async def test_page_that_ends_badly_wakes_its_job_which_ends_with_its_code(long: LongJobs, end: End, code: str) -> None:
    job_id = await long.start()
    pages = {place(page): page for page in await long.pages()}
    await long.finish(pages[0, 0])
    await end(long, pages[1, 2])
    assert await long.waits_seconds(job_id) <= 0
    assert await long.look(await one_attempt(long.room, ME)) == "failed"
    job = await long.room.desk.show(job_id)
    assert (job.status, job.error_code) == ("failed", code)
    assert job.error_message is not None
    assert job.error_message.startswith("page 3 (pictures from 20.0 to 30.0 s): ")
    assert await both_tables(long.room, job_id) == ("failed", "failed")
    assert await both_tables(long.room, page_id(job_id, 0, 1)) == CANCELLED
    assert await long.pages() == []
    assert "done" not in await event_kinds(long.room, job_id)


@pytest.mark.parametrize("code", [RetriesExhausted, ClipFailed])
async def test_running_pages_of_a_failed_job_are_asked_to_stop(long: LongJobs, code: type[ClipFailed]) -> None:
    job_id = await long.start()
    first, second = await long.pages()
    await long.fail_for_good(first, code("no"))
    await long.look_again(job_id)
    assert (await long.room.store.beat([second.lease])).cancelled == {second.job_id}


async def test_job_whose_page_failed_for_good_is_split_anew_when_it_is_revived(long: LongJobs) -> None:
    job_id = await long.start()
    pages = {place(page): page for page in await long.pages()}
    await long.finish(pages[0, 0])
    await long.fail_for_good(pages[1, 2])
    await long.look_again(job_id)
    assert await long.runs.pages(job_id) == []
    assert await long.room.desk.retry(job_id) == "queued"
    assert await long.pages() == []
    again = await long.parent(job_id)
    assert await long.look(again) == "anew"
    await long.runs.begin(again.lease, split_into(*CHAINS))
    assert sorted(place(page) for page in await long.pages()) == [(2, 0), (3, 2)]
    run = await long.runs.look(job_id)
    assert run is not None
    assert [partition.id for partition in run.partitions] == [2, 3]


async def by_worker_retry(long: LongJobs, job_id: JobId) -> None:
    assert await long.room.desk.retry(job_id) == "queued"


async def by_node(long: LongJobs, job_id: JobId) -> None:
    """As pg-boss's retry does it, which knows nothing of worker.jobs."""
    await long.room.pool.execute(
        "UPDATE pgboss.job SET state = 'retry', completed_on = NULL, start_after = now(), retry_limit = retry_limit + 1"
        " WHERE id = $1",
        job_id,
    )


Revival = Callable[[LongJobs, JobId], Awaitable[None]]


@pytest.mark.parametrize("revive", [by_worker_retry, by_node])
@pytest.mark.parametrize("end", [exhausted, poisoned, cancelled_by_an_operator, failed_by_node])
async def test_revived_job_goes_on_behind_its_finished_pages(long: LongJobs, end: End, revive: Revival) -> None:
    job_id = await long.start()
    pages = {place(page): page for page in await long.pages()}
    await long.finish(pages[0, 0])
    await end(long, pages[1, 2])
    await long.look_again(job_id)
    await revive(long, job_id)
    assert await long.look_again(job_id) == "snoozed"
    assert await long.page_jobs(job_id) == {(0, 0): "done", (0, 1): "queued", (1, 2): "queued"}
    assert await long.offsets(job_id) == [1, 2]
    await long.finish_all()
    assert await long.look_again(job_id) == "done"
    assert await long.page_rows(job_id) == [(0, 0), (0, 1), (1, 2), (1, 3)]


@pytest.mark.parametrize("revive", [by_worker_retry, by_node])
async def test_cancelled_job_that_is_resumed_goes_on(long: LongJobs, revive: Revival) -> None:
    job_id = await long.start()
    await long.deliver(await long.page_at(0, 0))
    (running,) = await long.held_pages(job_id)
    await long.room.desk.cancel(job_id)
    await long.room.store.mark_cancelled(running)
    await revive(long, job_id)
    assert await long.look_again(job_id) == "snoozed"
    await long.finish_all()
    assert await long.look_again(job_id) == "done"


@pytest.mark.parametrize("revive", [by_worker_retry, by_node])
async def test_page_that_was_still_stopping_when_its_job_was_revived_does_not_end_it(
    long: LongJobs, revive: Revival
) -> None:
    job_id = await long.start()
    stopping = await long.page_at(0, 0)
    await long.room.desk.cancel(job_id)
    await revive(long, job_id)
    assert await long.look_again(job_id) == "snoozed"
    await long.room.store.mark_cancelled(stopping.lease)  # it had heard of it
    assert await long.waits_seconds(job_id) <= 0
    assert await long.look_again(job_id) == "snoozed"
    await long.finish_all()
    for lease in await long.held_pages(job_id):
        await long.finish_as(lease)
    await long.finish_all()
    assert await long.look_again(job_id) == "done"


async def test_retry_of_a_page_alone_is_settled_without_effect(long: LongJobs) -> None:
    job_id = await long.start(pictures(0, 2))
    page = await long.page()
    await long.fail_for_good(page, RetriesExhausted("503"))
    await long.look_again(job_id)
    await long.room.desk.retry(page.job_id)
    assert await long.deliver(await long.page()) == "its job is failed"
    await long.room.desk.retry(job_id)
    assert await long.look_again(job_id) == "snoozed"
    await long.finish_all()
    assert await long.look_again(job_id) == "done"


async def test_crash_of_a_page_costs_the_page_an_attempt_and_the_job_nothing(long: LongJobs) -> None:
    job_id = await long.start(pictures(0, 1))
    page = await long.page()
    await long.silence(page)
    await long.room.leases.recover(silent_are_dead=True)
    again = await long.page()
    assert (again.job_id, again.number) == (page.job_id, 2)
    await long.deliver(again)
    assert (await long.room.desk.show(job_id)).attempt_count == 0
    assert await long.look_again(job_id) == "done"
