"""Ending a claim: completed, failed, cancelled, kept alive, or put back."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import asyncpg

from worker.db.pool import Connection
from worker.queue.core import Core, Fence, columns, outputs_of


class Settling(Core):
    async def complete(
        self,
        queue: str,
        fences: Sequence[Fence],
        outputs: Sequence[Any] | None = None,
        *,
        connection: Connection | None = None,
    ) -> set[UUID]:
        """The ids that were completed; one that is missing was no longer ours."""
        ids, counts = columns(fences)
        rows = await self._on(connection).fetch(
            self._sql["complete"], queue, ids, counts, outputs_of(outputs, len(fences))
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
        ids, counts = columns(fences)
        details = outputs_of(outputs, len(fences))
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
        rows = await self._on(connection).fetch(self._sql["touch"], queue, *columns(fences))
        return {row["id"] for row in rows}

    async def restore(self, queue: str, fences: Sequence[Fence], *, connection: Connection | None = None) -> set[UUID]:
        """Put claimed jobs back as if they had not been fetched; no attempt is used up."""
        rows = await self._on(connection).fetch(self._sql["restore"], queue, *columns(fences))
        return {row["id"] for row in rows}

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
