"""Sending: throttles, debounce, groups, batches, notifications, and what is refused."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.queue.conftest import RowOf
from worker.db.pool import Pool, open_connection
from worker.errors import ConfigError, QueueMissing
from worker.queue import PgBoss

HOUR = 3600


async def test_job_holds_every_option_it_was_sent_with(queue: PgBoss, row_of: RowOf) -> None:
    await queue.create_queue("dead")
    wanted = uuid4()
    job_id = await queue.send(
        "clip",
        {"x": 1},
        id=wanted,
        priority=-3,
        start_after=60,
        singleton_key="k",
        retry_limit=7,
        retry_delay=3,
        retry_backoff=True,
        retry_delay_max=0,
        expire_in_seconds=77,
        retention_seconds=1000,
        delete_after_seconds=0,
        heartbeat_seconds=15,
        dead_letter="dead",
        group={"id": "g", "tier": "gold"},
    )
    row = await row_of(wanted)
    assert job_id == wanted
    assert (row["priority"], row["singleton_key"], row["singleton_on"], row["retry_limit"]) == (-3, "k", None, 7)
    assert (row["retry_delay"], row["retry_backoff"], row["retry_delay_max"]) == (3, True, 0)
    assert (row["expire_seconds"], row["deletion_seconds"], row["heartbeat_seconds"]) == (77, 0, 15)
    assert (row["dead_letter"], row["group_id"], row["group_tier"]) == ("dead", "g", "gold")
    assert row["start_after"] - row["created_on"] == timedelta(seconds=60)
    assert row["keep_until"] - row["start_after"] == timedelta(seconds=1000)
    assert (row["state"], row["retry_count"], row["blocked"], row["upsert_by_key"]) == ("created", 0, False, None)
    assert await queue.send("clip", {}, id=wanted) is None


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"priorty": 1}, ConfigError, "unknown option priorty"),
        ({"priority": 1.5}, ConfigError, "priority must be a whole number"),
        ({"retry_limit": True}, ConfigError, "retry_limit must be a whole number"),
        ({"retry_delay_max": 5}, ConfigError, "retry_delay_max needs retry_backoff"),
        ({"singleton_seconds": 0}, ConfigError, "singleton_seconds must be"),
        ({"singleton_next_slot": True}, ConfigError, "singleton_next_slot needs singleton_seconds"),
        ({"group": {"tier": "gold"}}, ConfigError, "group needs an id"),
        ({"group_tier": "gold"}, ConfigError, "group_tier needs group_id"),
        ({"start_after": "soon"}, ConfigError, "cannot be read.*soon"),
        ({"dead_letter": "nope"}, QueueMissing, "dead letter queue.*nope"),
    ],
)
async def test_impossible_jobs_are_refused(
    queue: PgBoss, pool: Pool, options: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await queue.send("clip", {}, **options)
    assert await pool.fetchval("SELECT count(*) FROM pgboss.job") == 0


@pytest.mark.parametrize(
    ("start_after", "moment"),
    [
        ("2099-01-02", datetime(2099, 1, 2, tzinfo=UTC)),
        ("2099-01-02 03:04", datetime(2099, 1, 2, 3, 4, tzinfo=UTC)),
        ("2099-01-02T03:04:05.678", datetime(2099, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)),
        ("2099-01-02T03:04:05+02:00", datetime(2099, 1, 2, 1, 4, 5, tzinfo=UTC)),
        (datetime(2099, 1, 2), datetime(2099, 1, 2, tzinfo=UTC)),  # noqa: DTZ001
    ],
)
async def test_dates_without_a_zone_are_utc_whatever_the_server_thinks(
    queue: PgBoss, pool: Pool, row_of: RowOf, start_after: Any, moment: datetime
) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL TIME ZONE 'America/New_York'")
        job_id = await queue.send("clip", {}, start_after=start_after, connection=connection)
    assert (await row_of(job_id))["start_after"] == moment


@pytest.mark.parametrize("start_after", [0, -5, 0.0, timedelta(0), "0"])
async def test_no_delay_is_now(queue: PgBoss, start_after: Any) -> None:
    await queue.send("clip", {}, start_after=start_after)
    assert len(await queue.fetch("clip")) == 1


async def test_send_after(queue: PgBoss, row_of: RowOf) -> None:
    row = await row_of(await queue.send_after("clip", {"x": 1}, timedelta(minutes=1), priority=3))
    assert (row["start_after"] - row["created_on"], row["priority"]) == (timedelta(minutes=1), 3)


class TestThrottle:
    async def test_slot_begins_at_a_multiple_of_its_length(self, queue: PgBoss, pool: Pool, row_of: RowOf) -> None:
        async with pool.acquire() as connection, connection.transaction():
            await connection.execute("SET LOCAL TIME ZONE 'Asia/Kolkata'")
            job_id = await queue.send_throttled("clip", {}, HOUR, connection=connection)
        row = await row_of(job_id)
        assert row["singleton_on"] == row["created_on"].replace(minute=0, second=0, microsecond=0, tzinfo=None)

    async def test_slot_counts_jobs_that_ended_but_not_cancelled_ones(self, queue: PgBoss) -> None:
        for ending in (queue.complete, queue.dead_letter):
            key = ending.__name__
            assert await queue.send_throttled("clip", {}, HOUR, key) is not None
            (delivery,) = await queue.fetch("clip")
            assert await ending("clip", [delivery.fence])
            assert await queue.send_throttled("clip", {}, HOUR, key) is None
        cancelled = await queue.send_throttled("clip", {}, HOUR)
        assert cancelled is not None
        await queue.cancel("clip", [cancelled])
        assert await queue.send_throttled("clip", {}, HOUR) is not None
        assert await queue.resume("clip", [cancelled]) == set()


class TestDebounce:
    async def test_second_job_waits_for_the_next_slot_and_the_third_is_refused(
        self, queue: PgBoss, row_of: RowOf
    ) -> None:
        first = await row_of(await queue.send_debounced("clip", {"n": 1}, HOUR, "k"))
        second = await row_of(await queue.send_debounced("clip", {"n": 2}, HOUR, "k", start_after=7, priority=2))
        assert await queue.send_debounced("clip", {"n": 3}, HOUR, "k") is None
        assert second["singleton_on"] - first["singleton_on"] == timedelta(seconds=HOUR)
        assert (second["data"], second["priority"], second["singleton_key"]) == ({"n": 2}, 2, "k")
        slot = second["singleton_on"].replace(tzinfo=UTC)
        # whole seconds, and one to spare
        assert timedelta(seconds=1) <= second["start_after"] - slot < timedelta(seconds=2)
        assert second["keep_until"] - second["start_after"] == timedelta(days=14)

    async def test_slot_of_a_second_waits_a_second(self, queue: PgBoss, pool: Pool, row_of: RowOf) -> None:
        async with pool.acquire() as connection, connection.transaction():
            ids = [await queue.send_debounced("clip", {}, 1, connection=connection) for _ in range(3)]
        assert ids[2] is None
        second = await row_of(ids[1])
        assert second["start_after"] - second["created_on"] == timedelta(seconds=1)

    async def test_is_for_single_jobs(self, queue: PgBoss) -> None:
        with pytest.raises(ConfigError, match="one job at a time"):
            await queue.insert("clip", [{"singleton_seconds": HOUR, "singleton_next_slot": True}])


class TestInsert:
    async def test_each_job_has_its_own_options(self, queue: PgBoss, row_of: RowOf) -> None:
        high, low = uuid4(), uuid4()
        ids = await queue.insert(
            "clip",
            [
                {"id": high, "data": {"n": 1}, "priority": 9, "group": {"id": "g"}},
                {"id": low, "data": None, "start_after": 60, "retry_limit": 0},
            ],
        )
        assert set(ids) == {high, low}
        first, second = await row_of(high), await row_of(low)
        assert (first["data"], first["priority"], first["group_id"]) == ({"n": 1}, 9, "g")
        assert (second["data"], second["retry_limit"]) == (None, 0)
        assert second["start_after"] - second["created_on"] == timedelta(seconds=60)

    async def test_refused_jobs_are_left_out(self, queue: PgBoss) -> None:
        await queue.create_queue("short", policy="short")
        keys = ["a", "a", "b"]
        assert len(await queue.insert("short", [{"singleton_key": key} for key in keys])) == 2

    async def test_options_in_the_spelling_of_node(self, queue: PgBoss, row_of: RowOf) -> None:
        spelled: Any = {"data": {}, "singletonKey": "k", "retryLimit": 4}
        (job_id,) = await queue.insert("clip", [spelled])
        row = await row_of(job_id)
        assert (row["singleton_key"], row["retry_limit"]) == ("k", 4)

    async def test_nothing(self, queue: PgBoss) -> None:
        assert await queue.insert("clip", []) == []


async def test_strict_queue_wants_a_key(queue: PgBoss) -> None:
    for partition in (False, True):
        name = f"strict-{partition}"
        await queue.create_queue(name, policy="key_strict_fifo", partition=partition)
        with pytest.raises(ConfigError, match="needs a singleton_key"):
            await queue.send(name, {})


class TestNotify:
    @pytest.fixture
    async def heard(self, queue: PgBoss, dsn: str) -> AsyncIterator["asyncio.Queue[str]"]:
        heard: asyncio.Queue[str] = asyncio.Queue()
        connection = await open_connection(dsn, name="listener")
        await connection.add_listener(queue.channel, lambda *call: heard.put_nowait(str(call[3])))
        yield heard
        await connection.close()

    async def test_one_call_rings_once(self, queue: PgBoss, heard: "asyncio.Queue[str]") -> None:
        await queue.create_queue("quiet")
        await queue.send("quiet", {})
        await queue.send("clip", {}, start_after=60)
        await queue.insert("clip", [{} for _ in range(50)])
        await queue.create_queue("loud", notify=True)
        await queue.send("loud", {})
        assert [await asyncio.wait_for(heard.get(), 5) for _ in range(2)] == ["clip", "loud"]
        assert heard.empty()

    async def test_job_pulled_forward_rings(self, queue: PgBoss, heard: "asyncio.Queue[str]") -> None:
        job_id = await queue.send("clip", {}, start_after=60)
        await queue.update("clip", id=job_id, priority=3)
        await queue.update("clip", id=job_id, start_after=0)
        assert await asyncio.wait_for(heard.get(), 5) == "clip"
        assert heard.empty()
