"""The registry on a real database: what is counted is right, whatever becomes of the database or of the row."""

import asyncio
import time
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from structlog.testing import capture_logs

from tests.chaos.proxy import Mode
from tests.conftest import Room
from tests.integration.runtime.registering import an_attempt, behind_a_proxy, in_queues, make_registry, only
from worker.app import open_app, open_worker
from worker.errors import ClipFailed
from worker.jobs.workers import WorkerRows
from worker.runtime.registry import FAREWELL_SECONDS
from worker.runtime.tally import Tally
from worker.settings import Settings


class ForgetfulRows(WorkerRows):
    """Writes go through, and their answers get lost."""

    is_forgetful = False

    async def heartbeat(self, *args: Any, **options: Any) -> bool:
        return await self._answer(await super().heartbeat(*args, **options))

    async def progress(self, *args: Any) -> None:
        await self._answer(await super().progress(*args))  # type: ignore[func-returns-value]

    async def _answer(self, answer: Any) -> Any:
        if self.is_forgetful:
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
        return answer


async def test_worker_is_known_from_the_start_by_the_id_its_leases_carry(room: Room) -> None:
    registry = make_registry(WorkerRows(room.pool, room.queue), Tally())
    await registry.register()
    found = await only(room)
    assert (found.id, found.state, found.expected_seconds) == (registry.worker_id, "alive", 10)
    assert [(each.queue, each.processed) for each in found.queues] == [("clip", 0), ("clip.page", 0)]


async def test_what_ended_is_counted_with_each_heartbeat_and_by_queue(room: Room) -> None:
    tally = Tally()
    registry = make_registry(WorkerRows(room.pool, room.queue), tally)
    await registry.register()
    tally.note_success(an_attempt())
    tally.note_error(an_attempt(), ClipFailed("no"))
    tally.note_success(an_attempt("clip.page"))
    for _ in range(3):
        await registry.run_once()
        await registry.note_progress()
    tally.note_success(last := an_attempt("clip.page"))
    await registry.leave()
    found = await only(room)
    assert (found.state, found.successes, found.errors, found.last_error) == ("stopped", 3, 1, "CLIP_FAILED: no")
    assert [(each.queue, each.processed) for each in found.queues] == [("clip", 2), ("clip.page", 2)]
    assert found.queues[1].last_job == str(last.job_id)


async def test_write_whose_answer_got_lost_is_counted_once(room: Room) -> None:
    tally, rows = Tally(), ForgetfulRows(room.pool, room.queue)
    registry = make_registry(rows, tally)
    await registry.register()
    rows.is_forgetful = True
    for _ in range(3):
        tally.note_success(an_attempt())
        for turn in (registry.run_once, registry.note_progress):
            with pytest.raises(asyncpg.ConnectionDoesNotExistError):
                await turn()
    rows.is_forgetful = False
    await registry.run_once()
    await registry.note_progress()
    assert (await only(room)).successes == 3
    assert await in_queues(room, registry.worker_id) == {"clip": 3, "clip.page": 0}


async def test_database_that_goes_silent_costs_no_count_and_what_arrives_late_adds_none(room: Room, dsn: str) -> None:
    async with behind_a_proxy(dsn) as (pool, proxy):
        tally, rows = Tally(), WorkerRows(pool, room.queue, timeout_seconds=0.5)
        registry = make_registry(rows, tally)
        await registry.register()
        tally.note_success(an_attempt())
        await registry.run_once()
        proxy.mode = Mode.BLACKHOLE
        for _ in range(2):
            tally.note_success(an_attempt())
            started = time.monotonic()
            with pytest.raises(TimeoutError):
                await registry.run_once()
            with pytest.raises(TimeoutError):
                await registry.note_progress()
            assert time.monotonic() - started < 5
        assert (await only(room)).successes == 1
        proxy.mode = Mode.PASS  # what is in the proxy still arrives
        await registry.run_once()
        await registry.note_progress()
        found = await only(room)
        assert (found.successes, found.id) == (3, registry.worker_id)
        assert await in_queues(room, registry.worker_id) == {"clip": 3, "clip.page": 0}


