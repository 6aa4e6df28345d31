"""What becomes of a job we hold when another pg-boss client cancels, fails, expires, deletes or retries it."""

from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

import pytest

from tests.conftest import Room
from tests.jobs import both_tables, one_attempt
from worker.domain.job import Attempt, WorkerId
from worker.errors import LeaseLost, RetryableError
from worker.queue import Fence

ME, OTHER = WorkerId(uuid4()), WorkerId(uuid4())
Act = Callable[[Room, UUID], Awaitable[object]]


async def cancel(room: Room, job_id: UUID) -> None:
    await room.queue.cancel("clip", [job_id])


async def fail(room: Room, job_id: UUID) -> None:
    await room.queue.fail("clip", [Fence(job_id, None)], [{}])


async def fail_for_good(room: Room, job_id: UUID) -> None:
    await room.queue.fail("clip", [Fence(job_id, None)], [{}], is_final=True)


async def complete(room: Room, job_id: UUID) -> None:
    await room.queue.complete("clip", [job_id], {"by": "node"})


async def expire(room: Room, job_id: UUID) -> None:
    await room.pool.execute("UPDATE pgboss.job SET started_on = now() - interval '1 day' WHERE id = $1", job_id)
    # Anybody's supervisor, ours among them; its turn comes once a minute.
    await room.pool.execute("UPDATE pgboss.queue SET monitor_on = NULL")
    await room.queue.expire_once()


async def delete(room: Room, job_id: UUID) -> None:
    await room.pool.execute("DELETE FROM pgboss.job WHERE id = $1", job_id)


async def fail_and_retry(room: Room, job_id: UUID) -> None:
    await fail_for_good(room, job_id)
    await room.queue.retry("clip", [job_id])


async def silence(room: Room, attempt: Attempt) -> None:
    await room.pool.execute(
        "UPDATE worker.jobs SET last_heartbeat_at = now() - interval '1 hour' WHERE id = $1", attempt.job_id
    )


ACTS: dict[str, tuple[Act, tuple[str | None, str | None]]] = {
    # the act, and what both tables say once the lease has run out and recovery has been round
    "cancel": (cancel, ("cancelled", "cancelled")),
    "fail": (fail, ("queued", "retry")),
    "fail_for_good": (fail_for_good, ("failed", "failed")),
    "complete": (complete, ("done", "completed")),
    "expire": (expire, ("queued", "retry")),
    "delete": (delete, ("cancelled", None)),
    "fail_and_retry": (fail_and_retry, ("queued", "retry")),
}


@pytest.fixture
async def attempt(room: Room) -> Attempt:
    await room.desk.submit("clip", {"source": "x"})
    return await one_attempt(room, ME)


@pytest.mark.parametrize("name", ACTS)
async def test_next_beat_learns_of_it(room: Room, attempt: Attempt, name: str) -> None:
    await ACTS[name][0](room, attempt.job_id)
    answer = await room.store.beat([attempt.lease])
    assert (answer.cancelled if name == "cancel" else answer.lost) == {attempt.job_id}


@pytest.mark.parametrize("name", ACTS)
async def test_nothing_the_holder_writes_afterwards_counts(room: Room, attempt: Attempt, name: str) -> None:
    await ACTS[name][0](room, attempt.job_id)
    before = await both_tables(room, attempt.job_id)
    with pytest.raises(LeaseLost):
        await room.store.finish(attempt.lease, {"mine": True})
    with pytest.raises(LeaseLost):
        await room.store.requeue(attempt.lease, RetryableError("mine"))
    assert await both_tables(room, attempt.job_id) == before


@pytest.mark.parametrize("name", ACTS)
async def test_both_tables_agree_once_the_lease_has_run_out(room: Room, attempt: Attempt, name: str) -> None:
    act, expected = ACTS[name]
    await act(room, attempt.job_id)
    await silence(room, attempt)
    await room.leases.recover(silent_are_dead=True)
    assert await both_tables(room, attempt.job_id) == expected


@pytest.mark.parametrize("name", ["fail", "expire", "fail_and_retry"])
async def test_new_delivery_waits_for_the_live_lease_and_then_runs(room: Room, attempt: Attempt, name: str) -> None:
    await ACTS[name][0](room, attempt.job_id)
    assert (await room.store.acquire("clip", 1, OTHER)).attempts == []
    await silence(room, attempt)
    second = await one_attempt(room, OTHER)
    assert second.number == 2
    await room.store.finish(second.lease, {"by": "the second"})
    assert await both_tables(room, attempt.job_id) == ("done", "completed")
