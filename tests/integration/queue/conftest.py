"""Rows as they stand, and a schema as an older pg-boss left it."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from worker.db.pool import Pool
from worker.queue import PgBoss

RowOf = Callable[[UUID | None], Awaitable[asyncpg.Record]]
#: what came after schema 37 and statements might name
NEWER_COLUMNS = ("upsert_by_key", "trace_context", "source_output", "source_root_id")
NEWER_INDEXES = (10, 11, 14, 15, 16, 17)


@pytest.fixture
def row_of(pool: Pool) -> RowOf:
    async def row_of(job_id: UUID | None) -> asyncpg.Record:
        row = await pool.fetchrow("SELECT *, state::text AS state FROM pgboss.job WHERE id = $1", job_id)
        assert row is not None, f"job {job_id} is gone"
        return row

    return row_of


@pytest.fixture
async def old_queue(pool: Pool) -> PgBoss:
    """A client on a schema with no more than version 37 has."""
    await pool.execute("UPDATE pgboss.version SET version = 37")
    for column in NEWER_COLUMNS:
        await pool.execute(f"ALTER TABLE pgboss.job DROP COLUMN {column} CASCADE")
    for index in NEWER_INDEXES:
        await pool.execute(f"DROP INDEX pgboss.job_common_i{index}")
    queue = await PgBoss.attach(pool)
    await queue.create_queue("clip", retry_limit=2)
    return queue


@pytest.fixture
def claim_one(queue: PgBoss) -> Callable[..., Awaitable[Any]]:
    async def claim_one(name: str = "clip") -> Any:
        (delivery,) = await queue.fetch(name)
        return delivery

    return claim_one
