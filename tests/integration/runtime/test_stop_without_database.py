"""A job that is told to stop while it waits for a database that is away stops at once."""

import asyncio
import time
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import pytest

from tests.chaos.proxy import FaultProxy, Mode
from tests.conftest import LEASE_SECONDS, Room
from tests.jobs import event_kinds, one_attempt
from worker.db.pool import open_pool
from worker.domain.job import WorkerId
from worker.jobs.store import JobStore
from worker.runtime.active import ActiveJob
from worker.runtime.persist import persist


async def test_stop_does_not_wait_for_a_silent_database(room: Room, dsn: str) -> None:
    job_id = await room.desk.submit("clip", {})
    attempt = await one_attempt(room, WorkerId(uuid4()))
    job = ActiveJob(attempt, time.monotonic(), 30)
    parts = urlsplit(dsn)
    async with FaultProxy(parts.port or 5432) as proxy:
        netloc = parts.netloc.replace(f":{parts.port}", f":{proxy.port}")
        pool = await open_pool(urlunsplit(parts._replace(netloc=netloc)), name="test", timeout_seconds=20)
        store = JobStore(pool, room.queue, lease_seconds=LEASE_SECONDS)
        await persist(job, lambda: store.note(attempt.lease, "before"))
        proxy.mode = Mode.BLACKHOLE
        write = asyncio.create_task(persist(job, lambda: store.note(attempt.lease, "meanwhile")))
        await asyncio.sleep(0.2)
        write.cancel()
        started = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await write
        assert time.monotonic() - started < 1
        proxy.mode = Mode.PASS
        # its connection is free again as soon as the database answers
        await persist(job, lambda: store.note(attempt.lease, "after"))
        await asyncio.wait_for(pool.close(), 10)
    kinds = await event_kinds(room, job_id)
    assert "before" in kinds
    assert kinds[-1] == "after"
