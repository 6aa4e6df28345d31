"""Waiting jobs whose delivery is gone get an end, whoever took it away; all others are left alone."""

from uuid import UUID, uuid4

import pytest

from tests.conftest import Room
from tests.jobs import both_tables, event_kinds, one_attempt
from worker.domain.job import WorkerId
from worker.errors import RetryableError
from worker.jobs.strays import Strays

ME = WorkerId(uuid4())


async def waiting(room: Room) -> UUID:
    job_id = await room.desk.submit("clip", {"source": "x"})
    assert job_id is not None
    return job_id


@pytest.mark.parametrize(
    ("state", "status", "code"),
    [("cancelled", "cancelled", None), ("completed", "done", None), ("failed", "failed", "DELIVERY_GONE")],
)
async def test_end_that_another_pg_boss_client_gave_is_taken_over(
    room: Room, state: str, status: str, code: str | None
) -> None:
    job_id = await waiting(room)
    await room.pool.execute('UPDATE pgboss.job SET state = $1::pgboss.job_state, output = \'{"by": "node"}\'', state)
    assert await Strays(room.pool, room.queue).settle() == {status: 1}
    assert await both_tables(room, job_id) == (status, state)
    job = await room.desk.show(job_id)
    assert job.error_code == code
    assert job.result == ({"by": "node"} if status == "done" else None)
    assert await event_kinds(room, job_id) == ["submitted", status]


async def test_deleted_delivery_cancels_the_job_and_retry_brings_both_back(room: Room) -> None:
    job_id = await waiting(room)
    await room.pool.execute("DELETE FROM pgboss.job")
    assert await Strays(room.pool, room.queue).settle() == {"cancelled": 1}
    job = await room.desk.show(job_id)
    assert (job.status, job.error_code) == ("cancelled", "DELIVERY_GONE")
    await room.desk.retry(job_id)
    assert await both_tables(room, job_id) == ("queued", "created")


async def test_jobs_with_a_live_delivery_are_left_alone(room: Room) -> None:
    fresh, retried, running = await waiting(room), await waiting(room), await waiting(room)
    for _ in range(3):
        await one_attempt(room, ME)
    leases = {a["id"]: a for a in await room.pool.fetch("SELECT id, lease_token FROM worker.jobs")}
    assert len(leases) == 3
    await room.pool.execute("UPDATE pgboss.job SET state = 'created' WHERE id = $1", fresh)
    await room.pool.execute("UPDATE worker.jobs SET status = 'queued', lease_token = NULL WHERE id <> $1", running)
    await room.pool.execute("UPDATE pgboss.job SET state = 'retry' WHERE id = $1", retried)
    assert await Strays(room.pool, room.queue).settle() == {}


async def test_job_between_two_attempts_is_no_stray(room: Room) -> None:
    job_id = await waiting(room)
    attempt = await one_attempt(room, ME)
    await room.store.requeue(attempt.lease, RetryableError("again"))
    assert await Strays(room.pool, room.queue).settle() == {}
    assert await both_tables(room, job_id) == ("queued", "retry")


async def test_walk_reaches_every_job_and_begins_anew(room: Room) -> None:
    for _ in range(7):
        await waiting(room)
    await room.pool.execute("DELETE FROM pgboss.job")
    strays = Strays(room.pool, room.queue, batch=3)
    assert [dict(await strays.settle()) for _ in range(4)] == [{"cancelled": 3}, {"cancelled": 3}, {"cancelled": 1}, {}]
    await waiting(room)
    await room.pool.execute("DELETE FROM pgboss.job")
    assert await strays.settle() == {"cancelled": 1}


async def test_delivery_that_is_being_changed_is_left_for_the_next_sweep(room: Room) -> None:
    job_id = await waiting(room)
    await room.pool.execute("UPDATE pgboss.job SET state = 'cancelled'")
    async with room.pool.acquire() as other, other.transaction():
        await other.execute("SELECT FROM pgboss.job FOR UPDATE")
        assert await Strays(room.pool, room.queue).settle() == {}
    assert await both_tables(room, job_id) == ("queued", "cancelled")
