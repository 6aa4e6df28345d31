"""Migrations: in order, once, never changed, from many machines at once."""

import asyncio
from pathlib import Path

import pytest

from worker.db.migrate import migrate, read_migrations, require_migrated
from worker.db.pool import Pool, open_pool
from worker.errors import ConfigError, SchemaUnsupported
from worker.queue import PgBoss


@pytest.fixture
async def bare(empty_dsn: str):  # type: ignore[no-untyped-def]
    pool = await open_pool(empty_dsn, name="tests", size=4)
    await PgBoss.install(pool)
    yield pool
    await pool.close()


async def test_second_run_applies_nothing(bare: Pool) -> None:
    assert len(await migrate(bare, queue_schema="pgboss")) == len(read_migrations())
    assert await migrate(bare, queue_schema="pgboss") == []
    await require_migrated(bare, queue_schema="pgboss")


async def test_racing_migrators_apply_each_once(bare: Pool) -> None:
    applied = await asyncio.gather(*(migrate(bare, queue_schema="pgboss") for _ in range(4)))
    assert sum(len(each) for each in applied) == len(read_migrations())


async def test_database_without_tables_is_told_what_to_do(bare: Pool) -> None:
    with pytest.raises(SchemaUnsupported, match="python -m worker migrate"):
        await require_migrated(bare, queue_schema="pgboss")


async def test_changed_migration_is_noticed(pool: Pool, tmp_path: Path) -> None:
    for path in Path("migrations").glob("*.sql"):
        (tmp_path / path.name).write_text(path.read_text() + "\n-- edited")
    with pytest.raises(SchemaUnsupported, match="was changed after it had been applied"):
        await migrate(pool, queue_schema="pgboss", folder=tmp_path)
    with pytest.raises(SchemaUnsupported, match="was changed"):
        await require_migrated(pool, queue_schema="pgboss", folder=tmp_path)


async def test_other_queue_schema_is_noticed(pool: Pool) -> None:
    with pytest.raises(SchemaUnsupported, match="QUEUE_SCHEMA=pgboss"):
        await migrate(pool, queue_schema="other")


async def test_newer_database_is_refused(pool: Pool) -> None:
    await pool.execute(
        "INSERT INTO worker.migrations SELECT max(version) + 1, 'x', 'x', 'pgboss' FROM worker.migrations"
    )
    with pytest.raises(SchemaUnsupported, match="newer than this worker"):
        await require_migrated(pool, queue_schema="pgboss")


async def test_failing_migration_leaves_nothing_behind(bare: Pool, tmp_path: Path) -> None:
    (tmp_path / "0001_broken.sql").write_text("CREATE TABLE worker.half (); SELECT 1/0;")
    with pytest.raises(Exception, match="division by zero"):
        await migrate(bare, queue_schema="pgboss", folder=tmp_path)
    assert await bare.fetchval("SELECT to_regclass('worker.half')::text") is None


async def test_a_schema_of_another_name_works_too(empty_dsn: str) -> None:
    pool = await open_pool(empty_dsn, name="tests")
    try:
        queue = await PgBoss.install(pool, schema="My-Queue")
        await migrate(pool, queue_schema="My-Queue")
        await queue.create_queue("clip", notify=True)
        assert await pool.fetchval("SELECT worker.submit('clip', '{}')") is not None
        assert await pool.fetchval("SELECT worker.queue_channel()") == queue.channel
        assert len(await queue.fetch("clip")) == 1
    finally:
        await pool.close()


@pytest.mark.parametrize("names", [["1_bad.sql"], ["0002_gap.sql"], ["0001_a.sql", "0001_b.sql"]])
def test_misnumbered_files_are_refused(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("SELECT 1")
    with pytest.raises(ConfigError):
        read_migrations(tmp_path)
