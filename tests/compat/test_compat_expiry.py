"""Scenarios 21 to 26: attempts that nobody ends are ended by whichever side supervises."""

import asyncio
import time

from tests.compat.conftest import StartNode
from tests.compat.harness import SUPERVISING, eventually, job_in_state, job_row
from worker.db.pool import Pool
from worker.queue import PgBoss

TIMED_OUT = {"value": {"message": "job timed out"}}
NO_HEARTBEAT = {"value": {"message": "job heartbeat timeout"}}


async def test_21_node_takes_an_expired_job_from_python(boss: PgBoss, start_node: StartNode, pool: Pool) -> None:
    node = await start_node(**SUPERVISING)
    job_id = await node.call("send", "q", {}, {"expireInSeconds": 1})
    (delivery,) = await boss.fetch("q")
    row = await job_in_state(pool, job_id, "retry")
    assert (row["output"], row["heartbeat_on"], row["retry_count"]) == (TIMED_OUT, None, 0)
    assert await boss.complete("q", [delivery.fence], [{"too": "late"}]) == set()
    assert await boss.fail("q", [delivery.fence]) == {}
    assert (await job_row(pool, job_id))["output"] == TIMED_OUT


async def test_22_late_python_does_not_touch_the_attempt_of_node(
    boss: PgBoss, start_node: StartNode, pool: Pool
) -> None:
    node = await start_node(**SUPERVISING)
    job_id = await node.call("send", "q", {}, {"expireInSeconds": 1})
    (delivery,) = await boss.fetch("q")
    await job_in_state(pool, job_id, "retry")
    # long enough for the rest of the test
    await pool.execute("UPDATE pgboss.job SET expire_seconds = 60")
    (theirs,) = await node.call("fetch", "q", {"includeMetadata": True})
    assert (theirs["id"], theirs["retryCount"]) == (job_id, 1)
    assert await boss.touch("q", [delivery.fence]) == set()
    assert await boss.complete("q", [delivery.fence], [{"late": True}]) == set()
    assert await boss.fail("q", [delivery.fence], is_final=True) == {}
    assert (await job_row(pool, job_id))["state"] == "active"
    assert (await node.call("complete", "q", job_id, {"by": "node"}))["affected"] == 1
    assert (await job_row(pool, job_id))["output"] == {"by": "node"}


async def test_23_node_takes_a_job_whose_heart_stopped(boss: PgBoss, start_node: StartNode, pool: Pool) -> None:
    node = await start_node(**SUPERVISING)
    await _beat_every(pool, 2)
    job_id = await node.call("send", "q", {})
    (delivery,) = await boss.fetch("q")
    assert delivery.heartbeat_seconds == 2
    started = time.monotonic()
    row = await job_in_state(pool, job_id, "retry")
    assert time.monotonic() - started > 1.5
    assert row["output"] == NO_HEARTBEAT
    assert await boss.touch("q", [delivery.fence]) == set()


async def test_24_job_that_python_touches_stays_its_own(boss: PgBoss, start_node: StartNode, pool: Pool) -> None:
    node = await start_node(**SUPERVISING)
    await _beat_every(pool, 2)
    job_id = await node.call("send", "q", {})
    (delivery,) = await boss.fetch("q")
    passes = set()
    deadline = time.monotonic() + 6
    while time.monotonic() < deadline:
        assert await boss.touch("q", [delivery.fence]) == {delivery.id}
        passes.add(await pool.fetchval("SELECT monitor_on FROM pgboss.queue WHERE name = 'q'"))
        await asyncio.sleep(0.5)
    assert len(passes) > 3, "Node did not look often enough to notice a silent worker"
    assert (await job_row(pool, job_id))["retry_count"] == 0
    assert await boss.complete("q", [delivery.fence]) == {delivery.id}


async def _beat_every(pool: Pool, seconds: int) -> None:
    """Below pg-boss's least of 10 s, which only its clients check, so that the test need not wait for it."""
    await pool.execute("UPDATE pgboss.queue SET heartbeat_seconds = $1 WHERE name = 'q'", seconds)


async def test_25_python_takes_the_job_of_a_killed_node(boss: PgBoss, start_node: StartNode, pool: Pool) -> None:
    node = await start_node()
    job_id = await boss.send("q", {}, expire_in_seconds=1)
    await node.call("work", "q", {"pollingIntervalSeconds": 0.5}, {"waits": True})
    await job_in_state(pool, job_id, "active")
    await node.kill()

    async def supervised() -> bool:
        await boss.supervise_once()
        return bool((await job_row(pool, job_id))["state"] == "retry")

    await eventually(supervised)
    row = await job_row(pool, job_id)
    assert (row["output"], row["retry_count"], row["heartbeat_on"]) == (TIMED_OUT, 0, None)
    (again,) = await boss.fetch("q")
    assert again.retry_count == 1


async def test_26_two_supervisors_fail_each_expired_job_once(boss: PgBoss, start_node: StartNode, pool: Pool) -> None:
    node = await start_node(**SUPERVISING)
    await boss.create_queue("own", partition=True, retry_limit=2)
    for queue in ("q", "own"):
        await node.call("insert", queue, [{"expireInSeconds": 1, "retryLimit": 5}] * 300)

    for attempt in range(2):
        claimed = [delivery for queue in ("q", "own") for delivery in await boss.fetch(queue, 300)]
        assert {delivery.retry_count for delivery in claimed} == {attempt}
        assert len(claimed) == 600

        async def all_expired() -> bool:
            await asyncio.gather(*(boss.supervise_once() for _ in range(2)))
            return not await pool.fetchval("SELECT count(*) FROM pgboss.job WHERE state = 'active'")

        await eventually(all_expired)
        rows = await pool.fetch("SELECT DISTINCT state::text, retry_count, output FROM pgboss.job")
        assert [tuple(row) for row in rows] == [("retry", attempt, TIMED_OUT)]
    assert await node.call("events") == []
