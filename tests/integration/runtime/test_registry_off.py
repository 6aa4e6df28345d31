"""Without its tables, or the right to them, the registry is off and the worker works."""

from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from tests.conftest import Room
from tests.integration.runtime.registering import make_registry
from worker.app import open_app, open_worker
from worker.db.pool import open_pool
from worker.jobs.workers import WorkerRows
from worker.runtime.tally import Tally
from worker.settings import Settings

OLDER = {
    "no tables": "DROP TABLE worker.worker_process, worker.worker_progress",
    "no functions": "DROP FUNCTION worker._worker_start, worker._worker_heartbeat, worker._worker_progress",
    "no progress": "DROP TABLE worker.worker_progress",
    "no column": "ALTER TABLE worker.worker_process DROP COLUMN slots",
}


@pytest.mark.parametrize("statement", OLDER.values(), ids=OLDER)
async def test_worker_on_an_older_schema_works_without_registry_and_says_so_once(
    room: Room, dsn: str, tmp_path: Path, statement: str
) -> None:
    await room.pool.execute(statement)
    job_id = await room.desk.submit("clip", {})
    settings = Settings(
        _env_file=None, database_url=dsn, asr_engine="none", scratch_dir=tmp_path, heartbeat_interval_sec=0.2
    )
    with capture_logs() as logs:
        async with open_app(settings, role="test") as app, open_worker(app) as supervisor:
            await supervisor.run(drain=True)
    assert job_id is not None
    assert (await room.desk.show(job_id)).error_code == "INVALID_REQUEST"
    assert (await room.desk.show(job_id)).worker_id is not None
    warnings = [line["event"] for line in logs if line["log_level"] in {"warning", "error"}]
    assert [event for event in warnings if event != "stage_failed"] == ["registry_off"]


async def test_tables_that_are_dropped_under_a_running_worker_turn_its_registry_off(room: Room) -> None:
    registry = make_registry(WorkerRows(room.pool, room.queue), Tally())
    await registry.register()
    before = registry.worker_id
    await room.pool.execute("DROP TABLE worker.worker_process, worker.worker_progress")
    with capture_logs() as logs:
        for turn in (registry.run_once, registry.note_progress, registry.prune, registry.run_once, registry.leave):
            await turn()
    assert [line["event"] for line in logs] == ["registry_off"]
    assert registry.worker_id == before


async def test_worker_that_may_not_use_the_functions_works_without_registry(room: Room, dsn: str) -> None:
    role, parts = f"bare_{uuid4().hex}", urlsplit(dsn)
    await room.pool.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'bare'; GRANT USAGE ON SCHEMA worker TO {role}")
    bare = parts._replace(netloc=f"{role}:bare@{parts.hostname}:{parts.port}")
    pool = await open_pool(urlunsplit(bare), name="test")
    try:
        registry = make_registry(WorkerRows(pool, room.queue), Tally())
        with capture_logs() as logs:
            await registry.register()
        assert [line["event"] for line in logs] == ["registry_off"]
        assert registry.worker_id is not None
    finally:
        await pool.close()
        await room.pool.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
