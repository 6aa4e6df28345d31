"""Expiry and deletion."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from worker.db.pool import Pool
from worker.queue import PgBoss
from worker.queue.flows import FlowJob
from worker.queue.names import advisory_key
from worker.queue.supervision import EXPIRE_BATCH, Expired, Supervised

RowOf = Callable[[UUID | None], Awaitable[asyncpg.Record]]


async def age(pool: Pool, seconds: int) -> None:
    """As if everything had happened that much earlier."""
    await pool.execute(
        "UPDATE pgboss.job SET started_on = started_on - $1::interval, heartbeat_on = heartbeat_on - $1::interval, "
        "completed_on = completed_on - $1::interval, keep_until = keep_until - $1::interval",
        timedelta(seconds=seconds),
    )


async def test_job_out_of_time_goes_back_to_retry(queue: PgBoss, pool: Pool, row_of: RowOf) -> None:
    job_id = await queue.send("clip", expire_in_seconds=60)
    (held,) = await queue.fetch("clip")
    await age(pool, 59)
    assert await queue.expire_once() == Expired(0, 0)
    await age(pool, 2)
    assert await queue.expire_once() == Expired(timed_out=1, fell_silent=0)
    row = await row_of(job_id)
    assert (row["state"], row["output"]) == ("retry", {"value": {"message": "job timed out"}})
    assert (row["completed_on"], row["heartbeat_on"], row["retry_count"]) == (None, None, 0)
    assert await queue.complete("clip", [held.fence]) == set(), "the late worker settles nothing"
    (again,) = await queue.fetch("clip")
    assert again.retry_count == 1


async def test_silent_job_goes_back_to_retry(queue: PgBoss, pool: Pool, row_of: RowOf) -> None:
    silent, beating = [await queue.send("clip", heartbeat_seconds=10, expire_in_seconds=3600) for _ in range(2)]
    calm = await queue.send("clip")
    held = {delivery.id: delivery for delivery in await queue.fetch("clip", 3)}
    await age(pool, 11)
    assert beating is not None
    await queue.touch("clip", [held[beating].fence])
    assert await queue.expire_once() == Expired(timed_out=0, fell_silent=1)
    row = await row_of(silent)
    assert (row["state"], row["output"]) == ("retry", {"value": {"message": "job heartbeat timeout"}})
    assert [(await row_of(job_id))["state"] for job_id in (beating, calm)] == ["active", "active"]


async def test_last_attempt_out_of_time_ends_in_the_dead_letter_queue(queue: PgBoss, pool: Pool, row_of: RowOf) -> None:
    await queue.create_queue("dead")
    job_id = await queue.send("clip", {"n": 1}, retry_limit=0, dead_letter="dead")
    await queue.fetch("clip")
    await age(pool, 901)
    assert (await queue.expire_once()).timed_out == 1
    assert (await row_of(job_id))["state"] == "failed"
    (buried,) = await queue.fetch("dead")
    assert buried.data == {"n": 1}
    row = await row_of(buried.id)
    assert (row["source_id"], row["source_output"]) == (job_id, {"value": {"message": "job timed out"}})


async def test_backoff_counts_for_expired_jobs_too(queue: PgBoss, pool: Pool, row_of: RowOf) -> None:
    job_id = await queue.send("clip", retry_delay=100, retry_backoff=True)
    await queue.fetch("clip")
    await age(pool, 901)
    await queue.expire_once()
    wait = await pool.fetchval("SELECT extract(epoch FROM start_after - now()) FROM pgboss.job WHERE id = $1", job_id)
    assert 90 < wait < 200


async def test_waiting_and_finished_jobs_do_not_expire(queue: PgBoss, pool: Pool) -> None:
    for _ in range(3):
        await queue.send("clip")
    done, cancelled = await queue.fetch("clip", 2)
    await queue.complete("clip", [done.fence])
    await queue.cancel("clip", [cancelled.id])
    await age(pool, 10_000)
    assert await queue.expire_once() == Expired(0, 0)


async def test_partitioned_queue_is_supervised_in_its_own_table(queue: PgBoss, pool: Pool, row_of: RowOf) -> None:
    await queue.create_queue("big", partition=True, heartbeat_seconds=10, delete_after_seconds=5)
    job_id = await queue.send("big", retry_limit=0)
    await queue.fetch("big")
    await age(pool, 11)
    assert await queue.expire_once() == Expired(0, 1)
    assert (await row_of(job_id))["state"] == "failed"
    await age(pool, 6)
    assert await queue.delete_once() == 1


async def test_stately_job_without_room_to_retry_fails(queue: PgBoss, pool: Pool) -> None:
    await queue.create_queue("stately", policy="stately")
    for _ in range(2):
        await queue.send("stately")
        await queue.fetch("stately")
        await age(pool, 901)
        assert (await queue.expire_once()).timed_out == 1
        await pool.execute("UPDATE pgboss.job SET start_after = now() + interval '1 hour' WHERE state = 'retry'")
    states = await pool.fetch("SELECT state::text FROM pgboss.job ORDER BY created_on")
    assert [row["state"] for row in states] == ["retry", "failed"]


async def test_more_than_a_batch_expires_in_one_pass(queue: PgBoss, pool: Pool) -> None:
    many = EXPIRE_BATCH + 5
    await queue.insert("clip", [{"data": n} for n in range(many)])
    await queue.fetch("clip", many)
    await age(pool, 901)
    assert (await queue.expire_once()).timed_out == many


async def test_supervisors_at_once_expire_each_job_once(queue: PgBoss, pool: Pool) -> None:
    await queue.create_queue("dead")
    await queue.insert("clip", [{"retry_limit": n % 2, "dead_letter": "dead"} for n in range(200)])
    await queue.fetch("clip", 200)
    await age(pool, 901)
    passes = await asyncio.gather(*(queue.expire_once() for _ in range(6)))
    assert sum(each.timed_out for each in passes) == 200
    rows = await pool.fetch(
        "SELECT name, state::text AS state, retry_count, count(*) FROM pgboss.job GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    )
    assert [tuple(row) for row in rows] == [
        ("clip", "failed", 0, 100),
        ("clip", "retry", 0, 100),
        ("dead", "created", 0, 100),
    ]


@pytest.mark.parametrize(("beat", "seconds"), [(None, 901), (10, 60)])
async def test_job_that_is_being_settled_is_left_to_its_worker(
    queue: PgBoss, pool: Pool, beat: int | None, seconds: int
) -> None:
    await queue.create_queue("late", **({"heartbeat_seconds": beat} if beat else {}))  # type: ignore[typeddict-item]
    await queue.send("late")
    (held,) = await queue.fetch("late")
    await age(pool, seconds)
    async with pool.acquire() as worker, worker.transaction():
        assert await queue.complete("late", [held.fence], connection=worker) == {held.id}
        async with asyncio.timeout(5):
            assert await queue.expire_once() == Expired(0, 0)
    assert await pool.fetchval("SELECT state::text FROM pgboss.job WHERE id = $1", held.id) == "completed"


@pytest.mark.parametrize("suffix", ["failJobsByTimeout", "failJobsByHeartbeat", "deletion"])
async def test_table_that_node_is_busy_with_is_left_to_it(
    queue: PgBoss, pool: Pool, row_of: RowOf, suffix: str
) -> None:
    if suffix == "deletion":
        await queue.send("clip", retention_seconds=1)
    else:
        await queue.send("clip", heartbeat_seconds=10 if suffix.endswith("Heartbeat") else None)  # type: ignore[typeddict-item]
        await queue.fetch("clip")
    await age(pool, 60 if suffix.endswith("Heartbeat") else 901)
    database = await pool.fetchval("SELECT current_database()")
    async with pool.acquire() as node, node.transaction():
        await node.execute("SELECT pg_advisory_xact_lock($1)", advisory_key(database, "pgboss", "job_common" + suffix))
        assert await queue.supervise_once() == Supervised(Expired(0, 0), unblocked=0, deleted=0)
    done = await queue.supervise_once()
    assert done.expired.timed_out + done.expired.fell_silent + done.deleted == 1


async def test_jobs_past_their_retention_are_deleted(queue: PgBoss, pool: Pool) -> None:
    kept = [
        await queue.send("clip", {"why": "done, kept for ever"}, delete_after_seconds=0),
        await queue.send("clip", {"why": "done, not old enough"}, delete_after_seconds=1000),
        await queue.send("clip", {"why": "active"}, retention_seconds=1, delete_after_seconds=1),
    ]
    await queue.send("clip", {"why": "done and old"}, delete_after_seconds=10)
    held = await queue.fetch("clip", 4)
    await queue.complete("clip", [delivery.fence for delivery in held if delivery.id != kept[2]])
    await queue.send("clip", {"why": "never worked"}, retention_seconds=10)
    kept.append(await queue.send("clip", {"why": "waiting"}))
    cancelled = await queue.send("clip", {"why": "cancelled and old"}, delete_after_seconds=10)
    assert cancelled is not None
    await queue.cancel("clip", [cancelled])
    await age(pool, 60)
    assert await queue.delete_once() == 3
    assert {row["id"] for row in await pool.fetch("SELECT id FROM pgboss.job")} == set(kept)


async def test_deletion_walks_through_all_batches(queue: PgBoss, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.queue.supervision.DELETE_BATCH", 7)
    await queue.insert("clip", [{"retention_seconds": 1 if n % 2 else 1000} for n in range(40)])
    await age(pool, 60)
    assert await queue.delete_once() == 20
    assert await pool.fetchval("SELECT count(*) FROM pgboss.job") == 20


async def test_deletions_at_once_delete_each_job_once(queue: PgBoss, pool: Pool) -> None:
    await queue.insert("clip", [{"retention_seconds": 1} for _ in range(300)])
    await age(pool, 60)
    assert sum(await asyncio.gather(*(queue.delete_once() for _ in range(6)))) == 300


async def test_dependencies_of_deleted_jobs_are_forgotten(queue: PgBoss, pool: Pool) -> None:
    old = await queue.flow([FlowJob("p", "clip"), FlowJob("c", "clip", depends_on=["p"])])
    new = await queue.flow([FlowJob("p", "clip"), FlowJob("c", "clip", depends_on=["p"])])
    assert old is not None
    assert new is not None
    await pool.execute("UPDATE pgboss.job SET keep_until = now() - interval '1 second' WHERE id = $1", old["c"])
    assert await queue.delete_once() == 1
    assert [row["child_id"] for row in await pool.fetch("SELECT child_id FROM pgboss.job_dependency")] == [new["c"]]


async def test_supervision_does_everything_and_stamps_nothing_of_nodes(queue: PgBoss, pool: Pool) -> None:
    await queue.send("clip")
    await queue.fetch("clip")
    await age(pool, 901)
    await queue.flow([FlowJob("p", "clip", options={"priority": 9}), FlowJob("c", "clip", depends_on=["p"])])
    (parent,) = await queue.fetch("clip")
    await queue.complete("clip", [parent.fence])
    await queue.create_queue("old")
    await queue.send("old", retention_seconds=1)
    await pool.execute("UPDATE pgboss.job SET keep_until = now() - interval '1 second' WHERE name = 'old'")
    assert await queue.supervise_once() == Supervised(Expired(1, 0), unblocked=1, deleted=1)
    stamps = "SELECT count(*) FROM pgboss.queue WHERE coalesce(monitor_on, monitor_claim_on, maintain_on) IS NOT NULL"
    assert await pool.fetchval(stamps) == 0


async def test_older_schema_is_supervised(old_boss: PgBoss, pool: Pool) -> None:
    await old_boss.create_queue("dead")
    await old_boss.flow([FlowJob("p", "q", options={"retry_limit": 0, "dead_letter": "dead"})])
    await old_boss.fetch("q")
    await age(pool, 901)
    assert await old_boss.supervise_once() == Supervised(Expired(1, 0), unblocked=0, deleted=0)
    assert len(await old_boss.fetch("dead")) == 1
