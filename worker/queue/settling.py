"""Ending a claim: completed, failed, dead-lettered, cancelled, kept alive, or put back."""

from collections.abc import Sequence
from typing import Any, TypeAlias
from uuid import UUID

import asyncpg

from worker.db.pool import Connection
from worker.queue.conflicts import each_that_fits, fetch_apart
from worker.queue.core import Core, Fence, columns, outputs_of

#: a delivery's `fence`, which cannot touch a later attempt, or a plain id: whatever attempt there is
Claim: TypeAlias = Fence | UUID


class Settling(Core):
    """Answers name the jobs that were changed: one that is missing was no longer ours."""

    async def complete(
        self,
        queue: str,
        claims: Sequence[Claim],
        outputs: Sequence[Any] | None = None,
        *,
        include_queued: bool = False,
        connection: Connection | None = None,
    ) -> set[UUID]:
        """Success; `include_queued` completes also jobs that nobody has claimed (given by plain id)."""
        ids, counts = columns(fences_of(claims))
        details = outputs_of(outputs, len(ids))
        rows = await self._on(connection).fetch(self._sql["complete"], queue, ids, counts, details, include_queued)
        return {row["id"] for row in rows}

    async def fail(
        self,
        queue: str,
        claims: Sequence[Claim],
        outputs: Sequence[Any] | None = None,
        *,
        is_final: bool | None = None,
        connection: Connection | None = None,
    ) -> dict[UUID, str]:
        """New state by id: `retry`, or `failed`: retries used up, `is_final`, or no room under the policy.

        What has failed for good leaves a copy in its dead letter queue. A plain id reaches waiting jobs as well.
        """
        fences = fences_of(claims)
        asked = list(zip(fences, outputs_of(outputs, len(fences)), strict=True))
        try:
            return await self._fail(connection, queue, asked, is_final=is_final)
        except asyncpg.UniqueViolationError:
            settled: dict[UUID, str] = {}
            for each in asked:
                settled |= await self._fail_alone(connection, queue, each, is_final=is_final)
            return settled

    async def dead_letter(
        self,
        queue: str,
        claims: Sequence[Claim],
        outputs: Sequence[Any] | None = None,
        *,
        connection: Connection | None = None,
    ) -> set[UUID]:
        """Failed for good, whatever retries are left, with a copy in the dead letter queue if there is one."""
        return set(await self.fail(queue, claims, outputs, is_final=True, connection=connection))

    async def cancel(self, queue: str, claims: Sequence[Claim], *, connection: Connection | None = None) -> set[UUID]:
        """A job that runs is not interrupted, but its worker can settle it no more."""
        rows = await self._on(connection).fetch(self._sql["cancel"], queue, *columns(fences_of(claims)))
        return {row["id"] for row in rows}

    async def touch(self, queue: str, claims: Sequence[Claim], *, connection: Connection | None = None) -> set[UUID]:
        """Beat for claimed jobs."""
        rows = await self._on(connection).fetch(self._sql["touch"], queue, *columns(fences_of(claims)))
        return {row["id"] for row in rows}

    async def restore(
        self,
        queue: str,
        claims: Sequence[Claim],
        *,
        wait_seconds: float = 0.0,
        connection: Connection | None = None,
    ) -> set[UUID]:
        """Put claimed jobs back as if they had not been fetched, due after `wait_seconds`; no attempt is used up."""
        fences = fences_of(claims)
        waiting = await self._restore(connection, queue, fences, "created", wait_seconds)
        # Under short and stately, a job that was sent meanwhile may have taken the place.
        displaced = [fence for fence in fences if fence.id not in waiting]
        if not displaced:
            return waiting
        return waiting | await self._restore(connection, queue, displaced, "retry", wait_seconds)

    async def _restore(
        self, connection: Connection | None, queue: str, fences: Sequence[Fence], state: str, wait_seconds: float
    ) -> set[UUID]:
        async def run(some: Sequence[Fence]) -> list[UUID]:
            call = (self._sql["restore"], queue, *columns(some), state, self.channel, wait_seconds)
            return [row["id"] for row in await fetch_apart(self._pool, connection, *call)]

        return set(await each_that_fits(run, fences))

    async def _fail(
        self,
        connection: Connection | None,
        queue: str,
        asked: Sequence[tuple[Fence, Any]],
        *,
        is_final: bool | None,
    ) -> dict[UUID, str]:
        ids, counts = columns([fence for fence, _ in asked])
        details = [detail for _, detail in asked]
        call = (self._sql["fail"], queue, ids, counts, details, [is_final] * len(ids))
        rows = await fetch_apart(self._pool, connection, *call)
        return {row["id"]: row["state"] for row in rows}

    async def _fail_alone(
        self, connection: Connection | None, queue: str, asked: tuple[Fence, Any], *, is_final: bool | None
    ) -> dict[UUID, str]:
        try:
            return await self._fail(connection, queue, [asked], is_final=is_final)
        except asyncpg.UniqueViolationError:
            # stately: another job of the key waits in retry already
            return await self._fail(connection, queue, [asked], is_final=True)


def fences_of(claims: Sequence[Claim]) -> list[Fence]:
    return [claim if isinstance(claim, Fence) else Fence(claim) for claim in claims]
