"""Scenarios 44 and 45: finished and forgotten jobs are deleted by whichever side maintains."""

from tests.compat.conftest import StartNode
from tests.compat.harness import SUPERVISING, NodeBoss, eventually
from worker.db.pool import Pool
from worker.queue import PgBoss


async def names_left(pool: Pool) -> set[str]:
    rows = await pool.fetch("SELECT data->>'name' AS name FROM pgboss.job WHERE data ? 'name'")
    return {row["name"] for row in rows}


async def test_44_node_deletes_what_python_completed(boss: PgBoss, start_node: StartNode, pool: Pool) -> None:
    await boss.send("q", {"name": "short-lived"}, delete_after_seconds=1)
    await boss.send("q", {"name": "kept for good"}, delete_after_seconds=0)
    await boss.send("q", {"name": "long-lived"})
    deliveries = await boss.fetch("q", 3)
    assert len(await boss.complete("q", [delivery.fence for delivery in deliveries])) == 3
    await start_node(**SUPERVISING)

    async def deleted() -> bool:
        return "short-lived" not in await names_left(pool)

    await eventually(deleted, what="a maintenance pass of Node")
    assert await names_left(pool) == {"kept for good", "long-lived"}


async def test_45_python_deletes_what_nobody_worked_on_in_time(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    await boss.create_queue("own", partition=True)
    for queue in ("q", "own"):
        await node.call("send", queue, {"name": f"forgotten in {queue}"}, {"retentionSeconds": 1})
        await node.call("send", queue, {"name": f"waiting in {queue}"})
    await node.call("send", "q", {"name": "done"}, {"deleteAfterSeconds": 1, "priority": 1})
    (job,) = await node.call("fetch", "q")
    await node.call("complete", "q", job["id"])

    async def deleted() -> bool:
        await boss.supervise_once()
        return await names_left(pool) == {"waiting in q", "waiting in own"}

    await eventually(deleted)
    assert len(await node.call("fetch", "own", {"batchSize": 5})) == 1
