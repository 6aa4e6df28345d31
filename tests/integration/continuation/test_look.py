"""A job looks at its pages: what got lost is sent again, and no wake-up that went astray costs more than a look."""

import pytest

from tests.integration.continuation.long_jobs import CHAINS, LongJobs, page_id, pictures, place
from tests.jobs import both_tables, event_kinds
from worker.continuation.store import LOOK_SECONDS
from worker.domain.outcome import Snoozed
from worker.domain.paging import PAGE_QUEUE
from worker.errors import LeaseLost


async def test_look_at_unfinished_pages_sleeps_again(long: LongJobs) -> None:
    job_id = await long.start()
    await long.deliver(await long.page_at(0, 0))
    assert await long.look_again(job_id) == "snoozed"
    assert LOOK_SECONDS - 10 < await long.waits_seconds(job_id) <= LOOK_SECONDS
    assert await both_tables(long.room, job_id) == ("queued", "created")
    assert (await long.room.desk.show(job_id)).progress == pytest.approx(0.95 / 4)


@pytest.mark.parametrize(
    "loss",
    [
        "DELETE FROM pgboss.job WHERE id = $1",
        "DELETE FROM worker.jobs WHERE id = $1",
        "WITH gone AS (DELETE FROM worker.jobs WHERE id = $1) DELETE FROM pgboss.job WHERE id = $1",
    ],
    ids=["delivery", "job", "both"],
)
async def test_page_that_vanished_is_sent_again(long: LongJobs, loss: str) -> None:
    job_id = await long.start()
    await long.room.pool.execute(loss, page_id(job_id, 0, 0))
    await long.settle_strays()
    assert await long.look_again(job_id) == "snoozed"
    assert await waiting_places(long) >= {(0, 0), (1, 2)}
    assert (await long.room.desk.events(job_id))[-1].data == {"lost": ["0:0"]}
    await long.finish_all()
    assert await long.look_again(job_id) == "done"


async def test_page_that_was_done_out_of_turn_is_sent_again(long: LongJobs) -> None:
    """Its own job is done by the time its turn comes, so it needs another one."""
    job_id = await long.start(pictures(0, 3))
    message = {"run": str(job_id), "partition": 0, "offset": 1}
    await long.room.queue.send(PAGE_QUEUE, message, id=page_id(job_id, 0, 1))
    for page in sorted(await long.pages(), key=place, reverse=True):
        await long.deliver(page)
    assert await long.pages() == []
    assert await long.look_again(job_id) == "snoozed"
    page = await long.page()
    assert place(page) == (0, 1)
    assert page.job_id != page_id(job_id, 0, 1)
    await long.deliver(page)
    await long.finish_all()
    assert await long.look_again(job_id) == "done"


async def test_page_whose_record_stayed_but_whose_delivery_was_deleted_long_ago_is_sent_again(long: LongJobs) -> None:
    """pg-boss forgets finished deliveries after a week, worker.jobs does not."""
    job_id = await long.start(pictures(0, 2))
    message = {"run": str(job_id), "partition": 0, "offset": 1}
    await long.room.queue.send(PAGE_QUEUE, message, id=page_id(job_id, 0, 1))
    for page in sorted(await long.pages(), key=place, reverse=True):
        await long.deliver(page)
    await long.room.pool.execute("DELETE FROM pgboss.job WHERE state = 'completed'")
    assert await long.look_again(job_id) == "snoozed"
    await long.finish_all()
    assert await long.look_again(job_id) == "done"


async def test_wake_up_that_was_lost_heals_with_the_next_look(long: LongJobs) -> None:
    job_id = await long.start(pictures(0, 1))
    async with long.room.pool.acquire() as connection, connection.transaction():
        # Whoever holds the job's row is not waited for.
        await connection.execute("SELECT FROM pgboss.job WHERE id = $1 FOR UPDATE", job_id)
        await long.deliver(await long.page())
    assert await long.waits_seconds(job_id) > 30
    assert await long.look_again(job_id) == "done"


async def test_job_does_not_sleep_when_its_last_page_ended_while_it_looked(long: LongJobs) -> None:
    job_id = await long.start(pictures(0, 1))
    looking = await long.parent(job_id)
    await long.deliver(await long.page())
    await long.runs.snooze(looking.lease, Snoozed())  # it saw the page still at work
    assert await long.waits_seconds(job_id) <= 0


async def test_job_does_not_sleep_when_a_page_failed_while_it_looked(long: LongJobs) -> None:
    job_id = await long.start(*CHAINS)
    looking = await long.parent(job_id)
    await long.fail_for_good(await long.page())
    await long.runs.snooze(looking.lease, Snoozed())
    assert await long.waits_seconds(job_id) <= 0


async def test_failed_page_that_has_a_successor_keeps_nobody_awake(long: LongJobs) -> None:
    job_id = await long.start(pictures(0, 1))
    page = await long.page()
    await long.fail_for_good(page)
    await long.room.pool.execute("SELECT worker.send_page($1, gen_random_uuid(), $2)", job_id, page.spec)
    assert await long.look_again(job_id) == "snoozed"
    assert await long.waits_seconds(job_id) > 30


async def test_look_of_a_lost_lease_sends_nothing(long: LongJobs) -> None:
    job_id = await long.start()
    await long.room.pool.execute("DELETE FROM worker.jobs WHERE run_id = $1", job_id)
    await long.room.pool.execute("DELETE FROM pgboss.job WHERE name = $1", PAGE_QUEUE)
    zombie = await long.parent(job_id)
    run = await long.runs.look(job_id)
    assert run is not None
    await long.silence(zombie)
    await long.room.leases.recover(silent_are_dead=True)
    with pytest.raises(LeaseLost):
        await long.runs.snooze(zombie.lease, Snoozed(tuple(run.idle)))
    assert await long.pages() == []


async def test_cancel_that_came_while_it_looked_is_not_forgotten(long: LongJobs) -> None:
    job_id = await long.start()
    looking = await long.parent(job_id)
    await long.room.desk.cancel(job_id)
    await long.runs.snooze(looking.lease, Snoozed())
    assert await both_tables(long.room, job_id) == ("cancelled", "cancelled")
    assert set((await long.page_jobs(job_id)).values()) == {"cancelled"}
    assert (await event_kinds(long.room, job_id))[-1] == "cancelled"


async def test_pages_given_up_under_its_eyes_do_not_break_the_look(long: LongJobs) -> None:
    job_id = await long.start()
    looking = await long.parent(job_id)
    await long.runs.drop(job_id)
    await long.runs.snooze(looking.lease, Snoozed())
    assert await long.waits_seconds(job_id) <= 0
    assert await long.look(await long.parent(job_id)) == "anew"


async def waiting_places(long: LongJobs) -> set[tuple[int, int]]:
    rows = await long.room.pool.fetch("SELECT data FROM pgboss.job WHERE name = $1 AND state < 'active'", PAGE_QUEUE)
    return {(row["data"]["partition"], row["data"]["offset"]) for row in rows}