async def test_exit_does_not_wait_for_a_database_that_went_silent(room: Room, dsn: str) -> None:
    async with behind_a_proxy(dsn) as (pool, proxy):
        registry = make_registry(WorkerRows(pool, room.queue), Tally())
        await registry.register()
        proxy.mode = Mode.BLACKHOLE
        hanging = asyncio.create_task(registry.run_once())
        await asyncio.sleep(0.2)
        started = time.monotonic()
        hanging.cancel()  # as the supervisor does with its loops
        await asyncio.gather(hanging, return_exceptions=True)
        assert time.monotonic() - started < 1
        await registry.leave()
        assert time.monotonic() - started < FAREWELL_SECONDS + 1


async def test_worker_whose_row_vanished_takes_nothing_until_it_has_a_new_one(room: Room) -> None:
    tally, taken = Tally(), []

    class Watched(WorkerRows):
        async def start(self, *args: Any, **options: Any) -> Any:
            taken.append(registry.worker_id)
            if len(taken) == 2:
                raise asyncpg.CannotConnectNowError("the database system is starting up")
            return await super().start(*args, **options)

    registry = make_registry(Watched(room.pool, room.queue), tally)
    await registry.register()
    first = registry.worker_id
    await room.pool.execute("DELETE FROM worker.worker_process")
    with capture_logs() as logs, pytest.raises(asyncpg.CannotConnectNowError):
        await registry.run_once()
    assert [line["event"] for line in logs] == ["worker_vanished"]
    assert registry.worker_id is None
    rang: list[bool] = []
    registry.on_registered = lambda: rang.append(True)
    await registry.run_once()
    assert taken == [None, None, None]
    assert registry.worker_id not in {None, first}
    assert rang == [True]
    assert (await only(room)).id == registry.worker_id


async def test_new_row_counts_what_no_row_has_counted(room: Room) -> None:
    tally = Tally()
    registry = make_registry(WorkerRows(room.pool, room.queue), tally)
    await registry.register()
    first = registry.worker_id
    for _ in range(2):
        tally.note_success(an_attempt())
    await registry.run_once()
    await registry.note_progress()
    tally.note_success(an_attempt())
    await room.pool.execute("DELETE FROM worker.worker_process")
    await registry.run_once()
    tally.note_success(an_attempt())
    await registry.run_once()
    await registry.note_progress()
    assert (await only(room)).successes == 2
    # Two tables, four jobs, each of them counted once: the removed row had two.
    assert await in_queues(room, first) == {"clip": 2, "clip.page": 0}
    assert await in_queues(room, registry.worker_id) == {"clip": 2, "clip.page": 0}


async def test_row_that_vanished_before_the_end_is_not_made_anew(room: Room) -> None:
    registry = make_registry(WorkerRows(room.pool, room.queue), Tally())
    await registry.register()
    await room.pool.execute("DELETE FROM worker.worker_process")
    await registry.leave()
    assert await room.pool.fetchval("SELECT count(*) FROM worker.worker_process") == 0


async def test_database_that_is_away_at_boot_is_tried_again(room: Room, dsn: str) -> None:
    async with behind_a_proxy(dsn) as (pool, proxy):
        registry = make_registry(WorkerRows(pool, room.queue, timeout_seconds=0.5), Tally())
        proxy.mode = Mode.REFUSE
        await registry.register()
        assert registry.worker_id is None
        proxy.mode = Mode.PASS
        await registry.run_once()
        assert registry.worker_id == (await only(room)).id


async def test_work_that_is_due_is_not_overlooked_while_the_worker_has_no_id(
    room: Room, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[int] = []

    class Shy(WorkerRows):
        async def start(self, *args: Any, **options: Any) -> Any:
            attempts.append(1)
            if len(attempts) < 3:
                raise asyncpg.CannotConnectNowError("the database system is starting up")
            return await super().start(*args, **options)

    monkeypatch.setattr("worker.app.WorkerRows", Shy)
    job_id = await room.desk.submit("clip", {})
    settings = Settings(
        _env_file=None, database_url=dsn, asr_engine="none", scratch_dir=tmp_path, poll_interval_sec=600
    )
    async with open_app(settings, role="test") as app, open_worker(app) as supervisor:
        running = asyncio.create_task(supervisor.run(drain=True))
        # Nobody polls for ten minutes: it must hear of its id by itself.
        while (found := await room.pool.fetchval("SELECT status FROM worker.jobs")) != "failed":
            assert found == "queued" or len(attempts) == 3
            await asyncio.sleep(0.02)
        await asyncio.wait_for(running, 20)
    assert job_id is not None
    assert (await room.desk.show(job_id)).worker_id == (await only(room)).id
