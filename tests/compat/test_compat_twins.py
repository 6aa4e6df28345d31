"""The same thing done by either side leaves the same row behind, in every column."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.compat.harness import NodeBoss, sent
from worker.db.pool import Pool
from worker.queue import PgBoss

#: told by their distance from created_on
MOMENTS = {"start_after", "keep_until", "started_on", "completed_on", "heartbeat_on"}
#: differ between any two jobs
OWN = {"id", "name", "created_on", "source_id", "source_root_id", "source_created_on"}
#: a machine that is busy between two steps
SLACK_SECONDS = 4


@pytest.fixture
async def twins(boss: PgBoss) -> PgBoss:
    """Two queues alike, `ours` and `theirs`, with a dead letter queue each."""
    for side in ("ours", "theirs"):
        await boss.create_queue(f"{side}.dead", retry_limit=4, expire_in_seconds=44, retention_seconds=444)
        await boss.create_queue(side, retry_limit=1, heartbeat_seconds=30, notify=True)
    return boss


async def assert_alike(pool: Pool, *, count: int = 1, suffix: str = "") -> None:
    """The jobs of both queues, oldest first, have the same values and are due at the same distance."""
    ours, theirs = [
        await pool.fetch("SELECT * FROM pgboss.job WHERE name = $1 ORDER BY created_on, data", side + suffix)
        for side in ("ours", "theirs")
    ]
    assert [len(ours), len(theirs)] == [count, count]
    for mine, yours in zip(ours, theirs, strict=True):
        assert _values(mine) == _values(yours)
        assert _distances(mine) == pytest.approx(_distances(yours), abs=SLACK_SECONDS)


def _values(row: Any) -> dict[str, Any]:
    values = {name: row[name] for name in set(row.keys()) - OWN - MOMENTS}
    values["dead_letter"] = (row["dead_letter"] or "").partition(".")[2]
    values["source_name"] = (row["source_name"] or "").partition(".")[2]
    return values


def _distances(row: Any) -> dict[str, float]:
    return {name: (row[name] - row["created_on"]).total_seconds() for name in MOMENTS if row[name] is not None}


LATER = datetime(2031, 5, 4, 3, 2, 1, tzinfo=UTC)


OPTIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"priority": -3}, {"priority": -3}),
    ({"singleton_key": "k"}, {"singletonKey": "k"}),
    ({"group": {"id": "g", "tier": "t"}}, {"group": {"id": "g", "tier": "t"}}),
    ({"retry_limit": 0, "retry_delay": 9}, {"retryLimit": 0, "retryDelay": 9}),
    (
        {"retry_backoff": True, "retry_delay_max": 60, "retry_delay": 2},
        {"retryBackoff": True, "retryDelayMax": 60, "retryDelay": 2},
    ),
    ({"retry_backoff": True}, {"retryBackoff": True}),
    ({"expire_in_seconds": 7}, {"expireInSeconds": 7}),
    ({"retention_seconds": 77, "start_after": 100}, {"retentionSeconds": 77, "startAfter": 100}),
    ({"delete_after_seconds": 0}, {"deleteAfterSeconds": 0}),
    ({"heartbeat_seconds": 12}, {"heartbeatSeconds": 12}),
    ({"dead_letter": "ours.dead"}, {"deadLetter": "theirs.dead"}),
    ({"start_after": 0}, {"startAfter": 0}),
    ({"start_after": timedelta(minutes=5)}, {"startAfter": "5 minutes"}),
    ({"start_after": "90"}, {"startAfter": "90"}),
    ({"start_after": "PT1H"}, {"startAfter": "PT1H"}),
    ({"start_after": LATER}, {"startAfter": LATER}),
    ({"start_after": "2031-05-04T03:02:01Z"}, {"startAfter": "2031-05-04T03:02:01Z"}),
    ({"start_after": "2031-05-04T03:02:01"}, {"startAfter": "2031-05-04T03:02:01"}),
    ({"start_after": "2031-05-04T03:02:01+05:00"}, {"startAfter": "2031-05-04T03:02:01+05:00"}),
    ({"start_after": "2031-05-04"}, {"startAfter": "2031-05-04"}),
]


async def test_sent_jobs(twins: PgBoss, node: NodeBoss, pool: Pool) -> None:
    async with pool.acquire() as connection:
        # A moment without a zone is UTC's, wherever the server thinks it is.
        await connection.execute("SET timezone TO 'Asia/Tokyo'")
        for number, (ours, theirs) in enumerate(OPTIONS):
            await twins.send("ours", {"case": number}, connection=connection, **ours)
            await node.call("send", "theirs", {"case": number}, theirs)
    await assert_alike(pool, count=len(OPTIONS))


async def test_inserted_jobs(twins: PgBoss, node: NodeBoss, pool: Pool) -> None:
    await twins.insert("ours", [{"data": {"n": 1}, "priority": 2}, {"data": {"n": 2}, "start_after": 60}, {}])
    await node.call("insert", "theirs", [{"data": {"n": 1}, "priority": 2}, {"data": {"n": 2}, "startAfter": 60}, {}])
    await assert_alike(pool, count=3)


async def both_send(boss: PgBoss, node: NodeBoss, **theirs: Any) -> tuple[UUID, str]:
    return await sent(boss.send("ours", {"x": 1})), await node.call("send", "theirs", {"x": 1}, theirs)


async def test_claimed_touched_and_completed_jobs(twins: PgBoss, node: NodeBoss, pool: Pool) -> None:
    _, theirs = await both_send(twins, node)
    (delivery,) = await twins.fetch("ours")
    await node.call("fetch", "theirs")
    await assert_alike(pool)
    await twins.touch("ours", [delivery.fence])
    await node.call("touch", "theirs", theirs)
    await assert_alike(pool)
    await twins.complete("ours", [delivery.fence], [[1]])
    await node.call("complete", "theirs", theirs, [1])
    await assert_alike(pool)


async def test_failed_jobs_on_every_attempt(twins: PgBoss, node: NodeBoss, pool: Pool) -> None:
    ours = await sent(twins.send("ours", {"x": 1}, dead_letter="ours.dead", group={"id": "g"}, priority=3))
    options = {"deadLetter": "theirs.dead", "group": {"id": "g"}, "priority": 3}
    theirs = await node.call("send", "theirs", {"x": 1}, options)
    for _ in range(2):
        (delivery,) = await twins.fetch("ours")
        assert delivery.id == ours
        await node.call("fetch", "theirs")
        await twins.fail("ours", [delivery.fence], [{"message": "no"}])
        await node.call("fail", "theirs", theirs, {"message": "no"})
        await assert_alike(pool)
    await assert_alike(pool, suffix=".dead")

    await twins.retry("ours", [ours])
    await node.call("retry", "theirs", theirs)
    await assert_alike(pool)


async def test_waiting_jobs_that_are_failed(twins: PgBoss, node: NodeBoss, pool: Pool) -> None:
    ours, theirs = await both_send(twins, node)
    await twins.fail("ours", [ours], ["no"])
    await node.call("fail", "theirs", theirs, "no")
    await assert_alike(pool)


async def test_cancelled_and_resumed_jobs(twins: PgBoss, node: NodeBoss, pool: Pool) -> None:
    ours, theirs = await both_send(twins, node)
    await twins.fetch("ours")
    await node.call("fetch", "theirs")
    await twins.cancel("ours", [ours])
    await node.call("cancel", "theirs", theirs)
    await assert_alike(pool)
    await twins.resume("ours", [ours])
    await node.call("resume", "theirs", theirs)
    await assert_alike(pool)
    assert (await twins.fetch("ours"))[0].retry_count == 1
    await node.call("fetch", "theirs")
    await assert_alike(pool)


async def test_redriven_jobs(twins: PgBoss, node: NodeBoss, pool: Pool) -> None:
    ours = await sent(twins.send("ours", {"x": 1}, dead_letter="ours.dead", singleton_key="k", priority=3))
    options = {"deadLetter": "theirs.dead", "singletonKey": "k", "priority": 3}
    theirs = await node.call("send", "theirs", {"x": 1}, options)
    await twins.fail("ours", [ours], ["no"], is_final=True)
    await node.call("updateQueue", "theirs", {"retryLimit": 1})
    await pool.execute("UPDATE pgboss.job SET retry_limit = 0 WHERE id = $1", UUID(theirs))
    await node.call("fail", "theirs", theirs, "no")
    await pool.execute("UPDATE pgboss.job SET retry_limit = 1 WHERE id = $1", UUID(theirs))
    assert len((await twins.redrive("ours.dead")).moved) == 1
    assert await node.call("redrive", "theirs.dead") == 1
    await assert_alike(pool, count=2)
    await assert_alike(pool, count=0, suffix=".dead")


async def test_updated_and_upserted_jobs(twins: PgBoss, node: NodeBoss, pool: Pool) -> None:
    for data in ({"n": 1}, {"n": 2}):
        await twins.upsert("ours", data, singleton_key="k", priority=data["n"])
        await node.call("upsert", "theirs", data, {"singletonKey": "k", "priority": data["n"]})
        await assert_alike(pool)
    await twins.update("ours", {"n": 3}, singleton_key="k", start_after=600, expire_in_seconds=9)
    await node.call("update", "theirs", {"n": 3}, {"singletonKey": "k", "startAfter": 600, "expireInSeconds": 9})
    await assert_alike(pool)


async def test_deleted_queues(twins: PgBoss, node: NodeBoss, pool: Pool) -> None:
    for side in ("ours", "theirs"):
        await twins.create_queue(f"{side}.own", partition=True)
        await node.call("send", f"{side}.own", {})
        await node.call("send", side, {})
    for suffix in ("", ".own"):
        await twins.delete_queue(f"ours{suffix}")
        await node.call("deleteQueue", f"theirs{suffix}")
    assert [queue.name for queue in await twins.get_queues()] == ["ours.dead", "q", "theirs.dead"]
    assert await pool.fetchval("SELECT count(*) FROM pgboss.job") == 0
    assert await pool.fetchval("SELECT count(*) FROM pg_inherits WHERE inhparent = 'pgboss.job'::regclass") == 1


async def test_changed_queues(twins: PgBoss, node: NodeBoss) -> None:
    await twins.update_queue(
        "ours", retry_limit=9, retry_backoff=True, retry_delay_max=99, delete_after_seconds=0, dead_letter="q"
    )
    await node.call(
        "updateQueue",
        "theirs",
        {"retryLimit": 9, "retryBackoff": True, "retryDelayMax": 99, "deleteAfterSeconds": 0, "deadLetter": "q"},
    )
    ours, theirs = [await node.call("getQueue", side) for side in ("ours", "theirs")]
    own = {"name", "createdOn", "updatedOn"}
    assert {name: ours[name] for name in ours.keys() - own} == {name: theirs[name] for name in theirs.keys() - own}
