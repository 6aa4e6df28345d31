"""Sending jobs, one or many."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Unpack
from uuid import UUID

import asyncpg

from worker.db.pool import Connection
from worker.domain.text import storable
from worker.errors import ConfigError, QueueMissing
from worker.queue.core import Core
from worker.queue.options import NewJob, SendOptions, StartAfter, as_json


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
        job = {"data": data, **as_json(options, SendOptions)}
        is_patient = job.pop("singletonNextSlot", False)
        if is_patient and "singletonSeconds" not in job:
            raise ConfigError("singleton_next_slot needs singleton_seconds")
        ids = await self._insert(queue, [job], connection)
        if not ids and is_patient:
            ids = await self._insert(queue, [{**job, "singletonNextSlot": True}], connection)
        return ids[0] if ids else None

    async def send_after(
        self,
        queue: str,
        data: Any,
        after: StartAfter,
        *,
        connection: Connection | None = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """A job for later: `after` is its start_after."""
        options["start_after"] = after
        return await self.send(queue, data, connection=connection, **options)

    async def send_throttled(
        self,
        queue: str,
        data: Any,
        seconds: int,
        key: str | None = None,
        *,
        connection: Connection | None = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """At most one job in a slot of `seconds`, whatever became of it; the others are refused."""
        options["singleton_seconds"] = seconds
        if key is not None:
            options["singleton_key"] = key
        return await self.send(queue, data, connection=connection, **options)

    async def send_debounced(
        self,
        queue: str,
        data: Any,
        seconds: int,
        key: str | None = None,
        *,
        connection: Connection | None = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """One job now and one more in the next slot of `seconds`; the others are refused."""
        options["singleton_next_slot"] = True
        return await self.send_throttled(queue, data, seconds, key, connection=connection, **options)

    async def insert(self, queue: str, jobs: Sequence[NewJob], *, connection: Connection | None = None) -> list[UUID]:
        """Send many at once. Refused ones get no id: give each its own `id` to tell which."""
        wanted = [as_json(job, NewJob) for job in jobs]
        if any("singletonNextSlot" in job for job in wanted):
            raise ConfigError("singleton_next_slot works with send, one job at a time")
        return await self._insert(queue, wanted, connection)

    async def _insert(self, queue: str, jobs: Sequence[Mapping[str, Any]], connection: Connection | None) -> list[UUID]:
        wanted = [storable(dict(job)) for job in jobs]
        with self._explained(queue):
            row = await self._on(connection).fetchrow(self._sql["send"], queue, wanted, self.channel)
        return self._ids_of(row, queue)

    def _ids_of(self, row: asyncpg.Record | None, queue: str) -> list[UUID]:
        if row is None or not row["is_known"]:
            raise QueueMissing(f"queue {queue!r} does not exist in schema {self.schema!r}; create it first")
        return list(row["ids"])

    @contextmanager
    def _explained(self, queue: str) -> Iterator[None]:
        """What the database refuses, in words that say what to change."""
        try:
            yield
        except asyncpg.CheckViolationError as exc:
            raise ConfigError(f"queue {queue!r} is key_strict_fifo: each of its jobs needs a singleton_key") from exc
        except asyncpg.ForeignKeyViolationError as exc:
            if exc.constraint_name == "q_fkey":
                raise QueueMissing(f"queue {queue!r} was deleted while a job was sent to it") from exc
            raise QueueMissing(f"the dead letter queue of this job does not exist: {exc.detail}") from exc
        except asyncpg.DataError as exc:
            raise ConfigError(f"an option of a job for queue {queue!r} cannot be read: {exc}") from exc
