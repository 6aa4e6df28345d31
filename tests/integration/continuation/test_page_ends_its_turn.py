"""Pages: each is finished once, moves its chain on, and tells the job, however often and in whatever order it comes."""

import asyncio

import pytest

from tests.integration.continuation.long_jobs import CHAINS, ME, LongJobs, page_id, pictures, place
from tests.jobs import both_tables, event_kinds
from worker.domain.job import Attempt
from worker.domain.paging import PAGE_QUEUE
from worker.errors import LeaseLost


async def test_finished_page_moves_its_chain_sends_the_next_and_tells_the_job(long: LongJobs) -> None:
    job_id = await long.start()
    page = await long.page_at(0, 0)
    await long.finish(page, {"pictures": [{"height": 0}]})
    assert await both_tables(long.room, page.job_id) == ("done", "completed")
    assert await long.page_rows(job_id) == [(0, 0)]
    assert await long.offsets(job_id) == [1, 2]
    assert (await long.page_jobs(job_id))[0, 1] == "queued"
    event = (await long.room.desk.events(job_id))[-1]
    assert (event.kind, event.data) == ("page:finished", {"partition": 0, "offset": 0, "finished": 1, "pages": 4})
    assert (await long.room.desk.show(job_id)).progress == pytest.approx(0.95 / 4)
    (finished,) = await long.runs.pages(job_id)
    assert (finished.partition, finished.offset, finished.facts) == (0, 0, {"pictures": [{"height": 0}]})


async def test_job_waits_on_until_the_last_page_wakes_it(long: LongJobs) -> None:
    job_id = await long.start()
    while pages := await long.pages():
        for page in pages:
            assert await long.waits_seconds(job_id) > 30
            await long.deliver(page)
    assert await long.waits_seconds(job_id) <= 0
    assert await long.page_rows(job_id) == [(0, 0), (0, 1), (1, 2), (1, 3)]
    assert await long.look(await long.parent(job_id)) == "done"
    assert await both_tables(long.room, job_id) == ("done", "completed")
    assert (await event_kinds(long.room, job_id)).count("page:finished") == 4


async def test_last_page_of_two_that_end_together_wakes_the_job(long: LongJobs) -> None:
    job_id = await long.start(*(pictures(number, number + 1) for number in range(6)))
    await asyncio.gather(*(long.finish(page) for page in await long.pages()))
    assert await long.waits_seconds(job_id) <= 0


async def test_job_is_rung_for(long: LongJobs) -> None:
    job_id = await long.start(pictures(0, 1))
    rung: asyncio.Queue[str] = asyncio.Queue()
    async with long.room.pool.acquire() as connection:
        await connection.add_listener(long.room.queue.channel, listen := lambda *call: rung.put_nowait(call[-1]))
        await long.deliver(await long.page())
        async with asyncio.timeout(5):
            assert await rung.get() == "clip"
        await connection.remove_listener(long.room.queue.channel, listen)
    assert await long.waits_seconds(job_id) <= 0


async def duplicate(long: LongJobs, partition: int, offset: int, run_id: object) -> Attempt:
    """The same page by a plain message, as a confused producer would send it."""
    message = {"run": str(run_id), "partition": partition, "offset": offset}
    sent = await long.room.queue.send(PAGE_QUEUE, message)
    acquired = await long.room.store.acquire(PAGE_QUEUE, 100, ME)
    (found,) = [each for each in acquired.attempts if each.job_id == sent]
    return found


async def test_second_message_for_a_finished_page_is_settled_without_effect(long: LongJobs) -> None:
    job_id = await long.start()
    await long.deliver(await long.page_at(0, 0))
    twin = await duplicate(long, 0, 0, job_id)
    assert await long.deliver(twin) == "it is the turn of page 1"
    assert await both_tables(long.room, twin.job_id) == ("done", "completed")
    assert (await long.offsets(job_id), await long.page_rows(job_id)) == ([1, 2], [(0, 0)])
    assert (await event_kinds(long.room, job_id)).count("page:finished") == 1


async def test_two_workers_with_the_same_page_count_it_once(long: LongJobs) -> None:
    job_id = await long.start()
    original = await long.page_at(0, 0)
    twin = await duplicate(long, 0, 0, job_id)
    await asyncio.gather(long.finish(original, {"by": "one"}), long.finish(twin, {"by": "other"}))
    assert (await long.offsets(job_id), await long.page_rows(job_id)) == ([1, 2], [(0, 0)])
    assert await both_tables(long.room, original.job_id) == await both_tables(long.room, twin.job_id)
    assert (await event_kinds(long.room, job_id)).count("page:finished") == 1
    assert await long.room.pool.fetchval("SELECT count(*) FROM pgboss.job WHERE data->>'offset' = '1'") == 1


