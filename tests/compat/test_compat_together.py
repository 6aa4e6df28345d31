"""Scenarios 41 to 43: publish and subscribe, flows, and waking each other."""

import asyncio
import time
from typing import Any

from tests.compat.conftest import StartNode
from tests.compat.harness import SUPERVISING, NodeBoss, eventually, job_row
from worker.db.pool import Pool
from worker.queue import PgBoss
from worker.queue.flows import FlowJob
from worker.queue.listening import Wakeups


async def test_41_python_publishes_to_the_subscribers_of_node(boss: PgBoss, node: NodeBoss) -> None:
    for queue in ("a", "b", "c"):
        await boss.create_queue(queue)
    await node.call("subscribe", "evt", "a")
    await node.call("subscribe", "evt", "b")
    await node.call("subscribe", "other", "c")
    assert len(await boss.publish("evt", {"x": 1}, priority=4)) == 2
    for queue in ("a", "b"):
        (job,) = await node.call("fetch", queue, {"includeMetadata": True, "batchSize": 5})
        assert (job["data"], job["priority"]) == ({"x": 1}, 4)
    assert await node.call("fetch", "c") == []


async def test_node_publishes_to_the_subscribers_of_python(boss: PgBoss, node: NodeBoss) -> None:
    await boss.subscribe("evt", "q")
    await node.call("publish", "evt", {"x": 1})
    assert [delivery.data for delivery in await boss.fetch("q", 5)] == [{"x": 1}]
    await boss.unsubscribe("evt", "q")
    await node.call("publish", "evt", {"x": 2})
    assert await boss.fetch("q") == []


async def test_42_node_releases_what_waits_for_a_job_of_python(boss: PgBoss, start_node: StartNode, pool: Pool) -> None:
    node = await start_node(**SUPERVISING)
    ids = await node.call(
        "flow",
        [
            {"ref": "A", "name": "q", "data": {"n": "A"}},
            {"ref": "B", "name": "q", "data": {"n": "B"}, "dependsOn": ["A"]},
        ],
    )
    (first,) = await boss.fetch("q", 5)
    assert str(first.id) == ids["A"]
    assert (await job_row(pool, ids["B"]))["blocked"]
    assert await boss.complete("q", [first.fence]) == {first.id}

    async def released() -> bool:
        return not (await job_row(pool, ids["B"]))["blocked"]

    await eventually(released, what="a flow pass of Node")
    parent, child = await job_row(pool, ids["A"]), await job_row(pool, ids["B"])
    assert (child["pending_dependencies"], parent["blocking"]) == (0, False)
    assert [str(delivery.id) for delivery in await boss.fetch("q", 5)] == [ids["B"]]


async def test_python_releases_what_waits_for_a_job_of_node(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    await boss.create_queue("own", partition=True)
    jobs = [FlowJob("A", "q"), FlowJob("B", "own"), FlowJob("C", "own", {"n": "C"}, depends_on=["A", "B"])]
    ids = await boss.flow(jobs)
    assert ids is not None
    assert await node.call("getDependencies", "own", ids["C"]) == [
        {"name": "own", "id": str(ids["B"])},
        {"name": "q", "id": str(ids["A"])},
    ]
    (first,) = await node.call("fetch", "q", {"batchSize": 5})
    (second,) = await node.call("fetch", "own", {"batchSize": 5})
    for queue, job in (("q", first), ("own", second)):
        assert await boss.fetch("own", 5) == []
        await node.call("complete", queue, job["id"])

        async def resolved() -> bool:
            # Once in five seconds, whoever does it; the test has no time to wait.
            await pool.execute("UPDATE pgboss.version SET flow_on = NULL")
            await boss.resolve_flows()
            return not await pool.fetchval("SELECT blocking FROM pgboss.job WHERE id = $1", job["id"])  # noqa: B023

        await eventually(resolved)
    assert [delivery.data for delivery in await boss.fetch("own", 5)] == [{"n": "C"}]


async def test_flows_of_both_sides_are_alike(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    await boss.create_queue("r")
    ours = await boss.flow(
        [
            FlowJob("A", "q", {"n": "A"}),
            FlowJob("B", "q", {"n": "B"}, ["A"]),
            FlowJob("C", "q", {"n": "C"}, ["A", "B", "A"]),
        ]
    )
    theirs = await node.call(
        "flow",
        [
            {"ref": "A", "name": "r", "data": {"n": "A"}},
            {"ref": "B", "name": "r", "data": {"n": "B"}, "dependsOn": ["A"]},
            {"ref": "C", "name": "r", "data": {"n": "C"}, "dependsOn": ["A", "B", "A"]},
        ],
    )
    assert ours is not None
    for mine, yours in zip(ours.values(), theirs.values(), strict=True):
        first, second = await job_row(pool, mine), await job_row(pool, yours)
        for column in ("data", "state", "blocked", "blocking", "pending_dependencies", "policy", "retry_limit"):
            assert first[column] == second[column]
    links = await pool.fetch("SELECT child_name, count(*) FROM pgboss.job_dependency GROUP BY 1 ORDER BY 1")
    assert [tuple(row) for row in links] == [("q", 3), ("r", 3)]


async def test_43_each_side_wakes_the_other(boss: PgBoss, start_node: StartNode, dsn: str) -> None:
    await boss.create_queue("loud", notify=True)
    node = await start_node(useListenNotify=True)
    await node.call("work", "loud", {"pollingIntervalSeconds": 20})
    # The worker's first poll is over when it has worked something off.
    await boss.send("loud", {"n": 0})
    await _worked(node, 1)
    sent_at = time.time()
    await boss.send("loud", {"n": 1})
    (_, job) = await _worked(node, 2)
    assert job["data"] == {"n": 1}
    assert job["at"] / 1000 - sent_at < 1

    async with boss.listen(dsn, ["loud", "q"]) as wakeups:
        # each comes up once at the start, when it listens
        assert {await _next(wakeups), await _next(wakeups)} == {"loud", "q"}
        await node.call("send", "q", {})
        await node.call("send", "loud", {"n": 2})
        assert await _next(wakeups) == "loud"
        await boss.send("loud", {"n": 3})
        assert await _next(wakeups) == "loud"


async def _next(wakeups: Wakeups) -> str:
    async with asyncio.timeout(1):
        return await anext(wakeups)


async def _worked(node: NodeBoss, count: int) -> list[dict[str, Any]]:
    async def enough() -> list[dict[str, Any]] | None:
        seen: list[dict[str, Any]] = await node.call("seen", "loud")
        return seen if len(seen) == count else None

    return await eventually(enough)
