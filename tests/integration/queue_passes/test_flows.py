"""Jobs that wait for other jobs."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from worker.db.pool import Pool
from worker.db.sql import load_queries
from worker.errors import ConfigError, QueueMissing
from worker.queue import PgBoss
from worker.queue.flows import FlowJob

RowOf = Callable[[UUID | None], Awaitable[asyncpg.Record]]
CompleteOne = Callable[[str], Awaitable[Any]]


@pytest.fixture(autouse=True)
async def _queues(queue: PgBoss) -> None:
    for name in ("a", "b", "c"):
        await queue.create_queue(name)


async def let_time_pass(pool: Pool) -> None:
    await pool.execute("UPDATE pgboss.version SET flow_on = flow_on - interval '5 seconds'")


async def test_child_waits_for_its_parent(queue: PgBoss, pool: Pool, row_of: RowOf, complete_one: CompleteOne) -> None:
    ids = await queue.flow([FlowJob("child", "b", {"n": 2}, ["parent"]), FlowJob("parent", "a", {"n": 1})])
    assert ids is not None
    child, parent = await row_of(ids["child"]), await row_of(ids["parent"])
    assert (child["blocked"], child["pending_dependencies"], child["blocking"]) == (True, 1, False)
    assert (parent["blocked"], parent["pending_dependencies"], parent["blocking"]) == (False, 0, True)
    links = await pool.fetch("SELECT * FROM pgboss.job_dependency")
    assert [tuple(link) for link in links] == [("b", ids["child"], "a", ids["parent"])]

    assert await queue.fetch("b") == []
    await complete_one("a")
    assert await queue.fetch("b") == [], "completing releases nobody; the resolver does"
    assert await queue.resolve_flows() == 1
    child, parent = await row_of(ids["child"]), await row_of(ids["parent"])
    assert (child["blocked"], child["pending_dependencies"], parent["blocking"]) == (False, 0, False)
    assert [delivery.data for delivery in await queue.fetch("b")] == [{"n": 2}]


async def test_child_of_two_waits_for_both(queue: PgBoss, pool: Pool, row_of: RowOf, complete_one: CompleteOne) -> None:
    ids = await queue.flow([FlowJob("x", "a"), FlowJob("y", "b"), FlowJob("z", "c", depends_on=["x", "y", "x"])])
    assert ids is not None
    assert (await row_of(ids["z"]))["pending_dependencies"] == 2
    await complete_one("a")
    assert await queue.resolve_flows() == 0
    assert (await row_of(ids["z"]))["pending_dependencies"] == 1
    await let_time_pass(pool)
    await complete_one("b")
    assert await queue.resolve_flows() == 1
    assert await complete_one("c") == ids["z"]


async def test_chain_is_released_step_by_step(queue: PgBoss, pool: Pool, complete_one: CompleteOne) -> None:
    ids = await queue.flow(
        [FlowJob("3", "c", depends_on=["2"]), FlowJob("2", "b", depends_on=["1"]), FlowJob("1", "a")]
    )
    assert ids is not None
    for name, ref in (("a", "1"), ("b", "2"), ("c", "3")):
        assert await complete_one(name) == ids[ref]
        await queue.resolve_flows()
        await let_time_pass(pool)


async def test_failed_parent_keeps_its_child_until_it_completes(queue: PgBoss, pool: Pool, row_of: RowOf) -> None:
    ids = await queue.flow([FlowJob("p", "a", options={"retry_limit": 1}), FlowJob("c", "b", depends_on=["p"])])
    assert ids is not None
    (first,) = await queue.fetch("a")
    await queue.fail("a", [first.fence])
    assert await queue.resolve_flows() == 0
    await let_time_pass(pool)
    (second,) = await queue.fetch("a")
    await queue.complete("a", [second.fence])
    assert await queue.resolve_flows() == 1


async def test_start_after_of_a_released_child_still_counts(
    queue: PgBoss, row_of: RowOf, complete_one: CompleteOne
) -> None:
    ids = await queue.flow([FlowJob("p", "a"), FlowJob("c", "b", depends_on=["p"], options={"start_after": 3600})])
    assert ids is not None
    before = (await row_of(ids["c"]))["start_after"]
    await complete_one("a")
    assert await queue.resolve_flows() == 1
    assert (await row_of(ids["c"]))["start_after"] == before
    assert await queue.fetch("b") == []


async def test_refused_job_takes_the_whole_flow_back(queue: PgBoss, pool: Pool) -> None:
    await queue.create_queue("short", policy="short")
    await queue.send("short")
    async with pool.acquire() as connection, connection.transaction():
        kept = await queue.send("c", connection=connection)
        assert await queue.flow([FlowJob("p", "a"), FlowJob("s", "short")], connection=connection) is None
    assert await pool.fetchval("SELECT array_agg(id) FROM pgboss.job WHERE name <> 'short'") == [kept]
    assert await pool.fetchval("SELECT count(*) FROM pgboss.job_dependency") == 0


async def test_unknown_queue_takes_the_whole_flow_back(queue: PgBoss, pool: Pool) -> None:
    with pytest.raises(QueueMissing, match="nope"):
        await queue.flow([FlowJob("p", "a"), FlowJob("c", "nope", depends_on=["p"])])
    assert await pool.fetchval("SELECT count(*) FROM pgboss.job") == 0


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ([], "at least one"),
        ([FlowJob("x", "a"), FlowJob("x", "b")], "ref of its own"),
        ([FlowJob("x", "a", depends_on=["y"])], "'y'"),
        ([FlowJob("x", "a", depends_on=["x"])], "circle"),
        ([FlowJob("x", "a", depends_on=["y"]), FlowJob("y", "a", depends_on=["x"])], "circle"),
    ],
)
async def test_flow_that_makes_no_sense_is_refused(queue: PgBoss, jobs: list[FlowJob], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        await queue.flow(jobs)


async def test_given_id_is_kept(queue: PgBoss) -> None:
    wanted = uuid4()
    assert await queue.flow([FlowJob("x", "a", options={"id": wanted})]) == {"x": wanted}


async def test_one_pass_in_five_seconds(queue: PgBoss, pool: Pool, complete_one: CompleteOne) -> None:
    assert await queue.resolve_flows() == 0
    await queue.flow([FlowJob("p", "a"), FlowJob("c", "b", depends_on=["p"])])
    await complete_one("a")
    assert await queue.resolve_flows() == 0
    await let_time_pass(pool)
    assert await queue.resolve_flows() == 1


async def test_resolvers_at_once_release_each_child_exactly_once(queue: PgBoss, pool: Pool, row_of: RowOf) -> None:
    """The statement itself must hold: a Node process may resolve in the same instant."""
    children = []
    for _ in range(20):
        parents = [FlowJob(str(n), "a") for n in range(5)]
        ids = await queue.flow([*parents, FlowJob("c", "b", depends_on=[job.ref for job in parents])])
        assert ids is not None
        children.append(ids["c"])
    deliveries = await queue.fetch("a", 100)
    await queue.complete("a", [delivery.fence for delivery in deliveries[:60]])
    statement = load_queries("worker.queue", queue_schema="pgboss", queue_version=queue.version)["resolve_flows"]
    rows = await asyncio.gather(*(pool.fetchrow(statement, 15) for _ in range(8)))
    assert sum(row["resolved"] for row in rows) == 60
    pending = [(await row_of(child))["pending_dependencies"] for child in children]
    assert sum(pending) == 40
    await queue.complete("a", [delivery.fence for delivery in deliveries[60:]])
    rows += await asyncio.gather(*(pool.fetchrow(statement, 15) for _ in range(8)))
    assert sum(row["unblocked"] for row in rows) == 20
    assert len(await queue.fetch("b", 100)) == 20
