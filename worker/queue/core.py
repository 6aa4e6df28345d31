"""What every part of the client stands on: the pool, the schema, the statements."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self
from uuid import UUID

from worker.db.pool import Connection, Executor, Pool
from worker.db.sql import load_queries
from worker.domain.text import as_output
from worker.queue.names import notify_channel
from worker.queue.schema import attach_schema, ensure_schema


class Fence(NamedTuple):
    """Identifies one attempt at a job: a settle that carries it cannot touch a later attempt."""

    id: UUID
    #: None = whatever attempt is active
    retry_count: int | None = None


class Core:
    """Every method of the parts takes `connection` to run inside the caller's transaction; without it, it commits."""

    def __init__(self, pool: Pool, *, schema: str, version: int) -> None:
        self._pool = pool
        self.schema = schema
        self.version = version
        self.channel = notify_channel(schema)
        self._sql = load_queries("worker.queue", queue_schema=schema, queue_version=version)

    @classmethod
    async def attach(cls, pool: Pool, *, schema: str = "pgboss", allow_newer: bool = False) -> Self:
        """A client for an existing install; one that is newer than this release only if allowed."""
        version = await attach_schema(pool, schema, allow_newer=allow_newer)
        return cls(pool, schema=schema, version=version)

    @classmethod
    async def install(cls, pool: Pool, *, schema: str = "pgboss", allow_newer: bool = False) -> Self:
        """A client for an existing install, or a fresh one where there is none."""
        version = await ensure_schema(pool, schema, allow_newer=allow_newer)
        return cls(pool, schema=schema, version=version)

    def _on(self, connection: Connection | None) -> Executor:
        return connection if connection is not None else self._pool


def columns(fences: Sequence[Fence]) -> tuple[list[UUID], list[int | None]]:
    """Fences as the arrays that statements take."""
    return [fence.id for fence in fences], [fence.retry_count for fence in fences]


def outputs_of(outputs: Sequence[Any] | None, count: int) -> list[Any]:
    return [as_output(output) for output in outputs] if outputs is not None else [None] * count
