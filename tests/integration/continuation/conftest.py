"""Long jobs in the jobs room, and the queue of their pages."""

import pytest

from tests.conftest import Room
from tests.integration.continuation.long_jobs import LongJobs
from worker.continuation.store import RunStore
from worker.domain.paging import PAGE_QUEUE


@pytest.fixture
async def long(room: Room) -> LongJobs:
    await room.queue.create_queue(PAGE_QUEUE, retry_limit=2, notify=True)
    return LongJobs(room, RunStore(room.pool, room.queue, room.store))
