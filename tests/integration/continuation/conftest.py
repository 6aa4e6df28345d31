"""Long jobs in the jobs room, and the queue of their pages."""

from collections.abc import Iterator

import pytest

from tests.conftest import Room
from tests.integration.continuation.long_jobs import LongJobs
from tests.integration.continuation.races import Ring, open_ring
from tests.integration.leases.ground import Ground, open_ground
from worker.continuation.store import RunStore
from worker.domain.paging import PAGE_QUEUE


@pytest.fixture
async def long(room: Room) -> LongJobs:
    await room.queue.create_queue(PAGE_QUEUE, retry_limit=2, notify=True)
    return LongJobs(room, RunStore(room.pool, room.queue, room.store))


@pytest.fixture(scope="module")
def ground(server_dsn: str, template_database: str) -> Iterator[Ground]:
    with open_ground(server_dsn, template_database) as ground:
        yield ground


@pytest.fixture(scope="module")
def ring(ground: Ground) -> Iterator[Ring]:
    with open_ring(ground) as ring:
        yield ring
