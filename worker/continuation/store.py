"""The record of long jobs: runs, partitions and pages. A page and what follows from it are one transaction."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg

from worker.db.pool import Connection, Executor, Pool
from worker.db.sql import load_queries
from worker.domain.job import JobId, JobStatus, Lease
from worker.domain.outcome import PageDone, Snoozed, Split
from worker.domain.paging import Chain, PageKind, PageRef
from worker.domain.run import FinishedPage, PageOrder, Partition, Run, plan_from_json, plan_json
from worker.domain.text import storable
from worker.jobs.store import JobStore
from worker.queue import PgBoss

#: a job that waits for its pages looks at them this often; the last page wakes it, but no wake-up is sure to arrive
LOOK_SECONDS = 60.0
#: finished pages are kept this long for a job that failed or was cancelled: it may be revived
KEPT_SECONDS = 24 * 60 * 60.0
BATCH = 20
#: of a job's time is over when its pages are finished; also in tell_run.sql
PAGES_SHARE = 0.95


@dataclass(frozen=True, slots=True)
class LeftoverRun:
    """A run that is over, and whose pages' artifacts may still be there."""

    id: JobId
    spec: Any
    chains: tuple[Chain, ...]


class RunStore:
    def __init__(self, pool: Pool, queue: PgBoss, jobs: JobStore) -> None:
        self._pool = pool
        self._jobs = jobs
        self._sql = load_queries("worker.continuation", queue_schema=queue.schema, queue_version=queue.version)

    async def look(self, job_id: JobId) -> Run | None:
        """None: the job was not split, or its pages count no more."""
        return await self._look(self._pool, job_id)

    async def order(self, page: PageRef) -> PageOrder | None:
        row = await self._pool.fetchrow(self._sql["page_order"], page.run_id, page.partition)
        if row is None:
            return None
        return PageOrder(
            page,
            plan_from_json(row["plan"]),
            PageKind(row["kind"]),
            tuple(row["heights"]),
            row["spec"],
            _obsolete(page, row),
        )

    async def pages(self, run_id: JobId) -> list[FinishedPage]:
        rows = await self._pool.fetch(self._sql["finished_pages"], run_id)
        return [
            FinishedPage(PageKind(row["kind"]), row["partition_id"], row["page_offset"], row["facts"]) for row in rows
        ]

    async def begin(self, lease: Lease, split: Split) -> None:
        """Put the job aside and send the first page of each chain."""
        detail = {
            "pages": sum(chain.past - chain.first for chain in split.chains),
            "partitions": len(split.chains),
            "kinds": sorted({chain.kind for chain in split.chains}),
        }
        if split.plan.fallback:
            detail["reason"] = split.plan.fallback
        async with self._transaction() as connection:
            await self._jobs.put_aside(lease, "split", detail, wait_seconds=LOOK_SECONDS, connection=connection)
            plan = storable(plan_json(split.plan))
            free = await connection.fetchval(self._sql["begin_run"], lease.job_id, plan)
            for partition, chain in enumerate(split.chains, free):
                await connection.execute(
                    self._sql["add_partition"],
                    lease.job_id,
                    partition,
                    chain.kind,
                    chain.first,
                    chain.past,
                    list(chain.heights),
                )
                page = PageRef(lease.job_id, partition, chain.first)
                await self._send(connection, page, page.job_id)
            await self._settle_look(connection, lease.job_id)

    async def snooze(self, lease: Lease, snoozed: Snoozed) -> None:
        """Put the job aside again, and send what got lost."""
        async with self._transaction() as connection:
            lost = [f"{page.partition}:{page.offset}" for page in snoozed.lost]
            detail = {"lost": lost} if lost else {}
            await self._jobs.put_aside(lease, "snoozed", detail, wait_seconds=LOOK_SECONDS, connection=connection)
            for page in snoozed.lost:
                # What was sent under the page's own id is done without having moved the chain: it came out of turn.
                if not await self._send(connection, page, page.job_id):
                    await self._send(connection, page, page.named(f":{lease.token}"))
            await self._settle_look(connection, lease.job_id)

    async def finish_page(self, lease: Lease, done: PageDone) -> None:
        """Settle the page, note what it made, move its chain on, send the next one, tell the job: all or nothing."""
        page = done.page
        async with self._transaction() as connection:
            await self._jobs.finish(lease, dict(page.message), connection=connection)
            row = await connection.fetchrow(
                self._sql["advance_page"],
                page.run_id,
                page.partition,
                page.offset,
                lease.job_id,
                storable(dict(done.facts)),
            )
            if row is None:
                return
            if not row["completed"]:
                following = PageRef(page.run_id, page.partition, row["next_offset"])
                await self._send(connection, following, following.job_id)
            await connection.execute(self._sql["tell_run"], page.run_id, page.partition, page.offset)

    async def drop(self, run_id: JobId) -> None:
        """What the pages made is not to be used; should the job be revived, it is split anew."""
        await self._pool.execute(self._sql["drop_pages"], run_id)

    async def note_cleaned(self, run_id: JobId) -> None:
        await self._pool.execute(self._sql["note_cleaned"], run_id)

    async def leftovers(self) -> list[LeftoverRun]:
        rows = await self._pool.fetch(self._sql["leftover_runs"], KEPT_SECONDS, BATCH)
        return [LeftoverRun(JobId(row["id"]), row["spec"], tuple(map(_chain, row["chains"]))) for row in rows]

    async def _look(self, db: Executor, job_id: JobId) -> Run | None:
        rows = await db.fetch(self._sql["look"], job_id)
        if not rows:
            return None
        return Run(job_id, plan_from_json(rows[0]["plan"]), tuple(_partition(row) for row in rows))

    async def _settle_look(self, connection: Connection, job_id: JobId) -> None:
        """Whoever ended a page while the job was looking could not wake it."""
        await connection.execute(self._sql["lock_run"], job_id)
        run = await self._look(connection, job_id)
        is_due = run is None or run.is_complete or run.failed is not None or bool(run.idle)
        progress = PAGES_SHARE * run.finished_pages / run.pages if run is not None else 0.0
        await connection.execute(self._sql["settle_look"], job_id, progress, is_due)
        await connection.execute(self._sql["heed_cancel"], job_id)

    async def _send(self, connection: Connection, page: PageRef, job_id: JobId) -> bool:
        sent = await connection.fetchval(self._sql["send_page"], page.run_id, job_id, dict(page.message))
        return sent is not None

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        async with self._pool.acquire() as connection, connection.transaction():
            yield connection


def _chain(told: Mapping[str, Any]) -> Chain:
    return Chain(PageKind(told["kind"]), told["first"], told["past"], tuple(told["heights"]))


def _partition(row: asyncpg.Record) -> Partition:
    return Partition(
        id=row["partition_id"],
        kind=PageKind(row["kind"]),
        first=row["first_offset"],
        past=row["past_offset"],
        next=row["next_offset"],
        heights=tuple(row["heights"]),
        page_status=JobStatus(row["page_status"]) if row["page_status"] is not None else None,
        page_code=row["page_code"],
        page_message=row["page_message"],
    )


def _obsolete(page: PageRef, row: asyncpg.Record) -> str:
    if row["is_dropped"]:
        return "its job has given these pages up"
    if JobStatus(row["status"]).is_final:
        return f"its job is {row['status']}"
    if row["completed"] or page.offset != row["next_offset"]:
        return f"it is the turn of page {row['next_offset']}"
    return ""
