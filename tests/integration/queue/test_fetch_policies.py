"""What each policy lets be sent and fetched, on the shared table and on a table of its own."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from worker.db.pool import Pool
from worker.errors import ConfigError
from worker.queue import Delivery, PgBoss
from worker.queue.options import Policy


@dataclass(frozen=True)
class Rules:
    policy: Policy
    #: is a second job of a key accepted while the first one is …?
    while_created: bool
    while_active: bool
    while_retry: bool
    #: is a waiting job of a key fetched while another one of it is active?
    beside_active: bool | None
    #: how many jobs of one key a single fetch takes, of as many as were accepted
    in_one_batch: int


RULES = [
    Rules("standard", True, True, True, True, 3),
    Rules("short", False, True, True, True, 1),
    Rules("singleton", True, True, True, False, 1),
    Rules("stately", False, True, True, False, 1),
    Rules("exclusive", False, False, False, None, 1),
    Rules("key_strict_fifo", True, True, True, False, 1),
]
each_policy = pytest.mark.parametrize("rules", RULES, ids=lambda rules: rules.policy)
each_table = pytest.mark.parametrize("partition", [False, True], ids=["shared", "own"])


async def claim(queue: PgBoss, count: int = 1, **options: Any) -> list[Any]:
    """The data of what a fetch claims, in its order."""
    return [delivery.data for delivery in await queue.fetch("q", count, **options)]


async def send(queue: PgBoss, key: str, data: Any = None, **options: Any) -> bool:
    return await queue.send("q", data if data is not None else key, singleton_key=key, **options) is not None


@each_table
@each_policy
async def test_second_job_of_a_key_is_accepted_or_refused(queue: PgBoss, rules: Rules, partition: bool) -> None:
    await queue.create_queue("q", policy=rules.policy, partition=partition, retry_delay=60)
    assert await send(queue, "k")
    assert await send(queue, "k") == rules.while_created
    assert await send(queue, "other")

    await queue.create_queue("q2", policy=rules.policy, partition=partition, retry_delay=60)
    assert await queue.send("q2", {}, singleton_key="k") is not None
    (running,) = await queue.fetch("q2")
    assert (await queue.send("q2", {}, singleton_key="k") is not None) == rules.while_active
    await queue.delete_queued_jobs("q2")
    assert await queue.fail("q2", [running.fence]) == {running.id: "retry"}
    assert (await queue.send("q2", {}, singleton_key="k") is not None) == rules.while_retry


@each_table
@each_policy
async def test_waiting_job_beside_an_active_one_of_its_key(queue: PgBoss, rules: Rules, partition: bool) -> None:
    await queue.create_queue("q", policy=rules.policy, partition=partition)
    await send(queue, "k", 1)
    (running,) = await queue.fetch("q")
    is_sent = await send(queue, "k", 2)
    await send(queue, "other")
    if rules.beside_active is None:
        assert not is_sent
        assert await claim(queue, 9) == ["other"]
        return
    assert await claim(queue, 9) == ([2, "other"] if rules.beside_active else ["other"])
    await queue.complete("q", [running.fence])
    assert await claim(queue, 9) == ([] if rules.beside_active else [2])


@each_table
@each_policy
async def test_one_fetch_takes_what_may_run_together(queue: PgBoss, rules: Rules, partition: bool) -> None:
    await queue.create_queue("q", policy=rules.policy, partition=partition)
    for _ in range(3):
        await send(queue, "a")
    await send(queue, "b")
    assert Counter(await claim(queue, 9)) == {"a": rules.in_one_batch, "b": 1}


async def test_no_key_is_one_key(queue: PgBoss) -> None:
    for rules in RULES:
        if rules.policy != "key_strict_fifo":  # which has no jobs without a key
            await queue.create_queue(rules.policy, policy=rules.policy)
            for _ in range(3):
                await queue.send(rules.policy, 1)
            assert len(await queue.fetch(rules.policy, 9)) == rules.in_one_batch


@each_policy
async def test_workers_at_once_never_share_a_job_or_break_the_policy(queue: PgBoss, pool: Pool, rules: Rules) -> None:
    await queue.create_queue("q", policy=rules.policy)
    for _ in range(3):
        for key in "abcd":
            await send(queue, key)
    expected = await pool.fetchval("SELECT count(*) FROM pgboss.job")
    done: list[Delivery] = []

    async def work() -> None:
        while len(done) < expected:
            for delivery in await queue.fetch("q", 2):
                assert await queue.complete("q", [delivery.fence]) == {delivery.id}
                done.append(delivery)

    await asyncio.wait_for(asyncio.gather(*(work() for _ in range(6))), 15)
    assert len({delivery.id for delivery in done}) == len(done) == expected
    assert {delivery.retry_count for delivery in done} == {0}


@pytest.mark.parametrize("policy", ["singleton", "stately"])
async def test_claim_lost_in_a_race_is_an_empty_fetch_and_spoils_no_transaction(
    queue: PgBoss, pool: Pool, policy: Policy
) -> None:
    await queue.create_queue("q", policy=policy, retry_limit=5)
    await send(queue, "k", 1)
    (first,) = await queue.fetch("q")
    await queue.fail("q", [first.fence])
    await send(queue, "k", 2)
    async with pool.acquire() as winner, pool.acquire() as loser, loser.transaction():
        pid = await loser.fetchval("SELECT pg_backend_pid()")
        async with winner.transaction():
            assert len(await queue.fetch("q", connection=winner)) == 1
            racing = asyncio.create_task(queue.fetch("q", connection=loser))
            async with asyncio.timeout(10):
                while not await pool.fetchval("SELECT cardinality(pg_blocking_pids($1)) > 0", pid):
                    await asyncio.sleep(0.01)
        assert await racing == []
        assert await loser.fetchval("SELECT 1") == 1


class TestKeyStrictFifo:
    @pytest.fixture(autouse=True)
    async def _strict(self, queue: PgBoss) -> None:
        await queue.create_queue("q", policy="key_strict_fifo", retry_limit=1)

    async def test_order_of_a_key_beats_priority(self, queue: PgBoss) -> None:
        await send(queue, "a", "a1")
        await send(queue, "a", "a2", priority=9)
        await send(queue, "b", "b1", priority=5)
        assert await claim(queue, 9) == ["b1", "a1"]
        assert await claim(queue, 9) == []

    async def test_job_that_waits_for_its_retry_holds_its_key(self, queue: PgBoss, pool: Pool) -> None:
        await send(queue, "a", "a1", retry_delay=60)
        await send(queue, "a", "a2")
        await send(queue, "b", "b1")
        (delivery,) = await queue.fetch("q")
        assert await queue.fail("q", [delivery.fence]) == {delivery.id: "retry"}
        assert await claim(queue, 9) == ["b1"]
        await pool.execute("UPDATE pgboss.job SET start_after = now() WHERE id = $1", delivery.id)
        assert await claim(queue, 9) == ["a1"]

    async def test_failed_job_blocks_its_key_until_it_is_retried_or_deleted(self, queue: PgBoss) -> None:
        for data in ("a1", "a2", "a3"):
            await send(queue, "a", data)
        assert await queue.get_blocked_keys("q") == []
        (first,) = await queue.fetch("q")
        await queue.dead_letter("q", [first.fence])
        await send(queue, "b")
        assert await claim(queue, 9) == ["b"]
        assert await queue.get_blocked_keys("q") == ["a"]
        assert await queue.retry("q", [first.id]) == {first.id}
        assert await queue.get_blocked_keys("q") == []
        (again,) = await queue.fetch("q", 9)
        assert (again.id, again.retry_count) == (first.id, 1)
        await queue.dead_letter("q", [again.fence])
        await queue.delete_jobs("q", [again.id])
        assert await claim(queue, 9) == ["a2"]

    async def test_deferred_job_does_not_hold_its_key(self, queue: PgBoss) -> None:
        await send(queue, "a", "a1", start_after=60)
        await send(queue, "a", "a2")
        assert await claim(queue, 9) == ["a2"]

    async def test_deferred_head_comes_first_when_time_is_ignored(self, queue: PgBoss) -> None:
        await send(queue, "a", "a1", start_after=60)
        await send(queue, "a", "a2")
        assert await claim(queue, 9, ignore_start_after=True) == ["a1"]


class TestBounds:
    async def test_priorities(self, queue: PgBoss) -> None:
        await queue.create_queue("q")
        await queue.insert("q", [{"data": n, "priority": n} for n in range(-2, 6)])
        assert await claim(queue, 9, min_priority=4) == [5, 4]
        assert await claim(queue, 9, max_priority=-1) == [-1, -2]
        assert await claim(queue, 9, min_priority=1, max_priority=2) == [2, 1]
        assert await claim(queue, 9) == [3, 0]

    async def test_time_can_be_ignored(self, queue: PgBoss) -> None:
        await queue.create_queue("q")
        await queue.send("q", 1, start_after=60)
        assert await claim(queue) == []
        assert await claim(queue, ignore_start_after=True) == [1]

    async def test_blocked_jobs_are_never_due(self, queue: PgBoss, pool: Pool) -> None:
        await queue.create_queue("q")
        await queue.send("q", 1)
        await pool.execute("UPDATE pgboss.job SET blocked = true")
        assert await claim(queue, ignore_start_after=True) == []

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"min_priority": 2, "max_priority": 1}, "must not be above"),
            ({"group_concurrency": 0}, "group_concurrency"),
            ({"group_concurrency": {"default": 1, "tiers": {"gold": -1}}}, "group_concurrency"),
            ({"batch_size": 0}, "batch_size"),
        ],
    )
    async def test_impossible_fetches_are_refused(self, queue: PgBoss, options: Any, words: str) -> None:
        with pytest.raises(ConfigError, match=words):
            await queue.fetch("clip", **options)

    async def test_unknown_queue_is_empty(self, queue: PgBoss) -> None:
        assert await queue.fetch("nope") == []


class TestGroups:
    @pytest.fixture(autouse=True)
    async def _groups(self, queue: PgBoss) -> None:
        """Three jobs of group a, two of group b, of tier gold, and one of no group, in this order."""
        await queue.create_queue("q")
        jobs = [(f"a{n}", {"id": "a"}) for n in (1, 2, 3)] + [(f"b{n}", {"id": "b", "tier": "gold"}) for n in (1, 2)]
        for data, group in jobs:
            await queue.send("q", data, group=group)  # type: ignore[arg-type]
        await queue.send("q", "free")

    async def test_limit_holds_within_a_batch_and_across_batches(self, queue: PgBoss) -> None:
        assert await claim(queue, 9, group_concurrency=2) == ["a1", "a2", "b1", "b2", "free"]
        assert await claim(queue, 9, group_concurrency=2) == []
        assert await claim(queue, 9, group_concurrency=3) == ["a3"]

    async def test_room_comes_back_when_a_job_ends(self, queue: PgBoss) -> None:
        first, *_ = await queue.fetch("q", 9, group_concurrency=1)
        assert first.data == "a1"
        assert await claim(queue, 9, group_concurrency=1) == []
        await queue.complete("q", [first.fence])
        assert await claim(queue, 9, group_concurrency=1) == ["a2"]

    async def test_full_group_does_not_hold_up_the_others(self, queue: PgBoss) -> None:
        assert await claim(queue, 1, group_concurrency=1) == ["a1"]
        assert await claim(queue, 1, group_concurrency=1) == ["b1"]
        assert await claim(queue, 1, group_concurrency=1) == ["free"]

    async def test_tiers_have_their_own_limits(self, queue: PgBoss) -> None:
        limits = {"default": 1, "tiers": {"gold": 2}}
        assert await claim(queue, 9, group_concurrency=limits) == ["a1", "b1", "b2", "free"]

    async def test_groups_can_be_left_alone(self, queue: PgBoss) -> None:
        assert await claim(queue, 9, ignore_groups=["a"]) == ["b1", "b2", "free"]

    async def test_without_a_limit_groups_do_not_matter(self, queue: PgBoss) -> None:
        assert len(await claim(queue, 9)) == 6
