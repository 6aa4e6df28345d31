"""Every schema from 37 to 46, made by pg-boss's own rollback plans: the whole client works on each."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.compat.harness import NodeBoss, job_row, pool_of, sent
from worker.db.pool import Pool
from worker.errors import SchemaUnsupported
from worker.queue import PgBoss
from worker.queue.flows import FlowJob
from worker.queue.names import NEWEST_SCHEMA, OLDEST_SCHEMA


@pytest.fixture(params=range(OLDEST_SCHEMA, NEWEST_SCHEMA + 1))
async def any_boss(request: pytest.FixtureRequest, empty_dsn: str, packages: Path) -> AsyncIterator[PgBoss]:
    """A client of a schema of each version."""
    versions = range(NEWEST_SCHEMA, request.param, -1)
    async with pool_of(empty_dsn) as pool:
        async with NodeBoss(empty_dsn, packages=packages) as node:
            plans = await node.call("all", [["package", "getRollbackPlans", "pgboss", version] for version in versions])
        for plan in plans:
            await pool.execute(plan)
        boss = await PgBoss.attach(pool)
        assert boss.version == request.param
        await boss.create_queue("dead")
        await boss.create_queue("q", retry_limit=1, dead_letter="dead", notify=True, heartbeat_seconds=10)
        yield boss


@pytest.fixture
async def pool(empty_dsn: str) -> AsyncIterator[Pool]:
    async with pool_of(empty_dsn) as pool:
        yield pool


async def test_the_whole_client_works_on_every_schema(any_boss: PgBoss, pool: Pool) -> None:
    boss = any_boss
    await _send_and_settle(boss)
    await _bury_and_revive(boss, pool)
    await _change_and_delete(boss)
    await _policies(boss)
    await _run_in_the_background(boss, pool)


async def _send_and_settle(boss: PgBoss) -> None:
    ids = await boss.insert("q", [{"data": {"n": number}, "group": {"id": "g"}} for number in range(4)])
    assert await boss.send_throttled("q", {}, 10_000_000, "k") is not None
    assert await boss.send_throttled("q", {}, 10_000_000, "k") is None
    assert await boss.send_debounced("q", {}, 10_000_000, "k") is not None
    deliveries = await boss.fetch("q", 5)
    assert {delivery.id for delivery in deliveries[:4]} == set(ids)
    fences = [delivery.fence for delivery in deliveries]
    assert await boss.touch("q", fences) == {delivery.id for delivery in deliveries}
    assert await boss.restore("q", fences[:1]) == {deliveries[0].id}
    assert await boss.complete("q", fences[1:], [1, "s", [1], {"x": 1}]) == {fence.id for fence in fences[1:]}
    assert await boss.cancel("q", [fences[0].id]) == {fences[0].id}
    assert await boss.resume("q", [fences[0].id]) == {fences[0].id}
    stats = await boss.get_queue_stats("q")
    assert (stats.ready, stats.deferred, stats.completed, stats.total) == (1, 1, 4, 6)
    assert await boss.delete_all_jobs("q") == 6


async def _bury_and_revive(boss: PgBoss, pool: Pool) -> None:
    job_id = await sent(boss.send("q", {"x": 1}))
    (delivery,) = await boss.fetch("q")
    assert await boss.fail("q", [delivery.fence], ["no"]) == {job_id: "retry"}
    (delivery,) = await boss.fetch("q")
    assert await boss.dead_letter("q", [delivery.fence], ["no"]) == {job_id}
    (copy,) = await boss.find_jobs("dead")
    assert (copy.data, copy.source_id, copy.source_name) == ({"x": 1}, job_id, "q")
    root, failure = (copy.source_root_id, copy.source_output) if boss.version >= 43 else (job_id, copy.output)
    assert (root, failure) == (job_id, {"value": "no"})
    (again,) = (await boss.redrive("dead")).moved
    assert (await job_row(pool, again))["name"] == "q"
    assert await boss.retry("q", [job_id]) == {job_id}
    assert await boss.delete_jobs("q", [job_id, again]) == {job_id, again}


async def _change_and_delete(boss: PgBoss) -> None:
    job_id = await sent(boss.send("q", {"n": 1}, singleton_key="k"))
    assert await boss.update("q", {"n": 2}, singleton_key="k", priority=3, start_after=60) == [job_id]
    job = await boss.get_job_by_id("q", job_id)
    assert job is not None
    assert (job.data, job.priority) == ({"n": 2}, 3)
    if boss.version >= 45:
        assert (await boss.upsert("q", {"n": 3}, singleton_key="new")).is_inserted
        assert not (await boss.upsert("q", {"n": 4}, singleton_key="new")).is_inserted
    else:
        with pytest.raises(SchemaUnsupported, match="upsert"):
            await boss.upsert("q", {"n": 3}, singleton_key="new")
    assert await boss.delete_queued_jobs("q") == (2 if boss.version >= 45 else 1)
    await boss.create_queue("own", partition=True, policy="stately")
    assert (await boss.update_queue("own", retry_limit=9)).retry_limit == 9
    await boss.send("own", {})
    await boss.delete_queue("own")
    assert await boss.get_queue("own") is None


async def _policies(boss: PgBoss) -> None:
    await boss.create_queue("fifo", policy="key_strict_fifo", retry_limit=0)
    for key in "aab":
        await boss.send("fifo", {}, singleton_key=key)
    first, second = await boss.fetch("fifo", 9)
    await boss.fail("fifo", [first.fence])
    await boss.complete("fifo", [second.fence])
    assert await boss.get_blocked_keys("fifo") == ["a"]
    assert await boss.fetch("fifo", 9, group_concurrency={"default": 2, "tiers": {"t": 1}}) == []


async def _run_in_the_background(boss: PgBoss, pool: Pool) -> None:
    await boss.subscribe("event", "q")
    assert list(await boss.publish("event", {"x": 1})) == ["q"]
    await boss.schedule("q", "* * * * *", {"scheduled": True}, key="k")
    assert (await boss.run_cron_once()).filed == 1
    assert len((await boss.work_cron_once()).sent) == 1
    assert [schedule.key for schedule in await boss.get_schedules("q")] == ["k"]
    assert await boss.delete_queued_jobs("q") == 2

    ids = await boss.flow([FlowJob("A", "q"), FlowJob("B", "q", depends_on=["A"])])
    assert ids is not None
    (parent,) = await boss.fetch("q", 9)
    await boss.complete("q", [parent.fence])
    assert (await boss.supervise_once()).unblocked == 1
    (child,) = await boss.fetch("q", 9)
    assert child.id == ids["B"]

    await pool.execute("UPDATE pgboss.job SET heartbeat_on = now() - interval '11 s' WHERE state = 'active'")
    await pool.execute("UPDATE pgboss.job SET completed_on = now() - interval '8 days' WHERE id = $1", ids["A"])
    supervised = await boss.supervise_once()
    assert (supervised.expired.fell_silent, supervised.deleted) == (1, 1)
    assert (await job_row(pool, child.id))["output"] == {"value": {"message": "job heartbeat timeout"}}
