"""Acquire: one statement that claims the delivery and leases the job."""

import asyncio
from uuid import uuid4

import pytest

from tests.conftest import Room
from tests.jobs import both_tables, one_attempt
from worker.db.pool import Pool
from worker.db.sql import load_queries
from worker.domain.job import WorkerId
from worker.errors import ClipFailed

ME = WorkerId(uuid4())


async def test_submitted_job_is_acquired_with_lease_and_active_delivery(room: Room) -> None:
    job_id = await room.desk.submit("clip", {"source": "x"})
    acquired = await room.store.acquire("clip", 5, ME)
    assert [attempt.job_id for attempt in acquired.attempts] == [job_id]
    attempt = acquired.attempts[0]
    assert (attempt.number, attempt.max_attempts, attempt.spec) == (1, 3, {"source": "x"})
    assert await both_tables(room, attempt.job_id) == ("processing", "active")


async def test_row_that_only_pg_boss_knows_is_adopted(room: Room) -> None:
    job_id = await room.queue.send("clip", {"source": "node"}, priority=3)
    attempt = await one_attempt(room, ME)
    assert attempt.job_id == job_id
    assert await both_tables(room, attempt.job_id) == ("processing", "active")


async def test_most_urgent_first(room: Room) -> None:
    for priority in (0, 5, 1):
        await room.queue.send("clip", {"priority": priority}, priority=priority)
    acquired = await room.store.acquire("clip", 3, ME)
    assert [attempt.spec["priority"] for attempt in acquired.attempts] == [5, 1, 0]


async def test_deferred_job_is_left_alone(room: Room) -> None:
    await room.desk.submit("clip", {}, {"startAfter": "1 hour"})
    assert (await room.store.acquire("clip", 1, ME)).attempts == []


async def test_many_workers_never_share_a_job(room: Room) -> None:
    for number in range(60):
        await room.queue.send("clip", {"n": number})

    async def drain(worker: WorkerId) -> list[int]:
        mine = []
        while found := (await room.store.acquire("clip", 3, worker)).attempts:
            mine += [attempt.spec["n"] for attempt in found]
        return mine

    taken = await asyncio.gather(*(drain(WorkerId(uuid4())) for _ in range(6)))
    assert sorted(number for mine in taken for number in mine) == list(range(60))


async def test_delivery_of_a_done_job_is_settled_with_the_stored_result(room: Room) -> None:
    await room.desk.submit("clip", {})
    attempt = await one_attempt(room, ME)
    await room.store.finish(attempt.lease, {"answer": 42})
    # As if an operator had put the row back behind our back.
    await room.pool.execute("UPDATE pgboss.job SET state = 'created', output = NULL WHERE id = $1", attempt.job_id)
    acquired = await room.store.acquire("clip", 1, ME)
    assert (acquired.attempts, acquired.settled) == ([], 1)
    assert await both_tables(room, attempt.job_id) == ("done", "completed")
    assert await room.pool.fetchval("SELECT output FROM pgboss.job WHERE id = $1", attempt.job_id) == {"answer": 42}


async def test_delivery_of_a_job_with_a_live_lease_is_left_to_its_owner(room: Room) -> None:
    await room.desk.submit("clip", {})
    attempt = await one_attempt(room, ME)
    await room.pool.execute("UPDATE pgboss.job SET state = 'retry' WHERE id = $1", attempt.job_id)
    assert (await room.store.acquire("clip", 1, ME)).attempts == []
    assert await both_tables(room, attempt.job_id) == ("processing", "retry")


async def test_job_behind_one_with_a_live_lease_is_still_reached(room: Room) -> None:
    await room.desk.submit("clip", {})
    held = await one_attempt(room, ME)
    await room.pool.execute("UPDATE pgboss.job SET state = 'retry' WHERE id = $1", held.job_id)
    behind = await room.desk.submit("clip", {})
    assert (await one_attempt(room, ME)).job_id == behind


async def test_expired_lease_that_pg_boss_let_go_is_taken_over_with_a_new_token(room: Room) -> None:
    await room.desk.submit("clip", {})
    first = await one_attempt(room, ME)
    await room.pool.execute("UPDATE pgboss.job SET state = 'retry' WHERE id = $1", first.job_id)
    await room.pool.execute("UPDATE worker.jobs SET last_heartbeat_at = now() - interval '1 hour'")
    second = await one_attempt(room, ME)
    assert second.number == 2
    assert second.lease.token > first.lease.token
    assert second.lease.retry_count == first.lease.retry_count + 1


@pytest.mark.parametrize("status", ["failed", "cancelled"])
async def test_job_revived_through_pg_boss_runs_again(room: Room, status: str) -> None:
    await room.desk.submit("clip", {})
    attempt = await one_attempt(room, ME)
    await room.store.mark_cancelled(attempt.lease)
    await room.pool.execute("UPDATE worker.jobs SET status = $1", status)
    await room.pool.execute("UPDATE pgboss.job SET state = 'created', completed_on = NULL")
    assert (await one_attempt(room, ME)).job_id == attempt.job_id


async def test_singleton_policy_runs_one_job_of_a_key_at_a_time(room: Room) -> None:
    await room.queue.create_queue("single", policy="singleton")
    for key in ("a", "a", "b"):
        await room.queue.send("single", {"key": key}, singleton_key=key)
    first = [a.spec["key"] for a in (await room.store.acquire("single", 3, ME)).attempts]
    second = (await room.store.acquire("single", 3, ME)).attempts
    assert (sorted(first), second) == (["a", "b"], [])


async def test_strict_fifo_policy_keeps_the_order_of_a_key(room: Room) -> None:
    await room.queue.create_queue("fifo", policy="key_strict_fifo", retry_limit=0)
    for number, key in enumerate(("a", "a", "b")):
        await room.queue.send("fifo", {"n": number}, singleton_key=key)
    heads = (await room.store.acquire("fifo", 3, ME)).attempts
    assert [attempt.spec["n"] for attempt in heads] == [0, 2]
    await room.store.finish(heads[0].lease, {})
    (follower,) = (await room.store.acquire("fifo", 3, ME)).attempts
    assert follower.spec["n"] == 1
    await room.store.give_up(follower.lease, ClipFailed("no"))
    await room.queue.send("fifo", {"n": 3}, singleton_key="a")
    # A failed job blocks its key until it is retried or deleted.
    assert (await room.store.acquire("fifo", 3, ME)).attempts == []


async def test_acquire_walks_the_fetch_index_however_long_the_queue_is(room: Room, pool: Pool) -> None:
    await pool.execute(
        "INSERT INTO pgboss.job (name, data, policy) SELECT 'clip', '{}', 'standard' FROM generate_series(1, 20000)"
    )
    await pool.execute("ANALYZE pgboss.job_common")
    statement = load_queries("worker.jobs", queue_schema="pgboss", queue_version=46)["acquire"]
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        await connection.execute(f"PREPARE acquire (text, int, uuid, float8) AS {statement}")
        rows = await connection.fetch(f"EXPLAIN EXECUTE acquire ('clip', 5, '{uuid4()}', 45)")
    plan = "\n".join(row[0] for row in rows)
    assert "job_common_i11" in plan
    assert "Seq Scan" not in plan
