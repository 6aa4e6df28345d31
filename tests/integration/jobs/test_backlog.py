"""What the metrics tell of the queues is what a look into them shows."""

from uuid import uuid4

import pytest

from tests.conftest import Room
from worker.domain.job import WorkerId
from worker.jobs.backlog import Backlog
from worker.queue import PgBoss
from worker.telemetry.backlog import QueueDepth


async def read(room: Room, *queues: str, count_limit: int = 1000) -> dict[str, QueueDepth]:
    found = await Backlog(room.pool, room.queue, queues or ("clip",), count_limit=count_limit).read()
    return {depth.queue: depth for depth in found}


async def send(room: Room, jobs: int = 1, *, due_for: float = 0, queue: str = "clip") -> None:
    """Jobs that have been due for so many seconds; a negative number: that are not due yet."""
    for _ in range(jobs):
        job_id = await room.desk.submit(queue, {"source": "https://example.com/a.mp4"})
        await room.pool.execute(
            "UPDATE pgboss.job SET start_after = now() - make_interval(secs => $2) WHERE id = $1", job_id, due_for
        )


async def test_empty_queue_has_nothing_pending_and_no_age(room: Room) -> None:
    assert await read(room) == {"clip": QueueDepth("clip", pending=0, active=0, backlog_seconds=0)}


async def test_age_is_that_of_the_job_that_is_due_longest(room: Room) -> None:
    await send(room, 2, due_for=10)
    await send(room, due_for=3600)

    found = (await read(room))["clip"]

    assert found.pending == 3
    assert 3600 <= found.backlog_seconds < 3700


async def test_jobs_for_later_are_not_pending(room: Room) -> None:
    await send(room, 3, due_for=-3600)
    assert (await read(room))["clip"] == QueueDepth("clip", 0, 0, 0)


async def test_jobs_at_work_are_active_and_not_pending(room: Room) -> None:
    await send(room, 3, due_for=60)
    await room.store.acquire("clip", 2, WorkerId(uuid4()))

    found = (await read(room))["clip"]

    assert (found.pending, found.active) == (1, 2)


async def test_jobs_that_wait_for_another_attempt_are_pending_when_they_are_due(room: Room) -> None:
    await send(room, 2)
    await room.pool.execute(
        "UPDATE pgboss.job SET state = 'retry', started_on = now() - interval '1 hour', retry_count = 1,"
        " start_after = now() - interval '200 seconds'"
    )

    found = (await read(room))["clip"]

    assert found.pending == 2
    assert 200 <= found.backlog_seconds < 300


@pytest.mark.parametrize("state", ["completed", "failed", "cancelled"])
async def test_jobs_that_ended_count_no_more(room: Room, state: str) -> None:
    await send(room, 2, due_for=60)
    await room.pool.execute("UPDATE pgboss.job SET completed_on = now(), state = $1", state)
    assert (await read(room))["clip"] == QueueDepth("clip", 0, 0, 0)


async def test_queues_are_told_apart_whether_they_share_a_table_or_not(room: Room) -> None:
    await room.queue.create_queue("clip.page")
    await room.queue.create_queue("apart", partition=True)
    await send(room, 1)
    await send(room, 2, queue="clip.page")
    await send(room, 3, queue="apart")

    found = await read(room, "clip", "clip.page", "apart", "never made")

    assert {name: depth.pending for name, depth in found.items()} == {
        "clip": 1,
        "clip.page": 2,
        "apart": 3,
        "never made": 0,
    }


@pytest.mark.parametrize("version", [37, 45, 46])
async def test_older_installs_are_told_the_same(room: Room, version: int) -> None:
    await send(room, 3, due_for=10)
    await send(room, 1, due_for=500)
    older = PgBoss(room.pool, schema="pgboss", version=version)

    (found,) = await Backlog(room.pool, older, ["clip"]).read()

    assert found.pending == 4
    assert 500 <= found.backlog_seconds < 600


async def test_queue_that_is_named_twice_is_told_once(room: Room) -> None:
    assert len(await Backlog(room.pool, room.queue, ["clip", "clip"]).read()) == 1


async def test_counting_stops_at_the_limit_and_the_age_is_right_all_the_same(room: Room) -> None:
    await send(room, 5, due_for=10)
    await send(room, 1, due_for=500)

    found = (await read(room, count_limit=4))["clip"]

    assert found.pending == 4
    assert 500 <= found.backlog_seconds < 600
