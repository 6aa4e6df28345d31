"""Claiming due jobs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from worker.db.pool import Connection
from worker.queue.core import Core, Fence


@dataclass(frozen=True, slots=True)
class Delivery:
    """A claimed job."""

    id: UUID
    queue: str
    data: Any
    priority: int
    created_on: datetime
    retry_count: int
    retry_limit: int
    expire_seconds: int
    heartbeat_seconds: int | None
    group_id: str | None
    group_tier: str | None

    @property
    def fence(self) -> Fence:
        return Fence(self.id, self.retry_count)


class Claiming(Core):
    async def fetch(self, queue: str, batch_size: int = 1, *, connection: Connection | None = None) -> list[Delivery]:
        """Claim up to `batch_size` due jobs, most urgent first."""
        try:
            rows = await self._on(connection).fetch(self._sql["fetch"], queue, batch_size)
        except asyncpg.UniqueViolationError:
            # Another worker claimed the same key of a one-at-a-time policy in the same instant.
            return []
        found = [Delivery(queue=queue, **row) for row in rows]
        return sorted(found, key=lambda delivery: (-delivery.priority, delivery.created_on))
