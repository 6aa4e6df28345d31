"""Finds waiting jobs that nobody will ever deliver: pg-boss's row was deleted, or ended by another client."""

from collections import Counter
from collections.abc import Mapping
from uuid import UUID

from worker.db.pool import Pool
from worker.db.sql import load_queries
from worker.queue import PgBoss

BATCH = 2000
_BEGINNING = UUID(int=0)


class Strays:
    """Walks along the waiting jobs, a batch a call, and begins anew at the end. Any number of workers may."""

    def __init__(self, pool: Pool, queue: PgBoss, *, batch: int = BATCH) -> None:
        self._pool = pool
        self._batch = batch
        self._sql = load_queries("worker.jobs", queue_schema=queue.schema, queue_version=queue.version)
        self._after = _BEGINNING

    async def settle(self) -> Mapping[str, int]:
        """Give strays the end their delivery had; returns how many got which status."""
        row = await self._pool.fetchrow(self._sql["settle_strays"], self._after, self._batch)
        assert row is not None, "the statement returns one row"
        self._after = row["last"] or _BEGINNING
        return Counter(row["given"])
