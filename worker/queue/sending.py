"""Sending jobs, one or many."""

from collections.abc import Sequence
from typing import Any, Unpack
from uuid import UUID

from worker.db.pool import Connection
from worker.domain.text import storable
from worker.errors import QueueMissing
from worker.queue.core import Core
from worker.queue.options import SendOptions, as_json


class Sending(Core):
    async def send(
        self,
        queue: str,
        data: Any = None,
        *,
        connection: Connection | None = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """The new job's id, or None when the queue's policy or a throttle refused it."""
        ids = await self.insert(queue, [{"data": data, **as_json(options)}], connection=connection)
        return ids[0] if ids else None

    async def insert(
        self, queue: str, jobs: Sequence[dict[str, Any]], *, connection: Connection | None = None
    ) -> list[UUID]:
        """Send many at once: objects of `data` and options in pg-boss's names. Refused ones get no id."""
        wanted = [storable(job) for job in jobs]
        row = await self._on(connection).fetchrow(self._sql["send"], queue, wanted, self.channel)
        if row is None or not row["is_known"]:
            raise QueueMissing(f"queue {queue!r} does not exist in schema {self.schema!r}; create it first")
        return list(row["ids"])
