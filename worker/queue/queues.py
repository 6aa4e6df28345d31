"""Queues: made, read, changed, removed."""

from dataclasses import dataclass
from datetime import datetime
from typing import Unpack

from worker.db.pool import Connection
from worker.errors import QueueMissing
from worker.queue.core import Core
from worker.queue.names import advisory_key, check_queue_name
from worker.queue.options import QueueOptions, as_json


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue's settings as they stand in the database."""

    name: str
    policy: str
    retry_limit: int
    retry_delay: int
    retry_backoff: bool
    retry_delay_max: int | None
    expire_seconds: int
    retention_seconds: int
    deletion_seconds: int
    dead_letter: str | None
    partition: bool
    table_name: str
    heartbeat_seconds: int | None
    notify: bool
    created_on: datetime
    updated_on: datetime


class Queues(Core):
    async def create_queue(self, name: str, **options: Unpack[QueueOptions]) -> QueueRow:
        """The queue as it then stands: one that existed before keeps its own settings."""
        wanted = {"policy": "standard", **as_json(options)}
        async with self._pool.acquire() as connection, connection.transaction():
            database = await connection.fetchval("SELECT current_database()")
            await connection.execute("SET LOCAL lock_timeout = '30s'")
            key = advisory_key(database, self.schema, "create-queue")
            await connection.execute("SELECT pg_advisory_xact_lock($1)", key)
            await connection.execute(self._sql["create_queue"], check_queue_name(name), wanted)
        queue = await self.get_queue(name)
        if queue is None:
            raise QueueMissing(f"queue {name!r} was deleted while it was being created")
        return queue

    async def get_queue(self, name: str, *, connection: Connection | None = None) -> QueueRow | None:
        row = await self._on(connection).fetchrow(self._sql["get_queue"], name)
        return QueueRow(**row) if row else None
