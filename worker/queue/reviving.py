"""Jobs that have ended: brought back, sent back from a dead letter queue, or deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict, Unpack
from uuid import UUID

from worker.db.pool import Connection
from worker.errors import ConfigError, QueueMissing
from worker.queue.conflicts import each_that_fits, fetch_apart
from worker.queue.core import Core, columns
from worker.queue.settling import Claim, fences_of

#: rows of one statement, so that none holds its locks for long
_DELETE_BATCH = 10_000
_QUEUED = ["created", "retry"]
_STORED = ["completed", "cancelled", "failed"]


class RedriveFilter(TypedDict, total=False):
    #: only dead letters of this queue
    source_name: str
    #: only those whose data contains this object
    data: Mapping[str, Any]
    #: only those that died before; keeps a drain in several calls to what was there when it began
    created_before: datetime
    #: only these, by their ids in the dead letter queue
    ids: Sequence[UUID]


@dataclass(frozen=True, slots=True)
class Redriven:
    #: the new jobs
    moved: tuple[UUID, ...]
    #: dead letters that the destination's policy refused; they are failed where they are and say why in their output
    refused: tuple[UUID, ...]


class Reviving(Core):
    async def resume(self, queue: str, ids: Sequence[UUID], *, connection: Connection | None = None) -> set[UUID]:
        """Put cancelled jobs back in line; missing from the answer: not cancelled, or its place has been taken."""
        return await self._revive(self._sql["resume"], queue, ids, connection)

    async def retry(self, queue: str, ids: Sequence[UUID], *, connection: Connection | None = None) -> set[UUID]:
        """One more attempt for failed jobs; missing from the answer: not failed, or its place has been taken."""
        return await self._revive(self._sql["retry"], queue, ids, connection)

    async def delete_jobs(
        self, queue: str, claims: Sequence[Claim], *, connection: Connection | None = None
    ) -> set[UUID]:
        """In whatever state; with a fence, only while that attempt runs."""
        rows = await self._on(connection).fetch(self._sql["delete_jobs"], queue, *columns(fences_of(claims)))
        return {row["id"] for row in rows}

    async def delete_queued_jobs(self, queue: str) -> int:
        """How many waiting jobs were deleted."""
        return await self._delete_all(queue, _QUEUED)

    async def delete_stored_jobs(self, queue: str) -> int:
        """How many ended jobs were deleted."""
        return await self._delete_all(queue, _STORED)

    async def delete_all_jobs(self, queue: str) -> int:
        return await self._delete_all(queue, [*_QUEUED, "active", *_STORED])

    async def redrive(
        self,
        queue: str,
        destination: str | None = None,
        *,
        limit: int = 1000,
        connection: Connection | None = None,
        **only: Unpack[RedriveFilter],
    ) -> Redriven:
        """Send waiting jobs of a dead letter queue back to where they came from, or elsewhere, oldest first.

        They start anew with the destination's settings. One that has nowhere to go stays.
        """
        if limit < 1:
            raise ConfigError(f"limit must be at least 1, not {limit!r}")
        if destination == queue:
            raise ConfigError(f"queue {queue!r} cannot be redriven into itself")
        ids = list(only["ids"]) if "ids" in only else None
        source, data, before = only.get("source_name"), only.get("data"), only.get("created_before")
        row = await self._on(connection).fetchrow(
            self._sql["redrive"], queue, destination, source, data, before, ids, limit
        )
        assert row is not None
        if row["missing"]:
            raise QueueMissing(f"queue {row['missing'][0]!r} does not exist in schema {self.schema!r}; create it first")
        return Redriven(tuple(row["moved"]), tuple(row["refused"]))

    async def _revive(
        self, statement: str, queue: str, ids: Sequence[UUID], connection: Connection | None
    ) -> set[UUID]:
        async def run(some: Sequence[UUID]) -> list[UUID]:
            return [row["id"] for row in await fetch_apart(self._pool, connection, statement, queue, list(some))]

        return set(await each_that_fits(run, ids))

    async def _delete_all(self, queue: str, states: list[str]) -> int:
        deleted = 0
        while batch := await self._pool.fetch(self._sql["delete_many"], queue, states, _DELETE_BATCH):
            deleted += len(batch)
        return deleted
