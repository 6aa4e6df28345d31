"""A database whose clock is set by hand, a schema as an older pg-boss left it, rows as they stand."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from queue_clock import Clock

from worker.db.pool import Pool, open_pool
from worker.queue import PgBoss

RowOf = Callable[[UUID | None], Awaitable[asyncpg.Record]]


@pytest.fixture
async def clocked(dsn: str) -> AsyncIterator[Pool]:
    admin = await asyncpg.connect(dsn)
    await admin.execute(
        """
        CREATE SCHEMA fake;
        CREATE TABLE fake.clock AS SELECT now() AS at;
        CREATE FUNCTION fake.now() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT at FROM fake.clock';
        DO $$ BEGIN
            EXECUTE format('ALTER DATABASE %I SET search_path = fake, pg_catalog, public', current_database());
        END $$
        """
    )
    await admin.close()
    pool = await open_pool(dsn, name="tests", size=8)
    yield pool
    await pool.close()


@pytest.fixture
async def clock(clocked: Pool) -> Clock:
    return Clock(clocked)


@pytest.fixture
async def boss(clocked: Pool) -> PgBoss:
    """A client whose `now()` is the clock's, and the queue `q`."""
    boss = await PgBoss.attach(clocked)
    await boss.create_queue("q")
    return boss


@pytest.fixture
async def old_boss(pool: Pool) -> PgBoss:
    """A client on a schema with no more than version 37 has."""
    await pool.execute(
        """
        UPDATE pgboss.version SET version = 37;
        ALTER TABLE pgboss.schedule DROP COLUMN kind, DROP COLUMN last_job_id;
        ALTER TABLE pgboss.job DROP COLUMN upsert_by_key CASCADE, DROP COLUMN trace_context CASCADE,
            DROP COLUMN source_output CASCADE, DROP COLUMN source_root_id CASCADE;
        """
    )
    boss = await PgBoss.attach(pool)
    await boss.create_queue("q")
    return boss


@pytest.fixture
def row_of(pool: Pool) -> RowOf:
    async def row_of(job_id: UUID | None) -> asyncpg.Record:
        row = await pool.fetchrow("SELECT *, state::text AS state FROM pgboss.job WHERE id = $1", job_id)
        assert row is not None, f"job {job_id} is gone"
        return row

    return row_of


@pytest.fixture
def complete_one(queue: PgBoss) -> Callable[[str], Awaitable[Any]]:
    async def complete_one(name: str) -> Any:
        (delivery,) = await queue.fetch(name)
        assert await queue.complete(name, [delivery.fence]) == {delivery.id}
        return delivery.id

    return complete_one
