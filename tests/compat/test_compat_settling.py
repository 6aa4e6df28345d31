"""Scenarios 9 to 20, 37 and 46: how attempts end, as the other side sees it."""

from datetime import timedelta
from typing import Any

import pytest

from tests.compat.harness import NodeBoss, job_row, sent
from worker.db.pool import Pool
from worker.queue import Delivery, PgBoss


async def fail_until_final(boss: PgBoss, queue: str, detail: Any) -> list[int]:
    """Fail the queue's only job as often as it comes back; the attempts' retry counts."""
    counts: list[int] = []
    while fetched := await boss.fetch(queue):
        assert len(counts) < 10, "the job comes back for ever"
        counts.append(fetched[0].retry_count)
        await boss.fail(queue, [fetched[0].fence], [detail])
    return counts


async def fetch_one(boss: PgBoss, queue: str = "q") -> Delivery:
    (delivery,) = await boss.fetch(queue)
    return delivery


async def test_09_outputs_have_the_shape_node_gives_them(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    for value, stored in [
        (1, {"value": 1}),
        ("s", {"value": "s"}),
        ([1, 2], {"value": [1, 2]}),
        ({"x": 1}, {"x": 1}),
        (None, None),
    ]:
        ours, theirs = await sent(boss.send("q", {})), await sent(boss.send("q", {}))
        mine = await fetch_one(boss)
        assert mine.id == ours
        await boss.complete("q", [mine.fence], [value])
        (yours,) = await node.call("fetch", "q")
        assert yours["id"] == str(theirs)
        await node.call("complete", "q", yours["id"], value)
        assert (await job_row(pool, ours))["output"] == stored
        assert (await job_row(pool, theirs))["output"] == stored


async def test_10_failure_of_python_reads_as_an_error_in_node(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    job_id = await node.call("send", "q", {})
    delivery = await fetch_one(boss)
    detail = {"name": "ValueError", "message": "no such codec", "stack": "Traceback …"}
    assert await boss.fail("q", [delivery.fence], [detail]) == {delivery.id: "retry"}
    (job,) = await node.call("findJobs", "q", {"id": job_id})
    assert (job["state"], job["output"], job["completedOn"]) == ("retry", detail, None)
    row = await job_row(pool, job_id)
    assert (row["completed_on"], row["heartbeat_on"]) == (None, None)


async def test_11_job_fails_for_good_after_its_retries(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    job_id = await node.call("send", "q", {})
    assert await fail_until_final(boss, "q", "no") == [0, 1, 2]
    row = await job_row(pool, job_id)
    assert row["state"] == "failed"
    assert row["completed_on"] is not None
    assert await node.call("fetch", "q") == []


async def test_12_retry_waits_for_the_delay(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    job_id = await node.call("send", "q", {}, {"retryDelay": 3})
    await boss.fail("q", [(await fetch_one(boss)).fence])
    wait = await pool.fetchval("SELECT start_after - now() FROM pgboss.job WHERE id = $1", job_id)
    assert timedelta(seconds=2) < wait <= timedelta(seconds=3)
    assert await node.call("fetch", "q") == []
    await pool.execute("UPDATE pgboss.job SET start_after = start_after - interval '3 s'")
    assert [job["id"] for job in await node.call("fetch", "q")] == [job_id]


@pytest.mark.parametrize("failure", range(4))
async def test_13_backoff_doubles_the_wait(boss: PgBoss, node: NodeBoss, pool: Pool, failure: int) -> None:
    (wait,) = await _waits(boss, node, pool, failure, {"retryDelay": 2, "retryBackoff": True})
    assert 2 * 2**failure <= wait < 4 * 2**failure


@pytest.mark.parametrize("failure", [0, 3, 20])
async def test_14_backoff_stops_at_its_cap(boss: PgBoss, node: NodeBoss, pool: Pool, failure: int) -> None:
    options = {"retryDelay": 2, "retryBackoff": True, "retryDelayMax": 5}
    (wait,) = await _waits(boss, node, pool, failure, options)
    assert 2 <= wait <= 5


async def _waits(boss: PgBoss, node: NodeBoss, pool: Pool, failure: int, options: dict[str, Any]) -> list[float]:
    """Seconds that a job waits after Python failed it for the `failure`-th time (from 0)."""
    await node.call("send", "q", {}, {**options, "retryLimit": 50})
    await pool.execute("UPDATE pgboss.job SET retry_count = $1", failure)
    delivery = await fetch_one(boss)
    async with pool.acquire() as connection, connection.transaction():
        await boss.fail("q", [delivery.fence], connection=connection)
        rows = await connection.fetch("SELECT extract(epoch FROM start_after - now())::float AS wait FROM pgboss.job")
    return [row["wait"] for row in rows]


async def test_15_exhausted_job_is_copied_to_the_dead_letter_queue(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    job_id = await _bury(boss, node)
    original = await job_row(pool, job_id)
    assert original["state"] == "failed"
    (copy,) = await pool.fetch("SELECT * FROM pgboss.job WHERE name = 'dead'")
    expected = {
        "state": "created",
        "data": {"x": 1},
        "priority": 3,
        "singleton_key": "k",
        "group_id": "g",
        "retry_count": 0,
        "retry_limit": 9,
        "source_name": "mortal",
        "source_id": original["id"],
        "source_created_on": original["created_on"],
        "source_retry_count": 1,
        "source_output": {"message": "no"},
        "source_root_id": original["id"],
        "policy": None,
        "output": None,
    }
    assert {name: copy[name] for name in expected} == expected


async def test_dead_letter_copies_of_both_sides_are_alike(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    ours = await _bury(boss, node)
    theirs = await node.call("send", "mortal", {"x": 1}, {"singletonKey": "k", "priority": 3, "group": {"id": "g"}})
    for _ in range(2):
        await node.call("fetch", "mortal")
        await node.call("fail", "mortal", theirs, {"message": "no"})
    rows = {
        str(row["source_id"]): dict(row) for row in await pool.fetch("SELECT * FROM pgboss.job WHERE name = 'dead'")
    }
    moments = {"id", "created_on", "start_after", "keep_until", "source_id", "source_root_id", "source_created_on"}
    first, second = rows[str(ours)], rows[theirs]
    assert {name: first[name] for name in first.keys() - moments} == {
        name: second[name] for name in second.keys() - moments
    }
    assert all(row["keep_until"] - row["created_on"] == timedelta(days=14) for row in (first, second))
    assert all(row["start_after"] == row["created_on"] for row in (first, second))


async def test_16_job_that_node_redrives_runs_again(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    job_id = await _bury(boss, node)
    assert await node.call("redrive", "dead") == 1
    assert await pool.fetchval("SELECT count(*) FROM pgboss.job WHERE name = 'dead'") == 0
    again = await fetch_one(boss, "mortal")
    row = await job_row(pool, again.id)
    assert str(again.id) != job_id
    assert (str(row["source_root_id"]), again.data, again.retry_count) == (job_id, {"x": 1}, 0)
    assert await boss.complete("mortal", [again.fence]) == {again.id}


async def _bury(boss: PgBoss, node: NodeBoss) -> str:
    """Let a job use up its two attempts in Python; its id."""
    await boss.create_queue("dead", retry_limit=9)
    await boss.create_queue("mortal", retry_limit=1, dead_letter="dead")
    options = {"singletonKey": "k", "priority": 3, "group": {"id": "g"}}
    job_id: str = await node.call("send", "mortal", {"x": 1}, options)
    assert await fail_until_final(boss, "mortal", {"message": "no"}) == [0, 1]
    return job_id


async def test_17_python_dead_letters_with_retries_left(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    await boss.create_queue("dead")
    job_id = await node.call("send", "q", {"x": 1}, {"deadLetter": "dead"})
    delivery = await fetch_one(boss)
    assert await boss.dead_letter("q", [delivery.fence], ["hopeless"]) == {delivery.id}
    assert (await job_row(pool, job_id))["state"] == "failed"
    (copy,) = await node.call("fetch", "dead", {"includeMetadata": True})
    assert (copy["data"], copy["sourceId"], copy["sourceRetryCount"]) == ({"x": 1}, job_id, 0)


async def test_18_job_that_node_cancels_cannot_be_settled(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    job_id = await node.call("send", "q", {})
    delivery = await fetch_one(boss)
    assert (await node.call("cancel", "q", job_id))["affected"] == 1
    assert await boss.touch("q", [delivery.fence]) == set()
    assert await boss.complete("q", [delivery.fence], [{"x": 1}]) == set()
    assert await boss.fail("q", [delivery.fence]) == {}
    row = await job_row(pool, job_id)
    assert (row["state"], row["output"]) == ("cancelled", None)


async def test_19_job_that_node_resumes_runs(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    job_id = await node.call("send", "q", {})
    await node.call("cancel", "q", job_id)
    assert await boss.fetch("q") == []
    assert (await node.call("resume", "q", job_id))["affected"] == 1
    row = await job_row(pool, job_id)
    assert (row["state"], row["completed_on"]) == ("created", None)
    delivery = await fetch_one(boss)
    assert (str(delivery.id), delivery.retry_count) == (job_id, 0)
    assert await boss.complete("q", [delivery.fence]) == {delivery.id}


async def test_20_failed_job_that_node_retries_runs_once_more(boss: PgBoss, node: NodeBoss) -> None:
    job_id = await node.call("send", "q", {}, {"retryLimit": 0})
    assert await fail_until_final(boss, "q", "no") == [0]
    assert (await node.call("retry", "q", job_id))["affected"] == 1
    delivery = await fetch_one(boss)
    assert (str(delivery.id), delivery.retry_limit, delivery.retry_count) == (job_id, 1, 1)


async def test_37_batch_completes_without_the_jobs_node_cancelled(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    await node.call("insert", "q", [{"data": {"n": number}} for number in range(100)])
    deliveries = await boss.fetch("q", 100)
    cancelled = {delivery.id for delivery in deliveries[10:13]}
    assert (await node.call("cancel", "q", list(cancelled)))["affected"] == 3
    settled = await boss.complete("q", [delivery.fence for delivery in deliveries])
    assert settled == {delivery.id for delivery in deliveries} - cancelled
    assert len(settled) == 97
    assert await pool.fetchval("SELECT count(*) FROM pgboss.job WHERE state = 'cancelled'") == 3


async def test_46_output_that_jsonb_cannot_hold_is_stored_sanitised(boss: PgBoss, node: NodeBoss) -> None:
    job_id = await node.call("send", "q", {})
    delivery = await fetch_one(boss)
    awkward = {"nul\0": "a\0b", "surrogate": "\ud800", "number": float("nan"), "fine": "ü"}
    assert await boss.complete("q", [delivery.fence], [awkward]) == {delivery.id}
    (job,) = await node.call("findJobs", "q", {"id": job_id})
    assert job["state"] == "completed"
    assert job["output"]["fine"] == "ü"
    assert "\0" not in str(job["output"])
