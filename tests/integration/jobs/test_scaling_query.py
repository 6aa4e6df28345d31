"""What KEDA asks the database is what the metrics tell, and what the autoscaler scales by."""

from uuid import uuid4

import pytest

from tests.conftest import Room
from tests.unit.deploy.manifests import KUBERNETES, read, settings_of
from worker.domain.job import WorkerId
from worker.jobs.backlog import Backlog

SCALED = {"worker.yaml": "clip", "pages.yaml": "clip.page"}


@pytest.mark.parametrize("name", SCALED)
async def test_query_counts_what_waits_and_what_runs(room: Room, name: str) -> None:
    queue = SCALED[name]
    (trigger,) = read(KUBERNETES / "keda" / name)["spec"]["triggers"]
    query = trigger["metadata"]["query"]
    for each in SCALED.values():
        if await room.queue.get_queue(each) is None:
            await room.queue.create_queue(each, retry_limit=2)
        for _ in range(9):
            await room.queue.send(each, {"source": "https://example.com/a.mp4"})
    assert await room.pool.fetchval(query) == 9

    await room.store.acquire(queue, 2, WorkerId(uuid4()))
    change = (
        "UPDATE pgboss.job SET {} WHERE id = (SELECT id FROM pgboss.job WHERE name = $1 AND state = 'created' LIMIT 1)"
    )
    for what in (
        "start_after = now() + interval '1 hour'",
        "blocked = true",
        "state = 'retry', started_on = now()",
        "state = 'cancelled', completed_on = now()",
        "state = 'completed', completed_on = now()",
    ):
        await room.pool.execute(change.format(what), queue)

    (depth,) = await Backlog(room.pool, room.queue, [queue]).read()
    assert (depth.pending, depth.active) == (3, 2)
    assert await room.pool.fetchval(query) == depth.pending + depth.active


async def test_a_job_whose_worker_died_still_calls_for_one(room: Room) -> None:
    await room.queue.send("clip", {"source": "https://example.com/a.mp4"})
    await room.store.acquire("clip", 1, WorkerId(uuid4()))
    (trigger,) = read(KUBERNETES / "keda/worker.yaml")["spec"]["triggers"]
    assert await room.pool.fetchval(trigger["metadata"]["query"]) == 1


def test_scalers_want_as_many_workers_as_there_are_jobs_to_hold() -> None:
    for name, overlay in (("worker.yaml", "base"), ("pages.yaml", "pages")):
        scaled = read(KUBERNETES / "keda" / name)["spec"]
        (trigger,) = scaled["triggers"]
        assert trigger["metadata"]["targetQueryValue"] == settings_of(overlay)["MAX_CONCURRENCY"]
        assert trigger["metricType"] == "AverageValue"
        assert scaled["minReplicaCount"] == 0
        authentication = read(KUBERNETES / "keda/database.yaml")
        assert trigger["authenticationRef"]["name"] == authentication["metadata"]["name"]
        assert authentication["spec"]["secretTargetRef"] == [
            {"parameter": "connection", "name": "clipboss", "key": "DATABASE_URL"}
        ]
    (metric,) = read(KUBERNETES / "hpa/autoscaler.yaml")["spec"]["metrics"]
    assert metric["external"]["target"]["averageValue"] == settings_of("base")["MAX_CONCURRENCY"]
