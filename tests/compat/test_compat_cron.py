"""Scenarios 38 to 40: schedules of either side, run by either side or both, fire once a minute."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.compat.conftest import StartNode
from tests.compat.harness import NodeBoss, eventually
from worker.db.pool import Pool
from worker.queue import PgBoss

RUNNING_CRON = {"schedule": True, "cronMonitorIntervalSeconds": 1, "cronWorkerIntervalSeconds": 1}


class PythonCron:
    """Runs the schedules twice a second, so that no minute passes before it has looked."""

    def __init__(self, boss: PgBoss, pool: Pool) -> None:
        self._boss = boss
        self._pool = pool
        self.passes = 0

    async def __aenter__(self) -> "PythonCron":
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._running.cancel()
        await asyncio.wait([self._running])
        if not self._running.cancelled():
            self._running.result()

    async def _run(self) -> None:
        while True:
            # The claim spares work; what keeps a minute from firing twice is its slot. So take it away.
            await self._pool.execute("UPDATE pgboss.version SET cron_on = NULL")
            assert (await self._boss.run_cron_once()).skipped == ()
            await self._boss.work_cron_once()
            self.passes += 1
            await asyncio.sleep(0.5)


async def fired(pool: Pool, minutes: int) -> list[datetime] | None:
    """The slots of the schedule `q`, in order, once there are as many and each has been forwarded."""
    rows = await pool.fetch("SELECT * FROM pgboss.job WHERE name = '__pgboss__send-it' ORDER BY singleton_on")
    if len(rows) < minutes or {row["state"] for row in rows} != {"completed"}:
        return None
    assert {row["singleton_key"] for row in rows} == {"q__"}
    assert all(row["data"]["slot"] == f"{row['singleton_on']:%Y-%m-%d %H:%M:%S}" for row in rows)
    return [row["singleton_on"] for row in rows]


async def assert_one_job_a_minute(pool: Pool, started: datetime, slots: list[datetime]) -> None:
    first = started.replace(second=0, microsecond=0, tzinfo=None)
    assert slots == [first + timedelta(minutes=number) for number in range(len(slots))]
    jobs = await pool.fetch("SELECT id, data FROM pgboss.job WHERE name = 'q' ORDER BY created_on DESC")
    assert [job["data"] for job in jobs] == [{"x": 1}] * len(slots)
    assert await pool.fetchval("SELECT last_job_id FROM pgboss.schedule") == jobs[0]["id"]


@pytest.mark.timeout(120)
async def test_38_python_alone_runs_the_schedule_of_node(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    await node.call("schedule", "q", "* * * * *", {"x": 1})
    started: datetime = await pool.fetchval("SELECT now()")
    async with PythonCron(boss, pool):
        slots = await eventually(lambda: fired(pool, 2), seconds=75, what="this minute and the next")
    await assert_one_job_a_minute(pool, started, slots)


@pytest.mark.timeout(240)
async def test_39_python_and_node_together_fire_once_a_minute(boss: PgBoss, start_node: StartNode, pool: Pool) -> None:
    node = await start_node(**RUNNING_CRON)
    await node.call("schedule", "q", "* * * * *", {"x": 1})
    started: datetime = await pool.fetchval("SELECT now()")
    begun = time.monotonic()
    async with PythonCron(boss, pool) as python:
        slots = await eventually(lambda: fired(pool, 3), seconds=150, what="this minute and the next two")
        # A second job of the last minute would have come by now: both look twice a second.
        looked = python.passes
        await eventually(lambda: _more_than(python, looked + 4))
    assert await fired(pool, 3) == slots
    await assert_one_job_a_minute(pool, started, slots)
    assert python.passes > time.monotonic() - begun - 30
    assert await node.call("events") == []


async def _more_than(python: PythonCron, passes: int) -> bool:
    return python.passes > passes


async def test_40_node_runs_the_schedule_of_python(boss: PgBoss, start_node: StartNode, pool: Pool) -> None:
    there = datetime.now(ZoneInfo("America/New_York"))
    cron = f"{there.minute} {there.hour} * * *"
    await boss.schedule("q", cron, {"x": 1}, tz="America/New_York", key="k_1", priority=5, retry_limit=7)
    node = await start_node(**RUNNING_CRON)

    async def sent_by_node() -> list[Any]:
        return await pool.fetch("SELECT * FROM pgboss.job WHERE name = 'q'")

    (job,) = await eventually(sent_by_node)
    assert (job["data"], job["priority"], job["retry_limit"]) == ({"x": 1}, 5, 7)
    (filed,) = await pool.fetch("SELECT * FROM pgboss.job WHERE name = '__pgboss__send-it'")
    assert filed["singleton_key"] == "q__k_1"
    assert filed["singleton_on"] == there.astimezone(UTC).replace(second=0, microsecond=0, tzinfo=None)
    (schedule,) = await node.call("getSchedules", "q")
    assert (schedule["kind"], schedule["cron"], schedule["timezone"]) == ("cron", cron, "America/New_York")
    assert await node.call("events") == []


async def test_schedules_written_by_both_sides_are_alike(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    for queue in ("ours", "theirs"):
        await boss.create_queue(queue)
    options = {"tz": "Europe/Berlin", "key": "k", "missed": "once", "priority": 3, "group": {"id": "g", "tier": "t"}}
    await boss.schedule(
        "ours",
        "0 3 * * *",
        {"x": 1},
        tz="Europe/Berlin",
        key="k",
        missed="once",
        priority=3,
        group={"id": "g", "tier": "t"},
    )
    await node.call("schedule", "theirs", "0 3 * * *", {"x": 1}, options)
    await boss.schedule("ours", "5 4 * * *")
    await node.call("schedule", "theirs", "5 4 * * *")
    rows = [
        await pool.fetch(
            "SELECT key, kind, cron, timezone, data, options - 'tz' AS options, last_job_id "
            "FROM pgboss.schedule WHERE name = $1 ORDER BY key",
            side,
        )
        for side in ("ours", "theirs")
    ]
    assert [dict(row) for row in rows[0]] == [dict(row) for row in rows[1]]

    await boss.unschedule("theirs", "k")
    await node.call("unschedule", "ours")
    assert [(row["name"], row["key"]) for row in await node.call("getSchedules")] == [("ours", "k"), ("theirs", "")]
