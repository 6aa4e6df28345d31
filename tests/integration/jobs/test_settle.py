"""Ending an attempt: both tables together, and only for the holder of the lease."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from uuid import uuid4

import pytest

from tests.conftest import Room
from tests.jobs import both_tables, event_kinds, one_attempt
from worker.domain.job import Attempt, LeaseToken, WorkerId
from worker.errors import ClipFailed, LeaseLost, UpstreamFailure

ME = WorkerId(uuid4())
Write = Callable[[Room, Attempt], Awaitable[None]]

WRITES: dict[str, Write] = {
    "finish": lambda room, attempt: room.store.finish(attempt.lease, {"x": 1}),
    "requeue": lambda room, attempt: room.store.requeue(attempt.lease, UpstreamFailure("away")),
    "give_up": lambda room, attempt: room.store.give_up(attempt.lease, ClipFailed("no")),
    "mark_cancelled": lambda room, attempt: room.store.mark_cancelled(attempt.lease),
    "note": lambda room, attempt: room.store.note(attempt.lease, "stage:started"),
}


@pytest.fixture
async def attempt(room: Room) -> Attempt:
    await room.desk.submit("clip", {"source": "x"})
    return await one_attempt(room, ME)


async def test_finish_records_the_result_on_both_tables(room: Room, attempt: Attempt) -> None:
    await room.store.finish(attempt.lease, {"frames": 7, "text": "nul \x00 and \ud800"})
    assert await both_tables(room, attempt.job_id) == ("done", "completed")
    job = await room.desk.show(attempt.job_id)
    assert job.result == {"frames": 7, "text": "nul \ufffd and ?"}
    assert await room.pool.fetchval("SELECT output FROM pgboss.job WHERE id = $1", attempt.job_id) == job.result
    assert await event_kinds(room, attempt.job_id) == ["submitted", "acquired", "done"]


async def test_requeue_counts_the_attempt_and_shows_the_error_to_node(room: Room, attempt: Attempt) -> None:
    await room.store.requeue(attempt.lease, UpstreamFailure("the origin answered 503"))
    assert await both_tables(room, attempt.job_id) == ("queued", "retry")
    row = await room.pool.fetchrow("SELECT output, completed_on FROM pgboss.job WHERE id = $1", attempt.job_id)
    assert row is not None
    assert row["output"] == {
        "name": "UpstreamFailure",
        "message": "the origin answered 503",
        "code": "UPSTREAM_FAILURE",
    }
    second = await one_attempt(room, ME)
    assert (second.number, second.lease.retry_count) == (2, 1)


async def test_give_up_fails_both_and_fills_the_dead_letter_queue(room: Room) -> None:
    await room.queue.create_queue("graveyard")
    await room.queue.create_queue("mortal", dead_letter="graveyard")
    await room.queue.send("mortal", {"source": "x"}, priority=4)
    attempt = await one_attempt(room, ME, "mortal")
    await room.store.give_up(attempt.lease, ClipFailed("no picture"))
    assert await both_tables(room, attempt.job_id) == ("failed", "failed")
    buried = await room.pool.fetchrow("SELECT * FROM pgboss.job WHERE name = 'graveyard'")
    assert buried is not None
    assert (buried["data"], buried["source_id"], buried["state"], buried["priority"], buried["output"]) == (
        {"source": "x"},
        attempt.job_id,
        "created",
        4,
        None,
    )
    assert buried["source_output"]["code"] == "CLIP_FAILED"


@pytest.mark.parametrize("name", WRITES)
async def test_write_with_an_old_token_changes_nothing(room: Room, attempt: Attempt, name: str) -> None:
    stale = replace(attempt, lease=replace(attempt.lease, token=LeaseToken(attempt.lease.token - 1)))
    with pytest.raises(LeaseLost):
        await WRITES[name](room, stale)
    assert await both_tables(room, attempt.job_id) == ("processing", "active")
    assert await event_kinds(room, attempt.job_id) == ["submitted", "acquired"]


@pytest.mark.parametrize("name", ["finish", "requeue", "give_up"])
async def test_write_after_pg_boss_moved_on_changes_nothing(room: Room, attempt: Attempt, name: str) -> None:
    # What pg-boss's supervisor does to a job that overran: the row waits again, or runs as the next attempt.
    await room.pool.execute("UPDATE pgboss.job SET retry_count = retry_count + 1 WHERE id = $1", attempt.job_id)
    with pytest.raises(LeaseLost):
        await WRITES[name](room, attempt)
    assert await both_tables(room, attempt.job_id) == ("processing", "active")


@pytest.mark.parametrize("first", ["finish", "give_up", "mark_cancelled", "requeue"])
@pytest.mark.parametrize("second", ["finish", "give_up", "mark_cancelled", "requeue"])
async def test_attempt_ends_once(room: Room, attempt: Attempt, first: str, second: str) -> None:
    await WRITES[first](room, attempt)
    after = await both_tables(room, attempt.job_id)
    with pytest.raises(LeaseLost):
        await WRITES[second](room, attempt)
    assert await both_tables(room, attempt.job_id) == after


async def test_beat_renews_and_tells_what_is_lost_and_what_is_cancelled(room: Room) -> None:
    attempts = []
    for _ in range(3):
        await room.desk.submit("clip", {})
        attempts.append(await one_attempt(room, ME))
    kept, cancelled, lost = attempts
    await room.pool.execute("UPDATE worker.jobs SET last_heartbeat_at = now() - interval '1 minute'")
    await room.desk.cancel(cancelled.job_id)
    await room.pool.execute("UPDATE pgboss.job SET retry_count = 9 WHERE id = $1", lost.job_id)
    answer = await room.store.beat([attempt.lease for attempt in attempts])
    assert (answer.cancelled, answer.lost) == ({cancelled.job_id}, {lost.job_id})
    age = "SELECT clock_timestamp() - last_heartbeat_at < interval '10 seconds' FROM worker.jobs WHERE id = $1"
    assert await room.pool.fetchval(age, kept.job_id) is True
    assert await room.pool.fetchval(age, lost.job_id) is False


async def test_cancel_by_a_node_producer_reaches_the_beat(room: Room, attempt: Attempt) -> None:
    await room.queue.cancel("clip", [attempt.job_id])
    answer = await room.store.beat([attempt.lease])
    assert answer.cancelled == {attempt.job_id}
    await room.store.mark_cancelled(attempt.lease)
    assert await both_tables(room, attempt.job_id) == ("cancelled", "cancelled")


async def test_progress_of_a_lost_lease_is_not_written(room: Room, attempt: Attempt) -> None:
    await room.store.note_progress({attempt.lease: 0.5})
    await room.store.note_progress({replace(attempt.lease, token=LeaseToken(0)): 0.9})
    assert (await room.desk.show(attempt.job_id)).progress == 0.5
