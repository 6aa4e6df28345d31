"""Registries for tests, and what they ask of the database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from tests.chaos.proxy import FaultProxy
from tests.conftest import Room
from worker.db.pool import open_pool
from worker.domain.job import Attempt, JobId, Lease, LeaseToken
from worker.jobs.workers import Place, WorkerRows, WorkerSummary
from worker.runtime.registry import Registry
from worker.runtime.tally import Tally


def make_registry(rows: WorkerRows, tally: Tally, *, interval_seconds: float = 10) -> Registry:
    return Registry(
        rows,
        tally,
        version="1.2.3",
        place=Place("host", 1, 2),
        queues=["clip", "clip.page"],
        interval_seconds=interval_seconds,
        retention_seconds=60,
    )


def an_attempt(queue: str = "clip") -> Attempt:
    return Attempt(Lease(JobId(uuid4()), queue, LeaseToken(1), 0), {}, 1, 3, 0, 900, None)


async def only(room: Room) -> WorkerSummary:
    (found,) = await WorkerRows(room.pool, room.queue).listing(with_stopped=True)
    return found


async def in_queues(room: Room, worker: Any) -> dict[str, int]:
    found = await room.pool.fetch("SELECT queue, processed FROM worker.worker_progress WHERE worker_id = $1", worker)
    return {row["queue"]: row["processed"] for row in found}


@asynccontextmanager
async def behind_a_proxy(dsn: str) -> AsyncIterator[tuple[Any, FaultProxy]]:
    parts = urlsplit(dsn)
    async with FaultProxy(parts.port or 5432) as proxy:
        netloc = parts.netloc.replace(f":{parts.port}", f":{proxy.port}")
        pool = await open_pool(urlunsplit(parts._replace(netloc=netloc)), name="test", size=2, timeout_seconds=20)
        try:
            yield pool, proxy
        finally:
            pool.terminate()
