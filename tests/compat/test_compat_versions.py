"""Scenarios 47 and 48: the oldest pg-boss that is supported, and its migration under a running client."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from tests.compat.harness import SUPERVISING, NodeBoss, eventually, job_in_state, job_row, pool_of, sent
from worker.db.pool import Pool
from worker.queue import PgBoss


@dataclass(frozen=True)
class OldInstall:
    """A schema that pg-boss 12.27.0 made and supervises, and a Python client of it."""

    dsn: str
    node: NodeBoss
    boss: PgBoss
    pool: Pool


@pytest.fixture
async def old(empty_dsn: str, older_packages: Path) -> AsyncIterator[OldInstall]:
    async with NodeBoss(empty_dsn, packages=older_packages, **SUPERVISING) as node, pool_of(empty_dsn) as pool:
        boss = await PgBoss.attach(pool)
        assert boss.version == 37
        await boss.create_queue("dead")
        await boss.create_queue("q", retry_limit=1, dead_letter="dead")
        yield OldInstall(empty_dsn, node, boss, pool)


async def test_47_older_node_sends_python_works(old: OldInstall) -> None:
    job_id = await old.node.call("send", "q", {"text": "世界", "ratio": 0.1})
    (delivery,) = await old.boss.fetch("q")
    assert delivery.data == {"text": "世界", "ratio": 0.1}
    await old.boss.complete("q", [delivery.fence], [{"x": 1}])
    (job,) = await old.node.call("findJobs", "q", {"id": job_id})
    assert (job["state"], job["output"]) == ("completed", {"x": 1})


async def test_47_python_sends_older_node_fetches(old: OldInstall) -> None:
    job_id = await sent(old.boss.send("q", {"x": 1}, priority=7))
    (job,) = await old.node.call("fetch", "q", {"includeMetadata": True})
    assert (job["id"], job["data"], job["priority"], job["policy"]) == (str(job_id), {"x": 1}, 7, "standard")
    await old.node.call("complete", "q", job["id"])
    assert (await job_row(old.pool, job_id))["state"] == "completed"


async def test_47_python_fails_and_buries_on_an_older_schema(old: OldInstall) -> None:
    job_id = await old.node.call("send", "q", {"x": 1})
    (delivery,) = await old.boss.fetch("q")
    assert await old.boss.fail("q", [delivery.fence], [{"message": "no"}]) == {delivery.id: "retry"}
    assert (await job_row(old.pool, job_id))["output"] == {"message": "no"}
    (delivery,) = await old.boss.fetch("q")
    assert await old.boss.fail("q", [delivery.fence], [{"message": "no"}]) == {delivery.id: "failed"}
    (copy,) = await old.node.call("fetch", "dead", {"includeMetadata": True})
    assert (copy["data"], copy["output"], copy["sourceId"]) == ({"x": 1}, {"message": "no"}, job_id)
    assert "source_output" not in await job_row(old.pool, job_id)


async def test_47_older_node_takes_an_expired_job_from_python(old: OldInstall) -> None:
    job_id = await old.node.call("send", "q", {}, {"expireInSeconds": 1})
    (delivery,) = await old.boss.fetch("q")
    row = await job_in_state(old.pool, job_id, "retry")
    assert row["output"] == {"value": {"message": "job timed out"}}
    assert await old.boss.complete("q", [delivery.fence]) == set()


async def test_older_node_works_on_a_schema_of_python(dsn: str, older_packages: Path, boss: PgBoss, pool: Pool) -> None:
    async with NodeBoss(dsn, packages=older_packages, **SUPERVISING) as node:
        for number in range(2):
            await node.call("send", "q", {"from": "node", "n": number})
            await boss.send("q", {"from": "python", "n": number})
        (job,) = await node.call("fetch", "q")
        await node.call("complete", "q", job["id"])
        deliveries = await boss.fetch("q", 5)
        assert len(await boss.complete("q", [delivery.fence for delivery in deliveries])) == 3
        assert await node.call("events") == []
    assert await pool.fetchval("SELECT version FROM pgboss.version") == 46


async def test_48_node_migrates_under_a_running_python_and_nothing_is_lost(old: OldInstall, packages: Path) -> None:
    await old.boss.create_queue("own", partition=True)
    await old.node.kill()
    load = Load(old.boss)
    # The old one has just stamped the claim on background builds; by default the new one would wait a minute.
    builds = {"bamIntervalSeconds": 1, "__test__bypass_bam_interval_check": True}
    async with load, NodeBoss(old.dsn, packages=packages, **SUPERVISING, **builds) as node:
        assert await node.call("schemaVersion") == 46

        async def built() -> bool:
            states = await old.pool.fetch("SELECT DISTINCT status FROM pgboss.bam")
            return [row["status"] for row in states] == ["completed"]

        await eventually(built, seconds=30, what="every index built in the background")
        await load.goes_on()
        assert (await node.call("detectSchemaDrift"))["ok"]
        assert [event for event in await node.call("events") if event["kind"] == "error"] == []
    rows = await old.pool.fetch("SELECT id, state::text, retry_count FROM pgboss.job")
    assert {row["id"]: tuple(row)[1:] for row in rows} == dict.fromkeys(load.sent, ("completed", 0))
    assert load.completed == load.sent

    again = await PgBoss.attach(old.pool)
    assert again.version == 46
    job_id = await again.send("q", {})
    (delivery,) = await again.fetch("q")
    assert await again.fail("q", [delivery.fence], [{"message": "no"}], is_final=True) == {job_id: "failed"}
    (copy,) = await again.fetch("dead")
    assert (await job_row(old.pool, copy.id))["source_root_id"] == job_id


class Load:
    """A Python client that sends and works all the time; at the end of the block it works off what is left."""

    def __init__(self, boss: PgBoss) -> None:
        self._boss = boss
        self._stopping = asyncio.Event()
        self.sent: set[UUID] = set()
        self.completed: set[UUID] = set()

    async def __aenter__(self) -> None:
        self._tasks = [asyncio.create_task(self._send()), asyncio.create_task(self._work())]
        await self.goes_on()

    async def __aexit__(self, *_: object) -> None:
        self._stopping.set()
        await asyncio.gather(*self._tasks)

    async def goes_on(self) -> None:
        """Returns when more was sent and completed since."""
        goal = len(self.completed) + 50

        async def reached() -> bool:
            for task in self._tasks:
                if task.done():
                    task.result()
            return len(self.completed) >= goal

        await eventually(reached, what=f"{goal} jobs completed")

    async def _send(self) -> None:
        while not self._stopping.is_set():
            for queue in ("q", "own"):
                self.sent.add(await sent(self._boss.send(queue, {"n": len(self.sent)})))
            await asyncio.sleep(0.002)

    async def _work(self) -> None:
        while not self._stopping.is_set() or self.completed < self.sent:
            for queue in ("q", "own"):
                deliveries = await self._boss.fetch(queue, 10)
                self.completed |= await self._boss.complete(queue, [delivery.fence for delivery in deliveries])
