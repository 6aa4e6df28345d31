"""A pg-boss client: queues, sending, claiming and settling, on PostgreSQL alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Self, Unpack
from uuid import UUID

import asyncpg

from worker.db.pool import Connection, Executor, Pool
from worker.db.sql import load_queries
from worker.domain.text import as_output, storable
from worker.errors import QueueMissing
from worker.queue.names import advisory_key, check_queue_name, notify_channel
from worker.queue.options import QueueOptions, SendOptions, as_json
from worker.queue.schema import attach_schema, ensure_schema


class Fence(NamedTuple):
    """Identifies one attempt at a job: a settle that carries it cannot touch a later attempt."""

    id: UUID
    #: None = whatever attempt is active
    retry_count: int | None = None


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


class PgBoss:
    """Every method takes `connection` to run inside the caller's transaction; without it, it commits by itself."""

    def __init__(self, pool: Pool, *, schema: str, version: int) -> None:
        self._pool = pool
        self.schema = schema
        self.version = version
        self.channel = notify_channel(schema)
        self._sql = load_queries("worker.queue", queue_schema=schema, queue_version=version)

    @classmethod
    async def attach(cls, pool: Pool, *, schema: str = "pgboss") -> Self:
        """A client for an existing install."""
        return cls(pool, schema=schema, version=await attach_schema(pool, schema))

    @classmethod
    async def install(cls, pool: Pool, *, schema: str = "pgboss") -> Self:
        """A client for an existing install, or a fresh one where there is none."""
        return cls(pool, schema=schema, version=await ensure_schema(pool, schema))

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

    async def fetch(self, queue: str, batch_size: int = 1, *, connection: Connection | None = None) -> list[Delivery]:
        """Claim up to `batch_size` due jobs, most urgent first."""
        try:
            rows = await self._on(connection).fetch(self._sql["fetch"], queue, batch_size)
        except asyncpg.UniqueViolationError:
            # Another worker claimed the same key of a one-at-a-time policy in the same instant.
            return []
        found = [Delivery(queue=queue, **row) for row in rows]
        return sorted(found, key=lambda delivery: (-delivery.priority, delivery.created_on))

    async def complete(
        self,
        queue: str,
        fences: Sequence[Fence],
        outputs: Sequence[Any] | None = None,
        *,
        connection: Connection | None = None,
    ) -> set[UUID]:
        """The ids that were completed; one that is missing was no longer ours."""
        ids, counts = _columns(fences)
        rows = await self._on(connection).fetch(
            self._sql["complete"], queue, ids, counts, _outputs(outputs, len(fences))
        )
        return {row["id"] for row in rows}

    async def fail(
        self,
        queue: str,
        fences: Sequence[Fence],
        outputs: Sequence[Any] | None = None,
        *,
        is_final: bool | None = None,
        connection: Connection | None = None,
    ) -> dict[UUID, str]:
        """New state by id: `retry`, or `failed`: retries used up, `is_final`, or no room under the policy."""
        ids, counts = _columns(fences)
        details = _outputs(outputs, len(fences))
        try:
            return await self._fail(connection, queue, ids, counts, details, is_final=is_final)
        except asyncpg.UniqueViolationError:
            settled: dict[UUID, str] = {}
            for id_, count, detail in zip(ids, counts, details, strict=True):
                settled |= await self._fail_alone(connection, queue, id_, count, detail, is_final=is_final)
            return settled

    async def cancel(self, queue: str, ids: Sequence[UUID], *, connection: Connection | None = None) -> set[UUID]:
        rows = await self._on(connection).fetch(self._sql["cancel"], queue, list(ids))
        return {row["id"] for row in rows}

    async def touch(self, queue: str, fences: Sequence[Fence], *, connection: Connection | None = None) -> set[UUID]:
        """Beat for claimed jobs; an id that is missing from the answer is no longer ours."""
        rows = await self._on(connection).fetch(self._sql["touch"], queue, *_columns(fences))
        return {row["id"] for row in rows}

    async def restore(self, queue: str, fences: Sequence[Fence], *, connection: Connection | None = None) -> set[UUID]:
        """Put claimed jobs back as if they had not been fetched; no attempt is used up."""
        rows = await self._on(connection).fetch(self._sql["restore"], queue, *_columns(fences))
        return {row["id"] for row in rows}

    def _on(self, connection: Connection | None) -> Executor:
        return connection if connection is not None else self._pool

    async def _fail(
        self,
        connection: Connection | None,
        queue: str,
        ids: list[UUID],
        counts: list[int | None],
        details: list[Any],
        *,
        is_final: bool | None,
    ) -> dict[UUID, str]:
        call = (self._sql["fail"], queue, ids, counts, details, [is_final] * len(ids))
        if connection is None:
            rows = await self._pool.fetch(*call)
        else:
            # A savepoint: a policy conflict must not spoil the caller's transaction.
            async with connection.transaction():
                rows = await connection.fetch(*call)
        return {row["id"]: row["state"] for row in rows}

    async def _fail_alone(
        self,
        connection: Connection | None,
        queue: str,
        id_: UUID,
        count: int | None,
        detail: Any,
        *,
        is_final: bool | None,
    ) -> dict[UUID, str]:
        try:
            return await self._fail(connection, queue, [id_], [count], [detail], is_final=is_final)
        except asyncpg.UniqueViolationError:
            # stately: another job of the key waits in retry already
            return await self._fail(connection, queue, [id_], [count], [detail], is_final=True)


def _columns(fences: Sequence[Fence]) -> tuple[list[UUID], list[int | None]]:
    return [fence.id for fence in fences], [fence.retry_count for fence in fences]


def _outputs(outputs: Sequence[Any] | None, count: int) -> list[Any]:
    return [as_output(output) for output in outputs] if outputs is not None else [None] * count
