"""Ends what nobody ends: claims that ran out of time or fell silent, and rows past their retention.

Safe beside Node's supervisors and in any number of processes: every predicate is checked again under the row's
lock. Queue counts and `monitor_on`/`maintain_on` stay Node's: a stamp without its counts would make them stale.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from worker.db.pool import Connection
from worker.queue.core import Fence
from worker.queue.flows import Flows
from worker.queue.names import advisory_key
from worker.queue.settling import Settling

EXPIRE_BATCH = 1000
#: ids that one deletion statement looks at
DELETE_BATCH = 10_000
_FIRST_ID = UUID(int=0)
_TIMED_OUT = {"value": {"message": "job timed out"}}
_FELL_SILENT = {"value": {"message": "job heartbeat timeout"}}


@dataclass(frozen=True, slots=True)
class Expired:
    timed_out: int
    fell_silent: int


@dataclass(frozen=True, slots=True)
class Supervised:
    expired: Expired
    #: children released because their parents completed
    unblocked: int
    deleted: int


class Supervision(Flows, Settling):
    async def supervise_once(self) -> Supervised:
        """Everything a deployment without Node needs: expire, resolve flows, delete."""
        expired = await self.expire_once()
        unblocked = await self.resolve_flows()
        return Supervised(expired, unblocked, await self.delete_once())

    async def expire_once(self) -> Expired:
        """Fail active jobs past `expire_seconds`, or without a beat for `heartbeat_seconds`; retries as for `fail`."""
        by_timeout, by_heartbeat = self._sql["timed_out"], self._sql["fell_silent"]
        timed_out = fell_silent = 0
        for table, queues in await self._queues_by_table():
            timed_out += await self._expire(table + "failJobsByTimeout", by_timeout, queues, _TIMED_OUT)
            fell_silent += await self._expire(table + "failJobsByHeartbeat", by_heartbeat, queues, _FELL_SILENT)
        return Expired(timed_out, fell_silent)

    async def delete_once(self) -> int:
        """Delete jobs past their retention, finished or never worked; how many. It reads every row: run it rarely."""
        deleted = 0
        for table, queues in await self._queues_by_table():
            for queue in queues:
                deleted += await self._delete(table, queue)
            await self._forget_dependencies(table, queues)
        return deleted

    async def _queues_by_table(self) -> list[tuple[str, list[str]]]:
        return [(row["table_name"], row["names"]) for row in await self._pool.fetch(self._sql["queues_by_table"])]

    async def _expire(self, lock: str, expired: str, queues: list[str], output: dict[str, Any]) -> int:
        total, batch = 0, EXPIRE_BATCH
        while batch == EXPIRE_BATCH:
            async with self._pool.acquire() as connection, connection.transaction():
                if not await self._try_lock(connection, lock):
                    break
                rows = await connection.fetch(expired, queues, EXPIRE_BATCH)
                batch = len(rows)
                for queue in {row["name"] for row in rows}:
                    fences = [Fence(row["id"], row["retry_count"]) for row in rows if row["name"] == queue]
                    total += len(await self.fail(queue, fences, [output] * len(fences), connection=connection))
        return total

    async def _delete(self, table: str, queue: str) -> int:
        total = 0
        last: UUID | None = _FIRST_ID
        while last is not None:
            async with self._pool.acquire() as connection, connection.transaction():
                if not await self._try_lock(connection, table + "deletion"):
                    break
                ((deleted, last),) = await connection.fetch(
                    self._sql["delete_past_retention"], queue, last, DELETE_BATCH
                )
            total += deleted
        return total

    async def _forget_dependencies(self, table: str, queues: Sequence[str]) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            if await self._try_lock(connection, table + "cleanupDependencies"):
                await connection.execute(self._sql["forget_dependencies"], queues)

    async def _try_lock(self, connection: Connection, suffix: str) -> bool:
        """Node waits for this lock; we need not: whoever holds it is doing the very same."""
        database = await connection.fetchval("SELECT current_database()")
        key = advisory_key(database, self.schema, suffix)
        return bool(await connection.fetchval("SELECT pg_try_advisory_xact_lock($1)", key))
