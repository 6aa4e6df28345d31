"""Scenarios 27 to 31 and 50: one side's jobs keep the other side to the queue's policy."""

from tests.compat.harness import NodeBoss, job_row, sent
from worker.db.pool import Pool
from worker.queue import PgBoss


async def test_27_short_queue_takes_one_waiting_job_of_a_key(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    await boss.create_queue("short", policy="short")
    assert await node.call("send", "short", {}, {"singletonKey": "k"}) is not None
    assert await boss.send("short", {}, singleton_key="k") is None
    assert await boss.send("short", {}, singleton_key="other") is not None
    assert await node.call("send", "short", {}, {"singletonKey": "other"}) is None
    rows = await pool.fetch("SELECT singleton_key, state::text FROM pgboss.job ORDER BY 1")
    assert [tuple(row) for row in rows] == [("k", "created"), ("other", "created")]
    await node.call("fetch", "short", {"batchSize": 2})
    assert await boss.send("short", {}, singleton_key="k") is not None


async def test_28_singleton_queue_runs_one_job_of_a_key(boss: PgBoss, node: NodeBoss) -> None:
    await boss.create_queue("single", policy="singleton")
    held = await node.call("send", "single", {"n": 1}, {"singletonKey": "k"})
    assert [job["id"] for job in await node.call("fetch", "single")] == [held]
    await boss.send("single", {"n": 2}, singleton_key="k")
    assert await boss.fetch("single") == []
    other = await sent(boss.send("single", {"n": 3}, singleton_key="other"))
    assert [delivery.id for delivery in await boss.fetch("single", 5)] == [other]
    assert await node.call("fetch", "single", {"batchSize": 5}) == []
    await node.call("complete", "single", held)
    assert [delivery.data for delivery in await boss.fetch("single")] == [{"n": 2}]


async def test_29_stately_job_without_room_for_its_retry_fails_for_good(
    boss: PgBoss, node: NodeBoss, pool: Pool
) -> None:
    await boss.create_queue("dead")
    await boss.create_queue("stately", policy="stately", retry_limit=5, retry_delay=600, dead_letter="dead")
    first = await node.call("send", "stately", {"n": 1})
    await node.call("fetch", "stately")
    await node.call("fail", "stately", first)
    assert (await job_row(pool, first))["state"] == "retry"

    second = await node.call("send", "stately", {"n": 2})
    (delivery,) = await boss.fetch("stately")
    assert await boss.fail("stately", [delivery.fence], [{"message": "no"}]) == {delivery.id: "failed"}
    row = await job_row(pool, second)
    assert (row["state"], row["retry_count"], row["output"]) == ("failed", 0, {"message": "no"})
    (copy,) = await node.call("fetch", "dead", {"includeMetadata": True})
    assert (copy["data"], copy["sourceId"]) == ({"n": 2}, second)


async def test_30_exclusive_queue_holds_one_job_of_a_key(boss: PgBoss, node: NodeBoss) -> None:
    await boss.create_queue("only", policy="exclusive")
    await sent(boss.send("only", {}))
    (delivery,) = await boss.fetch("only")
    assert await node.call("send", "only", {}) is None
    assert await boss.send("only", {}) is None
    await boss.fail("only", [delivery.fence])
    assert await node.call("send", "only", {}) is None
    (delivery,) = await boss.fetch("only")
    await boss.complete("only", [delivery.fence])
    assert await node.call("send", "only", {}) is not None


async def test_31_strict_fifo_runs_the_jobs_of_a_key_in_order(boss: PgBoss, node: NodeBoss) -> None:
    await boss.create_queue("fifo", policy="key_strict_fifo", retry_limit=0)
    for name in ("A1", "A2", "B1"):
        await node.call("send", "fifo", {"name": name}, {"singletonKey": name[0]})
    fetched = {delivery.data["name"]: delivery for delivery in await boss.fetch("fifo", 3)}
    assert fetched.keys() == {"A1", "B1"}
    assert await boss.fetch("fifo", 3) == []
    assert await node.call("fetch", "fifo", {"batchSize": 3}) == []

    await boss.complete("fifo", [fetched["A1"].fence])
    (second,) = await boss.fetch("fifo", 3)
    assert second.data == {"name": "A2"}

    await node.call("send", "fifo", {"name": "A3"}, {"singletonKey": "A"})
    await boss.fail("fifo", [second.fence])
    assert await node.call("getBlockedKeys", "fifo") == ["A"]
    assert await boss.fetch("fifo", 3) == []
    await node.call("retry", "fifo", second.id)
    (again,) = await boss.fetch("fifo", 3)
    assert again.id == second.id
    await boss.complete("fifo", [again.fence])
    assert [job["data"]["name"] for job in await node.call("fetch", "fifo", {"batchSize": 3})] == ["A3"]


async def test_50_group_limit_counts_the_jobs_of_node(boss: PgBoss, node: NodeBoss) -> None:
    for group in ("g", "g", "h", "h"):
        await node.call("send", "q", {"group": group}, {"group": {"id": group}})
    assert [job["data"]["group"] for job in await node.call("fetch", "q")] == ["g"]
    (other,) = await boss.fetch("q", 10, group_concurrency=1)
    assert (other.data, other.group_id) == ({"group": "h"}, "h")
    assert await boss.fetch("q", 10, group_concurrency=1) == []
    assert await node.call("fetch", "q", {"batchSize": 10, "groupConcurrency": 1}) == []
    assert len(await boss.fetch("q", 10)) == 2
