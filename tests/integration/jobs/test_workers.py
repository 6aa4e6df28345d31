"""Rows of workers: the SQL functions, counts that are right whatever is repeated, and who is seen how."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from tests.conftest import Room
from tests.jobs import one_attempt
from worker.domain.job import JobId, WorkerId
from worker.domain.outcome import AbortReason
from worker.jobs.workers import MAX_ERROR_CHARS, Place, QueueTotal, WorkerRows, WorkerSummary

PLACE = Place("host-1", 4711, 2)
JOB = JobId(uuid4())


@pytest.fixture
def rows(room: Room) -> WorkerRows:
    return WorkerRows(room.pool, room.queue)


async def begin(rows: WorkerRows, *, expected_seconds: float = 10) -> WorkerId:
    return await rows.start("1.2.3", expected_seconds=expected_seconds, place=PLACE)


async def beat(rows: WorkerRows, worker: WorkerId, successes: int, errors: int = 0, error: str | None = None) -> bool:
    return await rows.heartbeat(worker, successes=successes, errors=errors, last_error=error)


async def look(rows: WorkerRows, worker: UUID) -> WorkerSummary:
    (found,) = [each for each in await rows.listing(with_stopped=True) if each.id == worker]
    return found


async def fall_silent(room: Room, worker: WorkerId, seconds: float) -> None:
    await room.pool.execute(
        "UPDATE worker.worker_process SET last_heartbeat = clock_timestamp() - $2::interval WHERE id = $1",
        worker,
        timedelta(seconds=seconds),
    )


@asynccontextmanager
async def held_up(room: Room, table: str, waiting: int) -> AsyncIterator[None]:
    """Statements that are begun in here all have seen the row before any of them may change it."""
    count = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with room.pool.acquire() as connection, connection.transaction():
        await connection.execute(f"SELECT FROM worker.{table} FOR UPDATE")
        yield
        async with asyncio.timeout(20):
            while await room.pool.fetchval(count) < waiting:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("function", "result"),
    [
        ("_worker_start(text, interval)", "uuid"),
        ("_worker_heartbeat(uuid, bigint, bigint, text)", "boolean"),
        ("_worker_progress(uuid, text, bigint, text)", "bigint"),
    ],
)
async def test_functions_are_called_as_agreed_and_run_with_the_callers_rights(
    room: Room, function: str, result: str
) -> None:
    row = await room.pool.fetchrow(
        "SELECT prorettype::regtype::text AS result, prosecdef, proconfig, proacl::text AS rights"
        " FROM pg_proc WHERE oid = ('worker.' || $1)::regprocedure",
        function,
    )
    assert row is not None
    assert (row["result"], row["prosecdef"]) == (result, False)
    assert row["proconfig"] == ["search_path=pg_catalog, pg_temp"]
    assert not any(right.startswith("=") for right in row["rights"].strip("{}").split(","))


async def test_functions_serve_workers_in_any_language(room: Room) -> None:
    worker = await room.pool.fetchval("SELECT worker._worker_start('9', '3 seconds')")
    beat = "SELECT worker._worker_heartbeat($1, $2, $3, $4)"
    assert await room.pool.fetchval(beat, worker, 2, 1, "CLIP_FAILED: no") is True
    assert await room.pool.fetchval(beat, worker, 3, 0, None) is True
    assert await room.pool.fetchval(beat, uuid4(), 3, 0, None) is False
    for count in (1, 2):
        await room.pool.execute("SELECT worker._worker_progress($1, 'clip', $2, 'a job')", worker, count)
    row = await room.pool.fetchrow("SELECT * FROM worker.worker_process")
    assert row is not None
    assert (row["successes"], row["errors"], row["last_error"]) == (5, 1, "CLIP_FAILED: no")
    assert row["last_heartbeat"] > row["last_error_at"] > row["started_at"]
    assert await room.pool.fetchval("SELECT worker._worker_progress($1, 'clip', 0, NULL)", worker) == 3
    assert await room.pool.fetchval("SELECT last_job FROM worker.worker_progress") == "a job"


async def test_times_are_those_of_the_clock_and_not_of_the_transaction(room: Room) -> None:
    async with room.pool.acquire() as connection, connection.transaction():
        worker = await connection.fetchval("SELECT worker._worker_start('9', '3 seconds')")
        await connection.execute("SELECT worker._worker_heartbeat($1, 0, 0, NULL)", worker)
        assert await connection.fetchval(
            "SELECT last_heartbeat > started_at AND started_at > now() FROM worker.worker_process"
        )


@pytest.mark.parametrize("delta", [-1, None])
async def test_counts_only_grow(room: Room, rows: WorkerRows, delta: int | None) -> None:
    worker = await begin(rows)
    with pytest.raises(asyncpg.InvalidParameterValueError):
        await room.pool.execute("SELECT worker._worker_heartbeat($1, $2, 0, NULL)", worker, delta)
    with pytest.raises(asyncpg.InvalidParameterValueError):
        await room.pool.execute("SELECT worker._worker_progress($1, 'clip', $2, NULL)", worker, delta)


async def test_heartbeat_that_is_repeated_or_late_counts_nothing_twice(rows: WorkerRows) -> None:
    worker = await begin(rows)
    for successes, errors in [(3, 1), (3, 1), (5, 1), (3, 0), (5, 1)]:
        assert await beat(rows, worker, successes, errors)
    found = await look(rows, worker)
    assert (found.successes, found.errors) == (5, 1)


async def test_heartbeats_at_the_same_moment_count_once(room: Room, rows: WorkerRows) -> None:
    worker = await begin(rows)
    async with held_up(room, "worker_process", 3):
        beats = [asyncio.create_task(beat(rows, worker, 5, 2)) for _ in range(3)]
    assert await asyncio.gather(*beats) == [True] * 3
    found = await look(rows, worker)
    assert (found.successes, found.errors) == (5, 2)


async def test_last_error_is_the_one_that_was_counted_last(rows: WorkerRows) -> None:
    worker = await begin(rows)
    await beat(rows, worker, 0, 1, "CLIP_FAILED: \x00" + "x" * 10_000)
    first = await look(rows, worker)
    await beat(rows, worker, 1, 1, "CLIP_FAILED: again, but nothing new failed")
    second = await look(rows, worker)
    assert first.last_error == "CLIP_FAILED: \ufffd" + "x" * (MAX_ERROR_CHARS - 14)
    assert (second.last_error, second.last_error_at) == (first.last_error, first.last_error_at)


async def test_heartbeat_tells_when_the_row_is_gone(room: Room, rows: WorkerRows) -> None:
    worker = await begin(rows)
    assert await beat(rows, worker, 1)
    await room.pool.execute("DELETE FROM worker.worker_process")
    assert not await beat(rows, worker, 2)


async def test_progress_is_kept_by_queue_and_without_a_process(room: Room, rows: WorkerRows) -> None:
    worker = await begin(rows)
    await rows.progress(worker, {"clip": QueueTotal(2, JOB), "clip.page": QueueTotal(7, JOB), "idle": QueueTotal()})
    await room.pool.execute("DELETE FROM worker.worker_process")
    await rows.progress(worker, {"clip": QueueTotal(2, JOB), "clip.page": QueueTotal(8, JOB)})
    counted = await room.pool.fetch("SELECT queue, processed, last_job FROM worker.worker_progress ORDER BY queue")
    assert [tuple(row) for row in counted] == [("clip", 2, str(JOB)), ("clip.page", 8, str(JOB)), ("idle", 0, None)]


async def test_progress_at_the_same_moment_counts_once(room: Room, rows: WorkerRows) -> None:
    worker = await begin(rows)
    await rows.progress(worker, {"clip": QueueTotal(1, JOB)})
    async with held_up(room, "worker_progress", 3):
        writes = [asyncio.create_task(rows.progress(worker, {"clip": QueueTotal(5, JOB)})) for _ in range(3)]
    await asyncio.gather(*writes)
    assert await room.pool.fetchval("SELECT processed FROM worker.worker_progress") == 5


async def test_first_progress_at_the_same_moment_counts_once(room: Room, rows: WorkerRows) -> None:
    worker = await begin(rows)
    totals = {"clip": QueueTotal(3, JOB), "clip.page": QueueTotal(4, JOB)}
    await asyncio.gather(*(rows.progress(worker, totals) for _ in range(8)))
    counted = await room.pool.fetch("SELECT processed FROM worker.worker_progress ORDER BY queue")
    assert [row["processed"] for row in counted] == [3, 4]


async def test_progress_whose_row_was_removed_is_written_anew(room: Room, rows: WorkerRows) -> None:
    worker = await begin(rows)
    await rows.progress(worker, {"clip": QueueTotal(3, JOB)})
    await room.pool.execute("DELETE FROM worker.worker_progress")
    await rows.progress(worker, {"clip": QueueTotal(4, JOB)})
    assert await room.pool.fetchval("SELECT processed FROM worker.worker_progress") == 4


async def test_workers_are_seen_as_they_are(room: Room, rows: WorkerRows) -> None:
    ids = [await begin(rows) for _ in range(4)]
    for worker, silent in zip(ids, [0, 16, 21, 21], strict=True):
        await fall_silent(room, worker, silent)
    await rows.stop(ids[3])
    assert [(each.id, each.state) for each in await rows.listing()] == [
        (ids[0], "alive"),
        (ids[1], "late"),
        (ids[2], "dead"),
    ]
    *_, last = await rows.listing(with_stopped=True)
    assert (last.id, last.state) == (ids[3], "stopped")
    assert (last.host, last.pid, last.slots, last.version, last.expected_seconds) == ("host-1", 4711, 2, "1.2.3", 10)


async def test_worker_shows_the_jobs_it_holds_and_so_does_one_without_a_row(room: Room, rows: WorkerRows) -> None:
    registered, unregistered = await begin(rows), WorkerId(uuid4())
    for _ in range(4):
        await room.desk.submit("clip", {"source": "https://example.com/talk.mp4"})
    working, given_back = await one_attempt(room, registered), await one_attempt(room, registered)
    elsewhere, ended = await one_attempt(room, unregistered), await one_attempt(room, registered)
    await room.store.note_progress({working.lease: 0.25})
    await room.store.release(given_back.lease, AbortReason.SHUTDOWN)
    await room.store.finish(ended.lease, {})
    first, second = await rows.listing()
    assert [(job.id, job.queue, job.progress, job.attempt) for job in first.jobs] == [(working.job_id, "clip", 0.25, 1)]
    assert (second.id, second.state) == (unregistered, "unregistered")
    assert [job.id for job in second.jobs] == [elsewhere.job_id]


async def test_workers_that_ended_long_ago_are_forgotten(room: Room, rows: WorkerRows) -> None:
    alive, idle, old = [await begin(rows) for _ in range(3)]
    for worker in (alive, idle, old):
        await rows.progress(worker, {"clip": QueueTotal(1, JOB)})
    await room.pool.execute("UPDATE worker.worker_progress SET updated_at = clock_timestamp() - interval '8 days'")
    await fall_silent(room, idle, 6 * 86400)
    await fall_silent(room, old, 8 * 86400)
    week = 7 * 86400.0
    assert await rows.prune(older_than_seconds=week) == 1
    assert await rows.prune(older_than_seconds=week) == 0
    assert {each.id for each in await rows.listing()} == {alive, idle}
    left = await room.pool.fetch("SELECT worker_id FROM worker.worker_progress")
    assert {row["worker_id"] for row in left} == {alive, idle}


async def test_living_worker_is_not_forgotten_however_short_the_time_is_set(room: Room, rows: WorkerRows) -> None:
    worker = await begin(rows, expected_seconds=10)
    await fall_silent(room, worker, 15)
    assert await rows.prune(older_than_seconds=0.001) == 0
    await fall_silent(room, worker, 21)
    assert await rows.prune(older_than_seconds=0.001) == 1


async def test_heartbeats_stay_on_their_page(room: Room, rows: WorkerRows) -> None:
    worker = await begin(rows)
    async with room.pool.acquire() as connection:
        for number in range(100):
            await connection.execute("SELECT worker._worker_heartbeat($1, 1, 0, $2)", worker, f"error {number}")
        await connection.execute("SELECT pg_stat_force_next_flush()")
        row = await connection.fetchrow(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'worker.worker_process'::regclass"
        )
    assert row is not None
    assert row["n_tup_upd"] >= 100
    assert row["n_tup_hot_upd"] / row["n_tup_upd"] >= 0.95
