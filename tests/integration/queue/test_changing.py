"""Update and upsert: only what is given, only jobs that wait, one job a key."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.queue.conftest import RowOf
from worker.db.pool import Pool
from worker.errors import ConfigError, QueueMissing, SchemaUnsupported
from worker.queue import PgBoss

UNTOUCHED = ("id", "state", "created_on", "singleton_key", "policy", "retry_delay", "group_id", "keep_until")


async def test_only_what_is_given_changes(queue: PgBoss, row_of: RowOf) -> None:
    job_id = await queue.send("clip", {"x": 1}, singleton_key="k", retry_delay=4, group={"id": "g"}, start_after=60)
    before = await row_of(job_id)
    assert await queue.update("clip", id=job_id, priority=5, expire_in_seconds=9, retry_limit=0) == [job_id]
    after = await row_of(job_id)
    assert (after["data"], after["priority"], after["expire_seconds"], after["retry_limit"]) == ({"x": 1}, 5, 9, 0)
    assert [after[name] for name in UNTOUCHED] == [before[name] for name in UNTOUCHED]


async def test_data_is_replaced_or_emptied(queue: PgBoss, row_of: RowOf) -> None:
    job_id = await queue.send("clip", {"x": 1})
    await queue.update("clip", {"y": "a\x00b"}, id=job_id)
    assert (await row_of(job_id))["data"] == {"y": "a\ufffdb"}
    await queue.update("clip", None, id=job_id)
    assert (await row_of(job_id))["data"] is None


async def test_none_takes_limits_away(queue: PgBoss, row_of: RowOf) -> None:
    await queue.create_queue("dead")
    job_id = await queue.send(
        "clip", {}, retry_backoff=True, retry_delay_max=9, heartbeat_seconds=20, dead_letter="dead"
    )
    await queue.update("clip", id=job_id, retry_delay_max=None, heartbeat_seconds=None, dead_letter=None)
    row = await row_of(job_id)
    assert (row["retry_delay_max"], row["heartbeat_seconds"], row["dead_letter"]) == (None, None, None)


@pytest.mark.parametrize(
    ("changes", "wait", "retention"),
    [
        ({"start_after": 300}, 300, 1000),
        ({"start_after": 0}, 0, 1000),
        ({"start_after": "10 minutes", "retention_seconds": 50}, 600, 50),
        ({"retention_seconds": 50}, 60, 50),
    ],
)
async def test_moved_job_is_kept_as_long_as_before(
    queue: PgBoss, pool: Pool, row_of: RowOf, changes: Any, wait: int, retention: int
) -> None:
    async with pool.acquire() as connection, connection.transaction():
        job_id = await queue.send("clip", {}, start_after=60, retention_seconds=1000, connection=connection)
        await queue.update("clip", id=job_id, connection=connection, **changes)
    row = await row_of(job_id)
    assert row["start_after"] - row["created_on"] == timedelta(seconds=wait)
    assert row["keep_until"] - row["start_after"] == timedelta(seconds=retention)


@pytest.mark.parametrize(("match", "changed"), [(None, [2]), ("newest", [2]), ("oldest", [0]), ("all", [0, 1, 2])])
async def test_which_jobs_of_a_key(queue: PgBoss, row_of: RowOf, match: Any, changed: list[int]) -> None:
    ids = [await queue.send("clip", {"n": n}, singleton_key="k") for n in range(3)]
    other = await queue.send("clip", {"n": 9}, singleton_key="other")
    done = await queue.update("clip", singleton_key="k", match=match, priority=5)
    assert set(done) == {ids[n] for n in changed}
    assert [(await row_of(job_id))["priority"] for job_id in ids] == [5 if n in changed else 0 for n in range(3)]
    assert (await row_of(other))["priority"] == 0


async def test_job_that_is_claimed_or_ended_is_left_alone(queue: PgBoss, row_of: RowOf) -> None:
    job_id = await queue.send("clip", {}, singleton_key="k")
    (delivery,) = await queue.fetch("clip")
    assert await queue.update("clip", {"late": 1}, id=job_id) == []
    assert await queue.update("clip", {"late": 1}, singleton_key="k") == []
    await queue.fail("clip", [delivery.fence])
    assert await queue.update("clip", {"now": 1}, singleton_key="k") == [job_id]
    assert (await row_of(job_id))["data"] == {"now": 1}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "say which job"),
        ({"id": uuid4(), "singleton_key": "k"}, "say which job"),
        ({"id": uuid4(), "match": "all"}, "match goes with singleton_key"),
        ({"singleton_key": "k", "match": "some"}, "match goes with singleton_key"),
        ({"singleton_key": "k", "retry_limit": None}, "retry_limit must have a value"),
        ({"singleton_key": "k", "heartbeat_seconds": 1}, "heartbeat_seconds must be"),
        ({"singleton_key": "k", "singleton_seconds": 5}, "unknown option singleton_seconds"),
        ({"singleton_key": "k", "retry_delay_max": 5}, "needs retry_backoff"),
    ],
)
async def test_impossible_changes_are_refused(queue: PgBoss, options: Any, words: str) -> None:
    for verb in (queue.update, queue.upsert):
        with pytest.raises(ConfigError, match=words):
            await verb("clip", {}, **options)


@pytest.mark.parametrize("verb", ["update", "upsert"])
async def test_unknown_queues(queue: PgBoss, verb: str) -> None:
    with pytest.raises(QueueMissing, match="'nope' does not exist"):
        await getattr(queue, verb)("nope", {}, singleton_key="k")
    await queue.send("clip", {}, singleton_key="k")
    with pytest.raises(QueueMissing, match="dead letter queue"):
        await getattr(queue, verb)("clip", {}, singleton_key="k", dead_letter="nope")


class TestUpsert:
    async def test_first_inserts_and_second_updates(self, queue: PgBoss, row_of: RowOf) -> None:
        first = await queue.upsert("clip", {"n": 1}, singleton_key="k", priority=3)
        second = await queue.upsert("clip", {"n": 2}, singleton_key="k", start_after=60)
        assert (first.is_inserted, second.is_inserted) == (True, False)
        assert first.ids == second.ids
        row = await row_of(first.ids[0])
        assert (row["data"], row["priority"], row["upsert_by_key"]) == ({"n": 2}, 3, True)

    async def test_job_that_was_sent_is_updated(self, queue: PgBoss, row_of: RowOf) -> None:
        ids = [await queue.send("clip", {"n": n}, singleton_key="k") for n in range(2)]
        done = await queue.upsert("clip", {"n": 9}, singleton_key="k", match="oldest")
        assert (done.ids, done.is_inserted) == ((ids[0],), False)
        assert (await row_of(ids[0]))["upsert_by_key"] is None

    async def test_running_job_does_not_count(self, queue: PgBoss) -> None:
        first = await queue.upsert("clip", {}, singleton_key="k")
        (running,) = await queue.fetch("clip")
        second = await queue.upsert("clip", {}, singleton_key="k")
        assert second.is_inserted
        assert first.ids != second.ids
        # Both may wait at once: the one that comes back is no longer the key's own.
        assert await queue.restore("clip", [running.fence]) == {running.id}

    async def test_by_id(self, queue: PgBoss, row_of: RowOf) -> None:
        wanted = uuid4()
        first = await queue.upsert("clip", {"n": 1}, id=wanted)
        second = await queue.upsert("clip", {"n": 2}, id=wanted)
        assert (first.ids, first.is_inserted) == ((wanted,), True)
        assert (second.ids, second.is_inserted) == ((wanted,), False)
        row = await row_of(wanted)
        assert (row["data"], row["upsert_by_key"]) == ({"n": 2}, None)
        await queue.fetch("clip")
        assert (await queue.upsert("clip", {"n": 3}, id=wanted)).ids == ()

    async def test_many_at_once_make_one_job(self, queue: PgBoss, pool: Pool) -> None:
        done = await asyncio.gather(*(queue.upsert("clip", {"n": n}, singleton_key="k") for n in range(8)))
        assert sum(each.is_inserted for each in done) == 1
        assert len({each.ids for each in done}) == 1
        assert await pool.fetchval("SELECT count(*) FROM pgboss.job") == 1

    async def test_belongs_to_the_callers_transaction(self, queue: PgBoss, pool: Pool) -> None:
        async with pool.acquire() as connection:
            transaction = connection.transaction()
            await transaction.start()
            assert (await queue.upsert("clip", {}, singleton_key="k", connection=connection)).is_inserted
            await transaction.rollback()
        assert await pool.fetchval("SELECT count(*) FROM pgboss.job") == 0

    async def test_by_key_needs_a_schema_that_can_keep_it_single(self, old_queue: PgBoss) -> None:
        with pytest.raises(SchemaUnsupported, match="schema 45"):
            await old_queue.upsert("clip", {}, singleton_key="k")
        assert (await old_queue.upsert("clip", {}, id=uuid4())).is_inserted
