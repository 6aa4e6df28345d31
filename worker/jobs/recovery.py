"""Takes jobs back from workers that gave them up or were not heard of again."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import asyncpg

from worker.db.pool import Connection, Pool
from worker.db.sql import load_queries
from worker.domain.job import POISON_CRASHES
from worker.queue import Fence, PgBoss

BATCH = 100


@dataclass(frozen=True, slots=True)
class ScanReport:
    #: how many jobs were taken back, by reason: `stale`, `handed_back`, or the status they ended in
    recovered: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.recovered.values())


class StaleLeases:
    def __init__(self, pool: Pool, queue: PgBoss, *, lease_seconds: float) -> None:
        self._pool = pool
        self._queue = queue
        self._lease_seconds = lease_seconds
        self._sql = load_queries("worker.jobs", queue_schema=queue.schema, queue_version=queue.version)

    async def note_scan(self, *, after_failure: bool) -> bool:
        """Are workers that are not heard of dead? Not in the first lease after an outage: then everybody was silent."""
        found = await self._pool.fetchval(self._sql["note_scan"], self._lease_seconds, after_failure)
        return bool(found)

    async def recover(self, *, silent_are_dead: bool) -> ScanReport:
        """Requeue or end a batch of jobs whose lease ran out; `silent_are_dead=False`: only those given back."""
        async with self._pool.acquire() as connection, connection.transaction():
            rows = await connection.fetch(
                self._sql["recover"], self._lease_seconds, silent_are_dead, BATCH, POISON_CRASHES
            )
            await self._settle_deliveries(connection, rows)
        return ScanReport(Counter(_reason(row) for row in rows))

    async def _settle_deliveries(self, connection: Connection, rows: Sequence[asyncpg.Record]) -> None:
        """The same verdict for pg-boss. A delivery that pg-boss has moved on by itself stays where it is."""
        by_queue: dict[str, list[asyncpg.Record]] = defaultdict(list)
        for row in rows:
            if row["delivery"] in {"created", "retry", "active"}:
                by_queue[row["queue"]].append(row)
        for queue, settled in by_queue.items():
            await self._settle_queue(connection, queue, settled)

    async def _settle_queue(self, connection: Connection, queue: str, rows: Sequence[asyncpg.Record]) -> None:
        cancelled = [row["id"] for row in rows if row["status"] == "cancelled"]
        failed = [row for row in rows if row["status"] == "failed"]
        active = [row for row in rows if row["status"] == "queued" and row["delivery"] == "active"]
        crashed = [row for row in active if row["is_crash"]]
        given_back = [row for row in active if not row["is_crash"]]
        if cancelled:
            await self._queue.cancel(queue, cancelled, connection=connection)
        for gone, is_final in ((failed, True), (crashed, False)):
            if gone:
                fences = [Fence(row["id"], row["retry_count"] if row["delivery"] == "active" else None) for row in gone]
                outputs = [_vanished(row) for row in gone]
                await self._queue.fail(queue, fences, outputs, is_final=is_final, connection=connection)
        if given_back:
            fences = [Fence(row["id"], row["retry_count"]) for row in given_back]
            await self._queue.restore(queue, fences, connection=connection)


def _reason(row: asyncpg.Record) -> str:
    if row["status"] != "queued":
        return str(row["status"])
    return "stale" if row["is_crash"] else "handed_back"


def _vanished(row: asyncpg.Record) -> dict[str, Any]:
    return {
        "name": "WorkerVanished",
        "message": row["error_message"] or "its worker was not heard of again; the job is tried anew",
        "code": row["error_code"] or "WORKER_VANISHED",
    }
