"""Fetching from a long queue walks the fetch index, whatever kind of plan PostgreSQL chooses."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from worker.db.pool import Pool
from worker.db.sql import load_queries
from worker.queue import PgBoss
from worker.queue.options import Policy

ROWS = 50_000
#: a batch of ten and what had to be passed over to find it
FEW = 200


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", []):
        yield from nodes(below)


async def explain(pool: Pool, mode: str, *, groups: str = "NULL") -> list[dict[str, Any]]:
    """The parts of the plan that were run, with what they really did."""
    statement = load_queries("worker.queue", queue_schema="pgboss", queue_version=46)["fetch"]
    async with pool.acquire() as connection:
        await connection.execute(f"SET plan_cache_mode = {mode}")
        await connection.execute(f"PREPARE fetching (text, int, bool, int, int, int, jsonb, text[]) AS {statement}")
        transaction = connection.transaction()
        await transaction.start()
        call = f"EXECUTE fetching ('long', 10, false, NULL, NULL, {groups}, '{{}}', '{{}}')"
        text = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {call}")
        await transaction.rollback()
        await connection.execute("DEALLOCATE fetching")
        await connection.execute("RESET plan_cache_mode")
    return [node for node in nodes(json.loads(text)[0]["Plan"]) if node.get("Actual Loops", 0) > 0]


def rows_read(node: dict[str, Any]) -> float:
    seen = node["Actual Rows"] + node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return float(seen * node["Actual Loops"])


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("is_analyzed", [True, False], ids=["analyzed", "stale"])
@pytest.mark.parametrize("policy", ["standard", "singleton", "stately", "key_strict_fifo"])
async def test_fetch_reads_a_handful_of_rows(
    queue: PgBoss, pool: Pool, policy: Policy, is_analyzed: bool, mode: str
) -> None:
    await queue.create_queue("long", policy=policy)
    await pool.execute(
        "INSERT INTO pgboss.job (name, policy, singleton_key, state, group_id, created_on) "
        "SELECT 'long', $1, 'key' || n, CASE WHEN n % 4 = 0 THEN 'completed' ELSE 'created' END::pgboss.job_state, "
        "       'group' || n % 100, now() + n * interval '1 ms' FROM generate_series(1, $2::int) AS n",
        policy,
        ROWS,
        timeout=60,
    )
    if is_analyzed:
        await pool.execute("ANALYZE pgboss.job_common")
    ran = await explain(pool, mode, groups="3")
    assert "job_common_i11" in {node.get("Index Name") for node in ran}
    assert "Seq Scan" not in {node["Node Type"] for node in ran}
    assert max(rows_read(node) for node in ran) < FEW
    assert len(await queue.fetch("long", 10, group_concurrency=3)) == 10
