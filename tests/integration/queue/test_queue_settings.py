"""Queues: created with all options, read, changed, counted, deleted."""

import asyncio
from typing import Any

import pytest

from worker.db.pool import Pool
from worker.errors import ConfigError, QueueMissing
from worker.queue import PgBoss

POLICIES = ["standard", "short", "singleton", "stately", "exclusive", "key_strict_fifo"]
#: policy → the numbers of the indexes that enforce it
POLICY_INDEXES: dict[str, set[int]] = {
    "standard": set(),
    "short": {1},
    "singleton": {2},
    "stately": {3},
    "exclusive": {6},
    "key_strict_fifo": {8, 10},
}


async def test_queue_holds_every_option_it_was_created_with(queue: PgBoss) -> None:
    await queue.create_queue("dead")
    made = await queue.create_queue(
        "made",
        policy="stately",
        retry_limit=7,
        retry_delay=3,
        retry_backoff=True,
        retry_delay_max=60,
        expire_in_seconds=77,
        retention_seconds=1000,
        delete_after_seconds=0,
        warning_queue_size=5,
        heartbeat_seconds=15,
        dead_letter="dead",
        notify=True,
    )
    assert (made.policy, made.retry_limit, made.retry_delay, made.retry_backoff) == ("stately", 7, 3, True)
    assert (made.retry_delay_max, made.expire_seconds, made.retention_seconds) == (60, 77, 1000)
    assert (made.deletion_seconds, made.warning_queued, made.heartbeat_seconds) == (0, 5, 15)
    assert (made.dead_letter, made.notify, made.partition, made.table_name) == ("dead", True, False, "job_common")
    assert await queue.get_queue("made") == made


@pytest.mark.parametrize("policy", POLICIES)
async def test_queue_with_its_own_table_has_the_indexes_of_its_policy(queue: PgBoss, pool: Pool, policy: Any) -> None:
    made = await queue.create_queue("own", policy=policy, partition=True)
    names = await pool.fetch("SELECT indexname FROM pg_indexes WHERE tablename = $1", made.table_name)
    numbers = {int(row["indexname"].rpartition("_i")[2]) for row in names if "_i" in row["indexname"]}
    assert numbers & {1, 2, 3, 6, 8, 10} == POLICY_INDEXES[policy]
    assert await queue.send("own", {}, singleton_key="k") is not None
    assert [delivery.queue for delivery in await queue.fetch("own")] == ["own"]


