"""Settling: which states each operation takes, what it leaves, and that nothing spoils a caller's transaction."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.integration.queue.conftest import RowOf
from worker.db.pool import Pool
from worker.queue import Delivery, Fence, PgBoss

STATES = ["created", "retry", "active", "completed", "cancelled", "failed"]
Operation = Callable[[PgBoss, UUID], Awaitable[Any]]

#: operation by plain id → the state it makes of each state; what is left out it leaves alone
OUTCOMES: dict[str, tuple[Operation, dict[str, str]]] = {
    "complete": (lambda boss, job: boss.complete("clip", [job]), {"active": "completed"}),
    "complete_queued": (
        lambda boss, job: boss.complete("clip", [job], include_queued=True),
        dict.fromkeys(["created", "retry", "active"], "completed"),
    ),
    "fail": (lambda boss, job: boss.fail("clip", [job]), dict.fromkeys(["created", "retry", "active"], "retry")),
    "dead_letter": (
        lambda boss, job: boss.dead_letter("clip", [job]),
        dict.fromkeys(["created", "retry", "active"], "failed"),
    ),
    "cancel": (
        lambda boss, job: boss.cancel("clip", [job]),
        dict.fromkeys(["created", "retry", "active"], "cancelled"),
    ),
    "touch": (lambda boss, job: boss.touch("clip", [job]), {"active": "active"}),
    "restore": (lambda boss, job: boss.restore("clip", [job]), {"active": "created"}),
    "resume": (lambda boss, job: boss.resume("clip", [job]), {"cancelled": "created"}),
    "retry": (lambda boss, job: boss.retry("clip", [job]), {"failed": "retry"}),
    "delete": (lambda boss, job: boss.delete_jobs("clip", [job]), dict.fromkeys(STATES, "")),
}
#: operation with an old fence
FENCED: dict[str, Callable[[PgBoss, Fence], Awaitable[Any]]] = {
    "complete": lambda boss, fence: boss.complete("clip", [fence]),
    "complete_queued": lambda boss, fence: boss.complete("clip", [fence], include_queued=True),
    "fail": lambda boss, fence: boss.fail("clip", [fence]),
    "dead_letter": lambda boss, fence: boss.dead_letter("clip", [fence]),
    "cancel": lambda boss, fence: boss.cancel("clip", [fence]),
    "touch": lambda boss, fence: boss.touch("clip", [fence]),
    "restore": lambda boss, fence: boss.restore("clip", [fence]),
    "delete": lambda boss, fence: boss.delete_jobs("clip", [fence]),
}


async def job_in(queue: PgBoss, pool: Pool, state: str) -> UUID:
    job_id = await queue.send("clip", {})
    assert job_id is not None
    await pool.execute(
        "UPDATE pgboss.job SET state = $2::text::pgboss.job_state, started_on = now(), "
        "completed_on = CASE WHEN $2 IN ('completed', 'cancelled', 'failed') THEN now() END WHERE id = $1",
        job_id,
        state,
    )
    return job_id


@pytest.mark.parametrize("operation", OUTCOMES)
async def test_operation_takes_the_states_it_is_for(queue: PgBoss, pool: Pool, operation: str) -> None:
    run, outcomes = OUTCOMES[operation]
    for state in STATES:
        job_id = await job_in(queue, pool, state)
        answer = await run(queue, job_id)
        assert set(answer) == ({job_id} if state in outcomes else set()), state
        row = await pool.fetchrow("SELECT state::text AS state, completed_on FROM pgboss.job WHERE id = $1", job_id)
        expected = outcomes.get(state, state)
        assert (row["state"] if row else "") == expected
        if row:
            assert (row["completed_on"] is not None) == (expected in {"completed", "cancelled", "failed"})


@pytest.mark.parametrize("operation", FENCED)
async def test_old_fence_reaches_neither_a_later_attempt_nor_a_waiting_job(
    queue: PgBoss, row_of: RowOf, operation: str
) -> None:
    await queue.send("clip", {})
    (old,) = await queue.fetch("clip")
    await queue.fail("clip", [old.fence])
    waiting = await row_of(old.id)
    assert not await FENCED[operation](queue, old.fence)
    assert await row_of(old.id) == waiting
    (new,) = await queue.fetch("clip")
    running = await row_of(old.id)
    assert not await FENCED[operation](queue, old.fence)
    assert await row_of(old.id) == running
    assert set(await FENCED[operation](queue, new.fence)) == {new.id}


async def test_completing_a_waiting_job_frees_it_of_its_flow(queue: PgBoss, pool: Pool, row_of: RowOf) -> None:
    job_id = await queue.send("clip", {})
    assert job_id is not None
    await pool.execute("UPDATE pgboss.job SET blocked = true, blocking = true, pending_dependencies = 2")
    await queue.complete("clip", [job_id], [{"by": "hand"}], include_queued=True)
    row = await row_of(job_id)
    assert (row["blocked"], row["blocking"], row["pending_dependencies"]) == (False, True, 0)
    assert row["output"] == {"by": "hand"}


async def test_each_job_of_a_batch_has_its_own_result(queue: PgBoss, row_of: RowOf) -> None:
    await queue.insert("clip", [{"retry_limit": limit, "priority": -limit} for limit in (0, 1, 1)])
    first, second, third = await queue.fetch("clip", 3)
    await queue.cancel("clip", [third.id])
    states = await queue.fail("clip", [first.fence, second.fence, third.fence, Fence(uuid4(), 0)], ["a", "b", "c", "d"])
    assert states == {first.id: "failed", second.id: "retry"}
    assert [(await row_of(each.id))["output"] for each in (first, second, third)] == [
        {"value": "a"},
        {"value": "b"},
        None,
    ]


async def test_batch_keeps_what_fits_when_a_policy_refuses_one(queue: PgBoss, pool: Pool, row_of: RowOf) -> None:
    """stately: one retry of a key; in a caller's transaction, which must survive the refusal."""
    await queue.create_queue("dead")
    await queue.create_queue("q", policy="stately", retry_limit=5, retry_delay=60, dead_letter="dead")
    for _ in range(2):
        await queue.send("q", {}, singleton_key="a")
        (crowding,) = await queue.fetch("q")
        if not await pool.fetchval("SELECT count(*) FROM pgboss.job WHERE state = 'retry'"):
            await queue.fail("q", [crowding.fence])
    await queue.send("q", {}, singleton_key="b")
    (other,) = await queue.fetch("q")
    async with pool.acquire() as connection, connection.transaction():
        states = await queue.fail("q", [crowding.fence, other.fence], connection=connection)
        assert await connection.fetchval("SELECT 1") == 1
    assert states == {crowding.id: "failed", other.id: "retry"}
    assert await pool.fetchval("SELECT array_agg(source_id) FROM pgboss.job WHERE name = 'dead'") == [crowding.id]


