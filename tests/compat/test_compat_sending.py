"""Scenarios 4 to 8, 34, 35 and 49: what one side creates and sends, the other reads."""

import hashlib
from datetime import timedelta

import pytest

from tests.compat.conftest import StartNode
from tests.compat.harness import SUPERVISING, NodeBoss, NodeError, eventually, job_row, sent
from worker.db.pool import Pool
from worker.errors import QueueMissing
from worker.queue import PgBoss

PAYLOAD = {"text": "Grüße, 世界 🎬", "ratio": 0.1, "nested": {"list": [1, None, {"deep": True}]}, "empty": {}}


async def test_04_queue_made_by_python_reads_the_same_in_node(boss: PgBoss, node: NodeBoss) -> None:
    await boss.create_queue("dead")
    await boss.create_queue(
        "made",
        policy="stately",
        retry_limit=7,
        retry_delay=3,
        retry_backoff=True,
        retry_delay_max=60,
        expire_in_seconds=77,
        retention_seconds=1000,
        delete_after_seconds=2000,
        warning_queue_size=5,
        heartbeat_seconds=15,
        dead_letter="dead",
        notify=True,
    )
    queue = await node.call("getQueue", "made")
    expected = {
        "policy": "stately",
        "retryLimit": 7,
        "retryDelay": 3,
        "retryBackoff": True,
        "retryDelayMax": 60,
        "expireInSeconds": 77,
        "retentionSeconds": 1000,
        "deleteAfterSeconds": 2000,
        "warningQueueSize": 5,
        "heartbeatSeconds": 15,
        "deadLetter": "dead",
        "notify": True,
        "partition": False,
    }
    assert {name: queue[name] for name in expected} == expected

    before = await boss.get_queue("made")
    await node.call("createQueue", "made", {"policy": "short", "retryLimit": 1})
    assert await boss.get_queue("made") == before


async def test_05_node_sends_to_a_partitioned_queue_of_python(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    await boss.create_queue("own", partition=True)
    job_id = await node.call("send", "own", {"x": 1})
    table = await pool.fetchval("SELECT tableoid::regclass::text FROM pgboss.job WHERE id = $1", job_id)
    assert table == "pgboss.j" + hashlib.sha224(b"own").hexdigest()
    (delivery,) = await boss.fetch("own")
    assert (str(delivery.id), delivery.data) == (job_id, {"x": 1})


async def test_06_node_sends_python_works(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    job_id = await node.call("send", "q", PAYLOAD)
    (delivery,) = await boss.fetch("q")
    assert delivery.data == PAYLOAD
    assert await boss.complete("q", [delivery.fence], [{"echo": PAYLOAD}]) == {delivery.id}
    (job,) = await node.call("findJobs", "q", {"id": job_id})
    assert job["state"] == "completed"
    assert job["output"] == {"echo": PAYLOAD}
    assert (await job_row(pool, job_id))["completed_on"] is not None


async def test_07_python_sends_node_fetches(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    job_id = await sent(boss.send("q", PAYLOAD, priority=7))
    row = await job_row(pool, job_id)
    assert (row["priority"], row["policy"]) == (7, "standard")
    assert row["keep_until"] - row["start_after"] == timedelta(days=14)
    (job,) = await node.call("fetch", "q")
    assert (job["id"], job["data"]) == (str(job_id), PAYLOAD)
    assert (await node.call("complete", "q", job["id"]))["affected"] == 1


async def test_08_job_without_data_arrives_as_none(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    job_id = await node.call("send", "q")
    assert (await job_row(pool, job_id))["data"] is None
    (delivery,) = await boss.fetch("q")
    assert delivery.data is None
    assert await boss.complete("q", [delivery.fence]) == {delivery.id}


async def test_34_deferred_job_of_python_is_due_for_node_in_time(boss: PgBoss, start_node: StartNode) -> None:
    node = await start_node(**SUPERVISING)
    job_id = await sent(boss.send("q", {}, start_after=5))
    assert await node.call("fetch", "q") == []

    async def counted() -> bool:
        return bool((await node.call("getQueue", "q"))["deferredCount"] == 1)

    await eventually(counted, what="a monitor pass that counts the deferred job")
    assert await node.call("fetch", "q") == []

    async def due() -> list[dict[str, object]]:
        found: list[dict[str, object]] = await node.call("fetch", "q")
        return found

    assert [job["id"] for job in await eventually(due)] == [str(job_id)]


async def test_35_jobs_run_by_priority_then_age_on_either_side(boss: PgBoss, node: NodeBoss) -> None:
    await boss.create_queue("r")
    for number, priority in enumerate([0, 5, 1, 5, 0]):
        await boss.send("q", {"n": number}, priority=priority)
        await node.call("send", "r", {"n": number}, {"priority": priority})
    assert [delivery.data["n"] for delivery in await boss.fetch("r", 5)] == [1, 3, 2, 0, 4]
    # One at a time: within a batch, Node hands jobs to its handler as PostgreSQL returns them.
    fetched = [(await node.call("fetch", "q"))[0] for _ in range(5)]
    assert [job["data"]["n"] for job in fetched] == [1, 3, 2, 0, 4]


async def test_49_send_to_a_queue_that_node_deleted_is_refused_clearly(boss: PgBoss, node: NodeBoss) -> None:
    for partition in (False, True):
        await boss.create_queue("going", partition=partition)
        await boss.send("going", {})
        await node.call("deleteQueue", "going")
        with pytest.raises(QueueMissing, match="'going' does not exist"):
            await boss.send("going", {})
        with pytest.raises(NodeError, match="going does not exist"):
            await node.call("send", "going", {})
        assert await boss.get_queue("going") is None
