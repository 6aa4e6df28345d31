"""Queues: made, read, counted, changed, removed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Unpack

import asyncpg

from worker.db.pool import Connection
from worker.errors import ConfigError, QueueMissing
from worker.queue.conflicts import transaction
from worker.queue.core import Core
from worker.queue.names import advisory_key, check_queue_name
from worker.queue.options import QueueChanges, QueueOptions, as_json, check_numbers

#: options whose column is called otherwise
_COLUMNS = {
    "expire_in_seconds": "expire_seconds",
    "delete_after_seconds": "deletion_seconds",
    "warning_queue_size": "warning_queued",
}
_MAY_BE_NONE = {"retry_delay_max", "heartbeat_seconds", "dead_letter"}


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
    warning_queued: int
    dead_letter: str | None
    partition: bool
    table_name: str
    heartbeat_seconds: int | None
    notify: bool
    created_on: datetime
    updated_on: datetime


@dataclass(frozen=True, slots=True)
class QueueStats:
    """A queue's jobs, counted now (the counts in pg-boss's own queue row are those of its last monitor pass)."""

    #: waiting: deferred + blocked + ready
    queued: int
    #: not due yet
    deferred: int
    #: behind another job of their flow
    blocked: int
    ready: int
    active: int
    completed: int
    cancelled: int
    failed: int
    total: int
    #: how long the oldest ready job has been due
    ready_oldest_seconds: float | None


class Queues(Core):
    async def create_queue(
        self, name: str, *, connection: Connection | None = None, **options: Unpack[QueueOptions]
    ) -> QueueRow:
        """The queue as it then stands: one that existed before keeps its own settings."""
        wanted = {"policy": "standard", **as_json(options, QueueOptions)}
        check_queue_name(name)
        _refuse_own_dead_letter(name, options.get("dead_letter"))
        try:
            async with transaction(self._pool, connection) as db:
                await self._lock(db, "create-queue")
                await db.execute(self._sql["create_queue"], name, wanted)
        except asyncpg.ForeignKeyViolationError as exc:
            raise _no_dead_letter(options.get("dead_letter")) from exc
        queue = await self.get_queue(name, connection=connection)
        if queue is None:
            raise QueueMissing(f"queue {name!r} was deleted while it was being created")
        return queue

    async def get_queue(self, name: str, *, connection: Connection | None = None) -> QueueRow | None:
        found = await self.get_queues([name], connection=connection)
        return found[0] if found else None

    async def get_queues(
        self, names: Sequence[str] | None = None, *, connection: Connection | None = None
    ) -> list[QueueRow]:
        """The queues of these names that exist, or all, in the order of their names."""
        wanted = list(names) if names is not None else None
        return [QueueRow(**row) for row in await self._on(connection).fetch(self._sql["get_queues"], wanted)]

    async def update_queue(
        self, name: str, *, connection: Connection | None = None, **changes: Unpack[QueueChanges]
    ) -> QueueRow:
        """Changes what later jobs are sent with; jobs that exist keep theirs. Policy and partition are for life."""
        check_numbers(changes)
        _refuse_own_dead_letter(name, changes.get("dead_letter"))
        if unknown := changes.keys() - QueueChanges.__optional_keys__:
            raise ConfigError(f"{', '.join(sorted(unknown))} cannot be changed on a queue that exists")
        if empty := [option for option, value in changes.items() if value is None and option not in _MAY_BE_NONE]:
            raise ConfigError(f"{', '.join(sorted(empty))} must have a value")
        columns = {_COLUMNS.get(option, option): value for option, value in changes.items()}
        try:
            async with transaction(self._pool, connection) as db:
                row = await db.fetchrow(self._sql["update_queue"], name, columns)
                if row is None:
                    raise QueueMissing(f"queue {name!r} does not exist in schema {self.schema!r}; create it first")
                if changes.get("retry_delay_max") is not None and not row["retry_backoff"]:
                    raise ConfigError("retry_delay_max needs retry_backoff")
        except asyncpg.ForeignKeyViolationError as exc:
            raise _no_dead_letter(changes.get("dead_letter")) from exc
        return QueueRow(**row)

    async def delete_queue(self, name: str, *, connection: Connection | None = None) -> None:
        """Remove a queue with all its jobs; a queue that does not exist is gone already."""
        try:
            async with transaction(self._pool, connection) as db:
                await self._lock(db, "delete-queue")
                await db.execute(self._sql["delete_queue"], name)
        except asyncpg.ForeignKeyViolationError as exc:
            raise ConfigError(
                f"queue {name!r} is the dead letter queue of others or of their jobs; change or delete those first"
            ) from exc

    async def get_queue_stats(self, name: str, *, connection: Connection | None = None) -> QueueStats:
        row = await self._on(connection).fetchrow(self._sql["count_jobs"], name)
        if row is None:
            raise QueueMissing(f"queue {name!r} does not exist in schema {self.schema!r}; create it first")
        return QueueStats(**row)

    async def _lock(self, db: Connection, suffix: str) -> None:
        """Wait for other clients that create or delete queues, as they wait for us."""
        database = await db.fetchval("SELECT current_database()")
        await db.execute("SET LOCAL lock_timeout = '30s'")
        await db.execute("SELECT pg_advisory_xact_lock($1)", advisory_key(database, self.schema, suffix))


def _refuse_own_dead_letter(name: str, dead_letter: str | None) -> None:
    if dead_letter == name:
        raise ConfigError(f"queue {name!r} cannot be its own dead letter queue")


def _no_dead_letter(dead_letter: str | None) -> QueueMissing:
    return QueueMissing(f"dead letter queue {dead_letter!r} does not exist; create it first")