class TestDeadLetter:
    async def test_copy_has_the_dead_letter_queues_settings_and_the_jobs_identity(
        self, queue: PgBoss, pool: Pool, row_of: RowOf
    ) -> None:
        await queue.create_queue("dead", retry_limit=9, expire_in_seconds=50, retention_seconds=100, policy="short")
        await queue.create_queue("q", dead_letter="dead", retry_backoff=True, retry_delay_max=4)
        await queue.send("q", {"x": 1}, priority=4, singleton_key="k", group={"id": "g", "tier": "t"})
        (delivery,) = await queue.fetch("q")
        assert await queue.dead_letter("q", [delivery.fence], [{"message": "no"}]) == {delivery.id}
        original = await row_of(delivery.id)
        (copy_id,) = [row["id"] for row in await pool.fetch("SELECT id FROM pgboss.job WHERE name = 'dead'")]
        copy = await row_of(copy_id)
        assert (original["state"], original["output"]) == ("failed", {"message": "no"})
        assert (copy["state"], copy["data"], copy["priority"], copy["retry_count"]) == ("created", {"x": 1}, 4, 0)
        assert (copy["singleton_key"], copy["group_id"], copy["group_tier"]) == ("k", "g", "t")
        assert (copy["retry_limit"], copy["expire_seconds"], copy["retry_delay_max"]) == (9, 50, None)
        assert (copy["policy"], copy["dead_letter"], copy["output"]) == (None, None, None)
        assert (copy["source_name"], copy["source_id"], copy["source_retry_count"]) == ("q", delivery.id, 0)
        assert (copy["source_output"], copy["source_root_id"]) == ({"message": "no"}, delivery.id)
        assert copy["source_created_on"] == original["created_on"]
        assert (copy["keep_until"] - copy["created_on"]).total_seconds() == 100

    async def test_there_may_be_none(self, queue: PgBoss, pool: Pool) -> None:
        await queue.send("clip", {})
        (delivery,) = await queue.fetch("clip")
        assert await queue.dead_letter("clip", [delivery.fence]) == {delivery.id}
        assert await pool.fetchval("SELECT count(*) FROM pgboss.job") == 1


class TestRestore:
    async def test_no_attempt_is_used_up(self, queue: PgBoss, row_of: RowOf) -> None:
        await queue.send("clip", {})
        (first,) = await queue.fetch("clip")
        assert await queue.restore("clip", [first.fence]) == {first.id}
        row = await row_of(first.id)
        assert (row["state"], row["started_on"], row["heartbeat_on"]) == ("created", None, None)
        (again,) = await queue.fetch("clip")
        assert again.retry_count == first.retry_count == 0

    @pytest.mark.parametrize("policy", ["short", "stately"])
    async def test_job_whose_place_was_taken_waits_as_a_retry(
        self, queue: PgBoss, pool: Pool, row_of: RowOf, policy: Any
    ) -> None:
        await queue.create_queue("q", policy=policy)
        running: list[Delivery] = []
        for key in "ab":
            await queue.send("q", {}, singleton_key=key)
            running += await queue.fetch("q")
        await queue.send("q", {}, singleton_key="a")
        async with pool.acquire() as connection, connection.transaction():
            fences = [delivery.fence for delivery in running]
            assert await queue.restore("q", fences, connection=connection) == {each.id for each in running}
        assert [(await row_of(each.id))["state"] for each in running] == ["retry", "created"]

    async def test_job_without_any_place_stays_claimed(self, queue: PgBoss, row_of: RowOf) -> None:
        await queue.create_queue("q", policy="stately", retry_limit=5, retry_delay=60)
        await queue.send("q", {})
        (first,) = await queue.fetch("q")
        await queue.fail("q", [first.fence])
        await queue.send("q", {})
        (second,) = await queue.fetch("q")
        await queue.send("q", {})
        assert await queue.restore("q", [second.fence]) == set()
        assert (await row_of(second.id))["state"] == "active"