@pytest.mark.parametrize(
    ("name", "options", "error", "words"),
    [
        ("no spaces", {}, ConfigError, "not a queue name"),
        ("q", {"policy": "fifo"}, ConfigError, "policy must be one of standard, short"),
        ("q", {"retry_delay_max": 9}, ConfigError, "retry_delay_max needs retry_backoff"),
        ("q", {"colour": "red"}, ConfigError, "unknown option colour"),
        ("q", {"dead_letter": "q"}, ConfigError, "its own dead letter queue"),
        ("q", {"dead_letter": "nope"}, QueueMissing, "dead letter queue 'nope' does not exist"),
        ("q", {"retry_limit": 2**31}, ConfigError, "retry_limit must be at most"),
    ],
)
async def test_impossible_queues_are_refused(
    queue: PgBoss, name: str, options: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await queue.create_queue(name, **options)
    assert await queue.get_queue(name) is None


async def test_racing_creators_make_one_queue(queue: PgBoss) -> None:
    made = await asyncio.gather(*(queue.create_queue("own", partition=True, retry_limit=n) for n in range(4)))
    assert len(set(made)) == 1


async def test_queue_created_in_a_transaction_goes_with_it(queue: PgBoss, pool: Pool) -> None:
    async with pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        assert (await queue.create_queue("brief", connection=connection)).name == "brief"
        await transaction.rollback()
    assert await queue.get_queue("brief") is None


async def test_queues_are_listed_by_name(queue: PgBoss) -> None:
    for name in ("b", "a"):
        await queue.create_queue(name)
    assert [each.name for each in await queue.get_queues()] == ["a", "b", "clip"]
    assert [each.name for each in await queue.get_queues(["clip", "nope", "a"])] == ["a", "clip"]


class TestUpdate:
    async def test_only_what_is_given_changes(self, queue: PgBoss) -> None:
        await queue.create_queue("dead")
        before = await queue.create_queue("q", retry_limit=7, retry_delay=4, heartbeat_seconds=20)
        after = await queue.update_queue(
            "q", retry_backoff=True, retry_delay_max=60, expire_in_seconds=5, dead_letter="dead", notify=True
        )
        assert (after.retry_limit, after.retry_delay, after.heartbeat_seconds) == (7, 4, 20)
        assert (after.retry_backoff, after.retry_delay_max, after.expire_seconds) == (True, 60, 5)
        assert (after.dead_letter, after.notify) == ("dead", True)
        assert after.updated_on > before.updated_on == before.created_on
        assert await queue.get_queue("q") == after

    async def test_none_takes_limits_away(self, queue: PgBoss) -> None:
        await queue.create_queue("dead")
        await queue.create_queue("q", retry_backoff=True, retry_delay_max=60, heartbeat_seconds=20, dead_letter="dead")
        after = await queue.update_queue("q", retry_delay_max=None, heartbeat_seconds=None, dead_letter=None)
        assert (after.retry_delay_max, after.heartbeat_seconds, after.dead_letter) == (None, None, None)

    async def test_cap_needs_backoff_given_now_or_before(self, queue: PgBoss) -> None:
        with pytest.raises(ConfigError, match="needs retry_backoff"):
            await queue.update_queue("clip", retry_delay_max=60)
        assert (await queue.get_queue("clip")).retry_delay_max is None  # type: ignore[union-attr]
        await queue.update_queue("clip", retry_backoff=True)
        assert (await queue.update_queue("clip", retry_delay_max=60)).retry_delay_max == 60

    @pytest.mark.parametrize(
        ("changes", "error", "words"),
        [
            ({"policy": "short"}, ConfigError, "policy cannot be changed"),
            ({"partition": True}, ConfigError, "partition cannot be changed"),
            ({"retry_limit": None}, ConfigError, "retry_limit must have a value"),
            ({"heartbeat_seconds": 5}, ConfigError, "heartbeat_seconds must be a whole number of at least 10"),
            ({"dead_letter": "clip"}, ConfigError, "its own dead letter queue"),
            ({"dead_letter": "nope"}, QueueMissing, "'nope' does not exist"),
        ],
    )
    async def test_impossible_changes_are_refused(
        self, queue: PgBoss, changes: Any, error: type[Exception], words: str
    ) -> None:
        before = await queue.get_queue("clip")
        with pytest.raises(error, match=words):
            await queue.update_queue("clip", **changes)
        assert await queue.get_queue("clip") == before

    async def test_unknown_queue(self, queue: PgBoss) -> None:
        with pytest.raises(QueueMissing, match="'nope' does not exist"):
            await queue.update_queue("nope", retry_limit=1)

    async def test_jobs_sent_before_keep_their_settings(self, queue: PgBoss) -> None:
        before = await queue.send("clip", {})
        await queue.update_queue("clip", retry_limit=9)
        after = await queue.send("clip", {})
        limits = {delivery.id: delivery.retry_limit for delivery in await queue.fetch("clip", 2)}
        assert limits == {before: 2, after: 9}


class TestDelete:
    @pytest.mark.parametrize("partition", [False, True])
    async def test_queue_goes_with_its_jobs(self, queue: PgBoss, pool: Pool, partition: bool) -> None:
        made = await queue.create_queue("going", partition=partition)
        await queue.send("going", {})
        await queue.send("clip", {})
        await queue.delete_queue("going")
        assert await queue.get_queue("going") is None
        assert await pool.fetchval("SELECT array_agg(name) FROM pgboss.job") == ["clip"]
        assert (await pool.fetchval("SELECT to_regclass($1)", f"pgboss.{made.table_name}") is None) == partition
        with pytest.raises(QueueMissing, match="'going' does not exist"):
            await queue.send("going", {})

    async def test_queue_that_does_not_exist_is_gone_already(self, queue: PgBoss) -> None:
        await queue.delete_queue("nope")

    async def test_dead_letter_queue_in_use_stays_and_spoils_no_transaction(self, queue: PgBoss, pool: Pool) -> None:
        await queue.create_queue("dead")
        await queue.create_queue("mortal", dead_letter="dead")
        async with pool.acquire() as connection, connection.transaction():
            with pytest.raises(ConfigError, match="'dead' is the dead letter queue of others"):
                await queue.delete_queue("dead", connection=connection)
            assert await queue.get_queue("dead", connection=connection) is not None


async def test_stats_count_jobs_by_what_they_wait_for(queue: PgBoss, pool: Pool) -> None:
    waiting = [await queue.send("clip", {}) for _ in range(6)]
    await queue.send("clip", {}, start_after=60)
    await pool.execute("UPDATE pgboss.job SET blocked = true WHERE id = $1", waiting[5])
    for ending in (queue.complete, queue.cancel, queue.dead_letter):
        (delivery,) = await queue.fetch("clip")
        await ending("clip", [delivery.fence])
    await queue.fetch("clip")
    stats = await queue.get_queue_stats("clip")
    assert (stats.queued, stats.deferred, stats.blocked, stats.ready, stats.active) == (3, 1, 1, 1, 1)
    assert (stats.completed, stats.cancelled, stats.failed, stats.total) == (1, 1, 1, 7)
    assert stats.ready_oldest_seconds is not None
    assert 0 < stats.ready_oldest_seconds < 60
    with pytest.raises(QueueMissing):
        await queue.get_queue_stats("nope")
