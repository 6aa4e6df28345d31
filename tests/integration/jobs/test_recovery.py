"""Recovery: jobs of workers that vanished or gave them back go to the living, on both tables."""

import asyncio
from uuid import uuid4

import pytest

from tests.conftest import Room
from tests.jobs import both_tables, event_kinds, one_attempt
from worker.domain.job import Attempt, WorkerId

ME = WorkerId(uuid4())


@pytest.fixture
async def attempt(room: Room) -> Attempt:
    await room.desk.submit("clip", {"source": "x"})
    return await one_attempt(room, ME)


async def silence(room: Room, attempt: Attempt) -> None:
    """As if its worker had not been heard of for an hour."""
    await room.pool.execute(
        "UPDATE worker.jobs SET last_heartbeat_at = now() - interval '1 hour' WHERE id = $1", attempt.job_id
    )


async def test_live_lease_is_left_alone(room: Room, attempt: Attempt) -> None:
    assert (await room.leases.recover(silent_are_dead=True)).total == 0
    assert await both_tables(room, attempt.job_id) == ("processing", "active")


async def test_stale_lease_is_requeued_and_costs_an_attempt(room: Room, attempt: Attempt) -> None:
    await silence(room, attempt)
    report = await room.leases.recover(silent_are_dead=True)
    assert report.recovered == {"stale": 1}
    assert await both_tables(room, attempt.job_id) == ("queued", "retry")
    assert "requeued:stale" in await event_kinds(room, attempt.job_id)
    second = await one_attempt(room, ME)
    assert (second.number, second.crash_count) == (2, 1)


async def test_silence_is_not_death_during_the_grace(room: Room, attempt: Attempt) -> None:
    await silence(room, attempt)
    assert (await room.leases.recover(silent_are_dead=False)).total == 0


async def test_lease_given_back_is_requeued_at_once_without_costing_an_attempt(room: Room, attempt: Attempt) -> None:
    await room.store.release(attempt.lease)
    assert (await room.desk.show(attempt.job_id)).status == "processing"
    report = await room.leases.recover(silent_are_dead=False)
    assert report.recovered == {"handed_back": 1}
    assert await both_tables(room, attempt.job_id) == ("queued", "created")
    second = await one_attempt(room, ME)
    assert (second.number, second.crash_count, second.lease.retry_count) == (1, 0, 0)
    assert "aborted:shutdown" in await event_kinds(room, attempt.job_id)


async def test_job_out_of_attempts_fails(room: Room) -> None:
    await room.desk.submit("clip", {}, {"retryLimit": 0})
    attempt = await one_attempt(room, ME)
    await silence(room, attempt)
    assert (await room.leases.recover(silent_are_dead=True)).recovered == {"failed": 1}
    job = await room.desk.show(attempt.job_id)
    assert (job.status, job.error_code) == ("failed", "RETRIES_EXHAUSTED")
    assert await both_tables(room, attempt.job_id) == ("failed", "failed")


async def test_job_that_kills_its_worker_three_times_is_poison(room: Room) -> None:
    await room.desk.submit("clip", {}, {"retryLimit": 9})
    for _ in range(3):
        attempt = await one_attempt(room, ME)
        await silence(room, attempt)
        await room.leases.recover(silent_are_dead=True)
    job = await room.desk.show(attempt.job_id)
    assert (job.status, job.error_code) == ("failed", "POISON_JOB")
    assert await both_tables(room, attempt.job_id) == ("failed", "failed")


async def test_stale_job_that_should_be_cancelled_is_cancelled(room: Room, attempt: Attempt) -> None:
    await room.desk.cancel(attempt.job_id)
    await silence(room, attempt)
    await room.leases.recover(silent_are_dead=True)
    assert await both_tables(room, attempt.job_id) == ("cancelled", "cancelled")


@pytest.mark.parametrize(
    ("state", "status"), [("completed", "done"), ("failed", "failed"), ("cancelled", "cancelled"), ("retry", "queued")]
)
async def test_what_another_pg_boss_client_decided_stands(
    room: Room, attempt: Attempt, state: str, status: str
) -> None:
    await room.pool.execute("UPDATE pgboss.job SET state = $1::pgboss.job_state, output = '{}'", state)
    await silence(room, attempt)
    await room.leases.recover(silent_are_dead=True)
    assert await both_tables(room, attempt.job_id) == (status, state)


async def test_job_whose_delivery_was_deleted_ends(room: Room, attempt: Attempt) -> None:
    await room.pool.execute("DELETE FROM pgboss.job")
    await silence(room, attempt)
    await room.leases.recover(silent_are_dead=True)
    job = await room.desk.show(attempt.job_id)
    assert (job.status, job.error_code) == ("cancelled", "DELIVERY_GONE")


async def test_scanners_of_many_workers_requeue_a_job_once(room: Room) -> None:
    for _ in range(20):
        await room.desk.submit("clip", {})
    for attempt in (await room.store.acquire("clip", 20, ME)).attempts:
        await silence(room, attempt)
    reports = await asyncio.gather(*(room.leases.recover(silent_are_dead=True) for _ in range(6)))
    assert sum(report.total for report in reports) == 20
    counts = await room.pool.fetch("SELECT attempt_count FROM worker.jobs")
    assert {row["attempt_count"] for row in counts} == {1}


async def test_beat_that_comes_first_keeps_the_lease(room: Room, attempt: Attempt) -> None:
    await silence(room, attempt)
    await room.store.beat([attempt.lease])
    assert (await room.leases.recover(silent_are_dead=True)).total == 0


async def test_finish_in_flight_wins_over_the_scanner(room: Room, attempt: Attempt) -> None:
    await silence(room, attempt)
    async with room.pool.acquire() as finishing, finishing.transaction():
        # The lock that a settle holds from its first row on.
        await finishing.execute("SELECT FROM pgboss.job WHERE id = $1 FOR UPDATE", attempt.job_id)
        assert (await room.leases.recover(silent_are_dead=True)).total == 0
    await room.store.finish(attempt.lease, {})
    assert await both_tables(room, attempt.job_id) == ("done", "completed")


async def scanned(room: Room, *, last_ok: str, available_since: str) -> None:
    """As if scans had gone well since then, and the last one was then."""
    await room.pool.execute(
        "UPDATE worker.scan_state "
        "SET last_ok = now() - $1::text::interval, available_since = now() - $2::text::interval",
        last_ok,
        available_since,
    )


async def test_silence_is_death_when_scans_went_well_for_a_lease(room: Room) -> None:
    await scanned(room, last_ok="15 s", available_since="46 s")
    assert await room.leases.note_scan(after_failure=False)


async def test_grace_lasts_one_lease(room: Room) -> None:
    await scanned(room, last_ok="15 s", available_since="40 s")
    assert not await room.leases.note_scan(after_failure=False)


@pytest.mark.parametrize(("last_ok", "after_failure"), [("15 s", True), ("24 s", False)])
async def test_grace_begins_anew_after_a_failed_scan_or_half_a_lease_without_any(
    room: Room, last_ok: str, after_failure: bool
) -> None:
    await scanned(room, last_ok=last_ok, available_since="1 hour")
    assert not await room.leases.note_scan(after_failure=after_failure)
    # and everybody else sees that too
    assert not await room.leases.note_scan(after_failure=False)
