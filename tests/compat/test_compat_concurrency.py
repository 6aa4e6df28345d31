"""Scenario 36 and its like: many workers of both kinds on one queue."""

import asyncio
from collections import Counter
from uuid import UUID

import pytest

from tests.compat.conftest import StartNode
from tests.compat.harness import NodeBoss, eventually, pool_of
from worker.db.pool import Pool
from worker.queue import PgBoss
from worker.queue.options import Policy

JOBS = 10_000


@pytest.mark.timeout(120)
async def test_36_four_python_and_four_node_workers_complete_each_job_once(
    boss: PgBoss, start_node: StartNode, pool: Pool, dsn: str
) -> None:
    nodes = await asyncio.gather(*(start_node() for _ in range(4)))
    await boss.insert("q", [{"data": {"n": number}} for number in range(JOBS)])
    all_done = asyncio.Event()
    pythons = [asyncio.create_task(_work(dsn, all_done)) for _ in range(4)]
    options = {"batchSize": 20, "pollingIntervalSeconds": 0.5, "burstWhenBatchFull": True}
    await asyncio.gather(*(node.call("work", "q", options, {"returns": {"by": "node"}}) for node in nodes))

    async def none_left() -> bool:
        return not await pool.fetchval("SELECT EXISTS (SELECT FROM pgboss.job WHERE state <> 'completed')")

    try:
        await eventually(none_left, seconds=100)
    finally:
        all_done.set()
        completed_by_python = [job for done in await asyncio.gather(*pythons) for job in done]
    completed_by_node = [job for node in nodes for job in await _seen(node)]

    runs = Counter(completed_by_python + completed_by_node)
    assert len(runs) == JOBS
    assert runs.total() == JOBS
    assert completed_by_python
    assert completed_by_node
    rows = await pool.fetch("SELECT state::text, retry_count, count(*)::int FROM pgboss.job GROUP BY 1, 2")
    assert [tuple(row) for row in rows] == [("completed", 0, JOBS)]


@pytest.mark.parametrize("policy", ["singleton", "stately", "key_strict_fifo"])
async def test_workers_of_both_kinds_get_through_keys_that_run_one_at_a_time(
    boss: PgBoss, start_node: StartNode, pool: Pool, dsn: str, policy: Policy
) -> None:
    await boss.create_queue("keyed", policy=policy)
    keys = "abcd"
    nodes = await asyncio.gather(*(start_node() for _ in range(2)))
    all_done = asyncio.Event()
    pythons = [asyncio.create_task(_work(dsn, all_done, queue="keyed")) for _ in range(2)]
    options = {"batchSize": 2, "pollingIntervalSeconds": 0.5, "burstWhenBatchFull": True}
    await asyncio.gather(*(node.call("work", "keyed", options) for node in nodes))
    accepted = 0
    for number in range(120):
        job = await boss.send("keyed", {"n": number}, singleton_key=keys[number % len(keys)])
        accepted += job is not None

    async def none_left() -> bool:
        return not await pool.fetchval("SELECT EXISTS (SELECT FROM pgboss.job WHERE state <> 'completed')")

    try:
        await eventually(none_left, seconds=30)
    finally:
        all_done.set()
        await asyncio.gather(*pythons)
    assert await pool.fetchval("SELECT count(*) FROM pgboss.job WHERE retry_count = 0") == accepted
    assert accepted == 120 or policy == "stately"
    assert [event for node in nodes for event in await node.call("events")] == []
    if policy == "key_strict_fifo":
        rows = await pool.fetch("SELECT singleton_key AS key, data->'n' AS n FROM pgboss.job ORDER BY completed_on")
        for key in keys:
            numbers = [row["n"] for row in rows if row["key"] == key]
            assert numbers == sorted(numbers)


async def _work(dsn: str, all_done: asyncio.Event, *, queue: str = "q") -> list[UUID]:
    completed: list[UUID] = []
    async with pool_of(dsn, size=2) as pool:
        boss = await PgBoss.attach(pool)
        while not all_done.is_set():
            deliveries = await boss.fetch(queue, 20)
            completed += await boss.complete(queue, [delivery.fence for delivery in deliveries])
            if not deliveries:
                await asyncio.sleep(0.05)
    return completed


async def _seen(node: NodeBoss) -> list[UUID]:
    return [UUID(job["id"]) for job in await node.call("seen", "q")]
