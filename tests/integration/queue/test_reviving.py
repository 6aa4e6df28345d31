"""Resume, retry, delete, redrive."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.integration.queue.conftest import RowOf
from worker.db.pool import Pool
from worker.errors import ConfigError, QueueMissing
from worker.queue import PgBoss
from worker.queue.options import Policy


async def died(queue: PgBoss, name: str, data: Any, **options: Any) -> UUID:
    """A job of this queue that has failed for good."""
    job_id = await queue.send(name, data, **options)
    assert job_id is not None
    assert await queue.dead_letter(name, [job_id], [{"message": "no"}]) == {job_id}
    return job_id


@pytest.fixture
async def mortal(queue: PgBoss) -> str:
    await queue.create_queue("dead")
    await queue.create_queue("mortal", dead_letter="dead", retry_limit=4, expire_in_seconds=33)
    return "mortal"


async def test_resumed_job_runs_as_its_next_attempt(queue: PgBoss, row_of: RowOf) -> None:
    await queue.send("clip", {})
    (first,) = await queue.fetch("clip")
    await queue.cancel("clip", [first.id])
    assert await queue.resume("clip", [first.id]) == {first.id}
    row = await row_of(first.id)
    assert row["start_after"] > row["created_on"]
    (again,) = await queue.fetch("clip")
    assert again.retry_count == 1


async def test_retry_grants_one_more_attempt_and_keeps_the_output(queue: PgBoss, row_of: RowOf) -> None:
    job_id = await died(queue, "clip", {}, retry_limit=0)
    assert await queue.retry("clip", [job_id]) == {job_id}
    row = await row_of(job_id)
    assert (row["state"], row["retry_limit"], row["output"]) == ("retry", 1, {"message": "no"})
    assert [delivery.id for delivery in await queue.fetch("clip")] == [job_id]


@pytest.mark.parametrize("policy", ["short", "stately", "exclusive"])
async def test_job_whose_place_was_taken_stays_ended_and_spoils_nothing(
    queue: PgBoss, pool: Pool, row_of: RowOf, policy: Policy
) -> None:
    await queue.create_queue("q", policy=policy)
    ids = [await queue.send("q", {}, singleton_key=key) for key in "ab"]
    cancelled = [job_id for job_id in ids if job_id]
    await queue.cancel("q", cancelled)
    await queue.send("q", {}, singleton_key="a")
    async with pool.acquire() as connection, connection.transaction():
        assert await queue.resume("q", cancelled, connection=connection) == {ids[1]}
    assert [(await row_of(job_id))["state"] for job_id in cancelled] == ["cancelled", "created"]


async def test_retry_without_room_stays_failed(queue: PgBoss, row_of: RowOf) -> None:
    await queue.create_queue("q", policy="exclusive")
    job_id = await died(queue, "q", {})
    await queue.send("q", {})
    assert await queue.retry("q", [job_id]) == set()
    assert (await row_of(job_id))["state"] == "failed"


async def test_jobs_are_deleted_by_state(queue: PgBoss, pool: Pool) -> None:
    await queue.create_queue("other")
    await queue.send("other", {})
    ids = [await queue.send("clip", {}) for _ in range(5)]
    (running,) = await queue.fetch("clip")
    await queue.dead_letter("clip", [job_id for job_id in ids[3:] if job_id])
    assert await queue.delete_queued_jobs("clip") == 2
    assert await queue.delete_stored_jobs("clip") == 2
    assert await pool.fetchval("SELECT array_agg(id) FROM pgboss.job WHERE name = 'clip'") == [running.id]
    assert await queue.delete_all_jobs("clip") == 1
    assert await pool.fetchval("SELECT array_agg(name) FROM pgboss.job") == ["other"]


class TestRedrive:
    async def test_job_starts_anew_where_it_came_from(
        self, queue: PgBoss, pool: Pool, row_of: RowOf, mortal: str
    ) -> None:
        first = await died(queue, mortal, {"x": 1}, priority=3, singleton_key="k", group={"id": "g", "tier": "t"})
        await queue.update_queue(mortal, retry_limit=8)
        done = await queue.redrive("dead")
        assert await pool.fetchval("SELECT count(*) FROM pgboss.job WHERE name = 'dead'") == 0
        (job_id,) = done.moved
        row = await row_of(job_id)
        assert (row["name"], row["state"], row["data"], row["retry_count"]) == (mortal, "created", {"x": 1}, 0)
        assert (row["priority"], row["singleton_key"], row["group_id"], row["group_tier"]) == (3, "k", "g", "t")
        assert (row["retry_limit"], row["expire_seconds"], row["dead_letter"]) == (8, 33, "dead")
        assert (row["policy"], row["source_name"], row["source_id"]) == ("standard", None, None)
        assert (row["source_root_id"], row["output"]) == (first, None)
        assert row["keep_until"] - row["start_after"] == timedelta(days=14)

    async def test_root_stays_the_first_job_through_every_death(self, queue: PgBoss, pool: Pool, mortal: str) -> None:
        first = await died(queue, mortal, {})
        for _ in range(2):
            (job_id,) = (await queue.redrive("dead")).moved
            await queue.dead_letter(mortal, [job_id])
        roots = await pool.fetchval("SELECT array_agg(source_root_id) FROM pgboss.job WHERE name = 'dead'")
        assert roots == [first]

    async def test_elsewhere(self, queue: PgBoss, mortal: str) -> None:
        await died(queue, mortal, {"x": 1})
        await queue.send("dead", {"x": 2})
        assert len((await queue.redrive("dead", "clip")).moved) == 2
        assert {delivery.data["x"] for delivery in await queue.fetch("clip", 9)} == {1, 2}

    async def test_job_with_nowhere_to_go_stays(self, queue: PgBoss, row_of: RowOf) -> None:
        await queue.create_queue("dead")
        await queue.create_queue("gone", dead_letter="dead")
        await died(queue, "gone", {})
        await queue.delete_queue("gone")
        stray = await queue.send("dead", {})
        done = await queue.redrive("dead")
        assert (done.moved, done.refused) == ((), ())
        assert (await row_of(stray))["state"] == "created"

    async def test_oldest_go_first_up_to_the_limit(self, queue: PgBoss, mortal: str) -> None:
        for n in range(4):
            await died(queue, mortal, n)
        assert len((await queue.redrive("dead", limit=3)).moved) == 3
        assert sorted(delivery.data for delivery in await queue.fetch(mortal, 9)) == [0, 1, 2]

    async def test_running_and_ended_dead_letters_stay(self, queue: PgBoss, mortal: str) -> None:
        for n in range(3):
            await died(queue, mortal, n)
        running, ended = await queue.fetch("dead", 2)
        await queue.complete("dead", [ended.fence])
        assert len((await queue.redrive("dead")).moved) == 1
        assert await queue.touch("dead", [running.fence]) == {running.id}

    @pytest.mark.parametrize("by", ["source_name", "data", "created_before", "ids"])
    async def test_filters(self, queue: PgBoss, pool: Pool, mortal: str, by: str) -> None:
        await queue.create_queue("frail", dead_letter="dead")
        await died(queue, mortal, {"n": 1, "more": True})
        await died(queue, "frail", {"n": 2})
        await pool.execute("UPDATE pgboss.job SET created_on = '2020-01-01' WHERE source_name = $1", mortal)
        (wanted,) = [row["id"] for row in await pool.fetch("SELECT id FROM pgboss.job WHERE source_name = $1", mortal)]
        only: Any = {
            "source_name": {"source_name": mortal},
            "data": {"data": {"n": 1}},
            "created_before": {"created_before": datetime(2021, 1, 1, tzinfo=UTC)},
            "ids": {"ids": [wanted]},
        }[by]
        assert len((await queue.redrive("dead", **only)).moved) == 1
        assert await pool.fetchval("SELECT array_agg(source_name) FROM pgboss.job WHERE name = 'dead'") == ["frail"]

    @pytest.mark.parametrize("policy", ["short", "stately", "exclusive"])
    async def test_refused_job_fails_in_place_and_says_why(self, queue: PgBoss, row_of: RowOf, policy: Policy) -> None:
        await queue.create_queue("dead")
        await queue.create_queue("q", policy=policy, dead_letter="dead")
        for n in range(2):
            await died(queue, "q", n, singleton_key="k")
        done = await queue.redrive("dead")
        assert (len(done.moved), len(done.refused)) == (1, 1)
        row = await row_of(done.refused[0])
        assert (row["name"], row["state"], row["data"], row["source_output"]) == (
            "dead",
            "failed",
            1,
            {"message": "no"},
        )
        assert row["completed_on"] is not None
        assert row["output"]["reason"] == "redrive_conflict"
        assert (row["output"]["destination"], row["output"]["policy"]) == ("q", policy)
        assert row["output"]["singletonKey"] == "k"
        assert (await queue.redrive("dead")).moved == ()
        await queue.retry("dead", done.refused)
        await queue.delete_jobs("q", done.moved)
        assert len((await queue.redrive("dead")).moved) == 1

    async def test_strict_destination_refuses_a_job_without_key(self, queue: PgBoss) -> None:
        await queue.create_queue("dead")
        await queue.create_queue("strict", policy="key_strict_fifo")
        ids = [await queue.send("dead", {}), await queue.send("dead", {}, singleton_key="k")]
        done = await queue.redrive("dead", "strict")
        assert (len(done.moved), done.refused) == (1, (ids[0],))

    async def test_strict_dead_letter_queue_fails_one_job_of_a_key(self, queue: PgBoss) -> None:
        await queue.create_queue("strict", policy="key_strict_fifo")
        await queue.create_queue("q", policy="short")
        await queue.send("q", {}, singleton_key="k")
        first, *_ = [await queue.send("strict", n, singleton_key="k") for n in range(3)]
        assert (await queue.redrive("strict", "q")).refused == (first,)
        assert await queue.get_blocked_keys("strict") == ["k"]
        assert (await queue.redrive("strict", "q")).refused == ()

    async def test_impossible_redrives_are_refused(self, queue: PgBoss, mortal: str) -> None:
        await died(queue, mortal, {})
        with pytest.raises(QueueMissing, match="'nope' does not exist"):
            await queue.redrive("nope")
        with pytest.raises(QueueMissing, match="'nope' does not exist"):
            await queue.redrive("dead", "nope")
        with pytest.raises(ConfigError, match="into itself"):
            await queue.redrive("dead", "dead")
        with pytest.raises(ConfigError, match="limit"):
            await queue.redrive("dead", limit=0)