async def test_page_before_its_turn_is_settled_without_effect(long: LongJobs) -> None:
    job_id = await long.start()
    early = await duplicate(long, 0, 1, job_id)
    assert await long.deliver(early) == "it is the turn of page 0"
    other = await duplicate(long, 0, 1, job_id)
    await long.finish(other)
    assert await both_tables(long.room, other.job_id) == ("done", "completed")
    assert (await long.offsets(job_id), await long.page_rows(job_id)) == ([0, 2], [])


@pytest.mark.parametrize("by_resolve", [True, False])
@pytest.mark.parametrize("end", ["done", "cancelled", "failed", "dropped"])
async def test_page_of_a_run_that_is_over_is_settled_without_effect(long: LongJobs, end: str, by_resolve: bool) -> None:
    job_id = await long.start(pictures(0, 2))
    page = await long.page()
    if end == "done":
        await long.finish(page)
        page = await duplicate(long, 0, 0, job_id)
        await long.finish_all()
        await long.look_again(job_id)
    elif end == "cancelled":
        await long.room.desk.cancel(job_id)
    elif end == "failed":
        await long.fail_for_good(await long.parent(job_id))
    else:
        await long.runs.drop(job_id)
    before = await long.offsets(job_id), await long.page_rows(job_id), await event_kinds(long.room, job_id)
    if by_resolve:
        assert await long.deliver(page) != ""
    else:
        await long.finish(page)
    assert await both_tables(long.room, page.job_id) == ("done", "completed")
    assert before == (
        await long.offsets(job_id),
        await long.page_rows(job_id),
        await event_kinds(long.room, job_id),
    )
    assert await long.pages() == []


async def test_page_of_a_lost_lease_changes_nothing(long: LongJobs) -> None:
    job_id = await long.start(pictures(0, 2))
    zombie = await long.page()
    await long.silence(zombie)
    await long.room.leases.recover(silent_are_dead=True)
    again = await long.page()
    assert again.job_id == zombie.job_id
    with pytest.raises(LeaseLost):
        await long.finish(zombie)
    assert await long.page_rows(job_id) == []
    await long.finish(again)
    assert await long.page_rows(job_id) == [(0, 0)]


async def test_page_that_was_handed_back_is_not_finished_under_its_old_lease(long: LongJobs) -> None:
    """For pg-boss it is the same delivery as before: only our token tells the two apart."""
    job_id = await long.start(pictures(0, 2))
    zombie = await long.page()
    await long.room.store.release(zombie.lease)
    await long.room.leases.recover(silent_are_dead=False)
    again = await long.page()
    assert (again.job_id, again.lease.retry_count) == (zombie.job_id, zombie.lease.retry_count)
    with pytest.raises(LeaseLost):
        await long.finish(zombie)
    assert await long.page_rows(job_id) == []
    assert await both_tables(long.room, again.job_id) == ("processing", "active")
    await long.finish(again)
    assert await long.offsets(job_id) == [1]


async def test_finishing_a_page_again_is_a_lost_lease(long: LongJobs) -> None:
    job_id = await long.start(pictures(0, 2))
    page = await long.page()
    await long.finish(page)
    with pytest.raises(LeaseLost):
        await long.finish(page)
    assert (await long.offsets(job_id), await long.page_rows(job_id)) == ([1], [(0, 0)])


async def test_same_page_always_gets_the_same_job(long: LongJobs) -> None:
    job_id = await long.start(pictures(0, 3))
    for offset in range(3):
        page = await long.page()
        assert (page.job_id, place(page)) == (page_id(job_id, 0, offset), (0, offset))
        await long.deliver(page)


async def test_jobs_of_different_runs_do_not_wait_for_each_other(long: LongJobs) -> None:
    one, other = await long.start(*CHAINS), await long.start(*CHAINS)
    async with long.room.pool.acquire() as connection, connection.transaction():
        await connection.execute("SELECT FROM worker.runs WHERE id = $1 FOR UPDATE", one)
        async with asyncio.timeout(5):
            for page in await long.pages():
                if page.spec["run"] == str(other):
                    await long.finish(page)
    assert await long.offsets(other) == [1, 3]
