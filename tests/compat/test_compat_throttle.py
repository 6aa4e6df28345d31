"""Scenarios 32 and 33, and slots and waits over random numbers: both sides do the same arithmetic."""

import asyncio
import itertools
import math
import random
from datetime import UTC, datetime, timedelta

import pytest

from tests.compat.harness import NodeBoss, job_row, sent
from worker.db.pool import Pool
from worker.queue import PgBoss


async def far_from_the_next_slot(pool: Pool, width: int) -> None:
    """So that everything that follows falls into one slot."""
    left = await pool.fetchval("SELECT $1 - mod(extract(epoch FROM clock_timestamp()), $1)", width)
    if left < 5:
        await asyncio.sleep(float(left) + 0.01)


async def test_32_throttle_of_node_refuses_python(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    await far_from_the_next_slot(pool, 3600)
    first = await node.call("send", "q", {}, {"singletonSeconds": 3600})
    assert await boss.send("q", {}, singleton_seconds=3600) is None
    assert await boss.send("q", {}, singleton_seconds=3600, singleton_key="other") is not None
    await node.call("cancel", "q", first)
    second = await sent(boss.send("q", {}, singleton_seconds=3600))
    assert await node.call("send", "q", {}, {"singletonSeconds": 3600}) is None
    slots = [(await job_row(pool, job))["singleton_on"] for job in (first, second)]
    assert slots[0] == slots[1]
    assert slots[0] == datetime.now(UTC).replace(minute=0, second=0, microsecond=0, tzinfo=None)


async def test_33_debounce_fills_this_slot_and_the_next(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    await far_from_the_next_slot(pool, 3600)
    first = await job_row(pool, await sent(boss.send("q", {}, singleton_seconds=3600, singleton_next_slot=True)))
    second = await job_row(pool, await sent(boss.send("q", {}, singleton_seconds=3600, singleton_next_slot=True)))
    assert await node.call("sendDebounced", "q", {}, None, 3600) is None
    assert await boss.send("q", {}, singleton_seconds=3600, singleton_next_slot=True) is None
    assert second["singleton_on"] - first["singleton_on"] == timedelta(hours=1)
    next_slot = second["singleton_on"].replace(tzinfo=UTC)
    assert next_slot < second["start_after"] <= next_slot + timedelta(seconds=2)
    assert first["start_after"] == first["created_on"]


async def test_debounced_jobs_of_both_sides_are_alike(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    for width in [10, 60, *random.sample(range(61, 10_000_000), 10)]:
        await far_from_the_next_slot(pool, width)
        theirs = [await node.call("sendDebounced", "q", {}, None, width, f"n{width}") for _ in range(3)]
        key = f"p{width}"
        ours = [
            await boss.send("q", {}, singleton_seconds=width, singleton_next_slot=True, singleton_key=key)
            for _ in range(3)
        ]
        assert [job is None for job in ours] == [job is None for job in theirs] == [False, False, True]
        for mine, yours in zip(ours[:2], theirs[:2], strict=True):
            first, second = await job_row(pool, mine), await job_row(pool, yours)
            assert first["singleton_on"] == second["singleton_on"]
            # Both wait whole seconds, counted from moments that are this far apart.
            apart = abs(first["created_on"] - second["created_on"])
            assert abs(first["start_after"] - second["start_after"]) <= apart + timedelta(seconds=1), width


async def test_throttle_slots_equal_those_of_node_for_any_width(boss: PgBoss, node: NodeBoss, pool: Pool) -> None:
    widths = [1, 7, 60, 3600, 86400, *random.sample(range(2, 10_000_000), 60)]
    for width in widths:
        await boss.send("q", {"width": width}, singleton_seconds=width, singleton_key=f"p{width}")
    options = {width: {"singletonSeconds": width, "singletonKey": f"n{width}"} for width in widths}
    await node.call("all", [["send", "q", {"width": width}, options[width]] for width in widths])
    rows = await pool.fetch("SELECT (data->>'width')::int AS width, singleton_on, created_on FROM pgboss.job")
    assert len(rows) == 2 * len(set(widths))
    slots: dict[tuple[int, int], set[datetime]] = {}
    for row in rows:
        number = int(row["created_on"].timestamp() // row["width"])
        slots.setdefault((row["width"], number), set()).add(row["singleton_on"])
    for (width, number), found in slots.items():
        assert found == {datetime.fromtimestamp(width * number, UTC).replace(tzinfo=None)}


@pytest.mark.parametrize("cap", [None, 100], ids=["without cap", "with cap"])
async def test_backoff_of_both_sides_fills_the_same_windows(
    boss: PgBoss, node: NodeBoss, pool: Pool, cap: int | None
) -> None:
    delays, failures, each = (0, 1, 3, 60), (0, 1, 2, 5, 15, 30), 10
    for side in ("ours", "theirs"):
        await boss.create_queue(side)
        for delay, failed in itertools.product(delays, failures):
            options = {"retryLimit": 99, "retryBackoff": True, "retryDelay": delay, "retryDelayMax": cap}
            job = {
                "data": {"failures": failed},
                **{name: value for name, value in options.items() if value is not None},
            }
            await node.call("insert", side, [job] * each)
    await pool.execute("UPDATE pgboss.job SET retry_count = (data->>'failures')::int")

    started = await pool.fetchval("SELECT now()")
    deliveries = await boss.fetch("ours", 1000)
    await boss.fail("ours", [delivery.fence for delivery in deliveries])
    jobs = await node.call("fetch", "theirs", {"batchSize": 1000})
    await node.call("fail", "theirs", [job["id"] for job in jobs])
    slack = (await pool.fetchval("SELECT now()") - started).total_seconds()

    rows = await pool.fetch("SELECT name, retry_delay, retry_count, start_after FROM pgboss.job WHERE state = 'retry'")
    assert len(rows) == 2 * len(delays) * len(failures) * each
    for row in rows:
        least = max(row["retry_delay"], 1) * 2 ** min(15, row["retry_count"])
        low, high = (min(cap or math.inf, bound) for bound in (least, 2 * least))
        assert low <= (row["start_after"] - started).total_seconds() <= high + slack, dict(row)
