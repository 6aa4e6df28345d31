"""Scenarios 1 to 3: a schema made by either side serves both."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.compat.harness import SUPERVISING, NodeBoss, eventually, pool_of
from worker.db.pool import Pool
from worker.errors import SchemaUnsupported
from worker.queue import PgBoss

DRIFT = {
    "missingTables",
    "missing",
    "building",
    "invalid",
    "extraIndexes",
    "mismatched",
    "missingFunctions",
    "columnDrift",
    "constraintDrift",
    "enumDrift",
}


async def drift(node: NodeBoss) -> dict[str, Any]:
    """What differs from pg-boss's own schema, function bodies aside: those are ours."""
    report = await node.call("detectSchemaDrift")
    assert report.keys() == DRIFT | {"ok", "mismatchedFunctions"}
    return {name: report[name] for name in DRIFT if report[name]}


async def test_01_python_creates_the_schema_and_node_starts_without_migrating(empty_dsn: str, packages: Path) -> None:
    async with pool_of(empty_dsn) as pool:
        await PgBoss.install(pool)
        background = {**SUPERVISING, "schedule": True, "cronMonitorIntervalSeconds": 1, "cronWorkerIntervalSeconds": 1}
        async with NodeBoss(empty_dsn, packages=packages, migrate=False, **background) as node:
            assert await node.call("schemaVersion") == 46
            assert await drift(node) == {}
            await node.call("createQueue", "q", {"partition": True, "policy": "stately"})
            assert await drift(node) == {}
            await node.call("schedule", "q", "* * * * *", {"x": 1})

            async def passed() -> bool:
                supervised = "SELECT bool_and(monitor_on IS NOT NULL AND maintain_on IS NOT NULL) FROM pgboss.queue"
                return bool(
                    await pool.fetchval(supervised)
                    and await pool.fetchval("SELECT flow_on IS NOT NULL AND cron_on IS NOT NULL FROM pgboss.version")
                    and await pool.fetchval("SELECT count(*) FROM pgboss.job WHERE name = 'q'")
                )

            await eventually(passed, seconds=15, what="every background pass, and the scheduled job")
            assert await node.call("events") == []
        assert await pool.fetchval("SELECT array_agg(version) FROM pgboss.version") == [46]
        assert await pool.fetchval("SELECT count(*) FROM pgboss.bam") == 0


async def test_schema_of_the_migrate_command_shows_no_drift_to_node(empty_dsn: str, packages: Path) -> None:
    subprocess.run([sys.executable, "-m", "worker", "migrate"], env={"DATABASE_URL": empty_dsn}, check=True, timeout=50)
    async with NodeBoss(empty_dsn, packages=packages, migrate=False) as node:
        assert await drift(node) == {}


async def test_02_node_creates_the_schema_and_python_attaches(empty_dsn: str, packages: Path) -> None:
    async with NodeBoss(empty_dsn, packages=packages) as node, pool_of(empty_dsn) as pool:
        await node.call("createQueue", "shared", {"retryLimit": 7})
        await node.call("createQueue", "own", {"partition": True})
        boss = await PgBoss.attach(pool)
        assert boss.version == 46
        queues = {queue.name: queue for queue in await boss.get_queues()}
        assert queues["shared"].retry_limit == 7
        assert [queues[name].table_name for name in ("shared", "own")] == ["job_common", queues["own"].table_name]
        assert queues["own"].partition
        assert (await PgBoss.install(pool)).version == 46


async def test_node_and_python_that_create_the_schema_at_once_make_one(empty_dsn: str, packages: Path) -> None:
    async with pool_of(empty_dsn) as pool:
        node = NodeBoss(empty_dsn, packages=packages)
        await node.spawn()
        try:
            # Into the middle of Node's way: it takes a few milliseconds from start() to its first statement.
            started = asyncio.create_task(node.call("start", node.options))
            bosses = await asyncio.gather(*(PgBoss.install(pool) for _ in range(3)))
            await started
            assert {boss.version for boss in bosses} == {await node.call("schemaVersion")}
            await bosses[0].create_queue("q")
            assert await node.call("send", "q", {}) is not None
        finally:
            await node.kill()
        assert await pool.fetchval("SELECT array_agg(version) FROM pgboss.version") == [46]


async def test_03_python_refuses_too_old_too_new_and_absent_schemas(empty_dsn: str, packages: Path) -> None:
    async with pool_of(empty_dsn) as pool:
        absent = await _refusal(pool)
        assert await pool.fetchval("SELECT to_regnamespace('pgboss')") is None
        async with NodeBoss(empty_dsn, packages=packages):
            await pool.execute("UPDATE pgboss.version SET version = 24")
            old = await _refusal(pool)
            await pool.execute("UPDATE pgboss.version SET version = 999")
            new = await _refusal(pool)
            assert await pool.fetchval("SELECT array_agg(version) FROM pgboss.version") == [999]
    assert "no pg-boss schema" in absent
    assert "upgrade pg-boss" in old
    assert "upgrade clipboss" in new


async def _refusal(pool: Pool) -> str:
    with pytest.raises(SchemaUnsupported) as refused:
        await PgBoss.attach(pool)
    return str(refused.value)
