"""The pg-boss client: queues, sending, claiming, settling."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from worker.db.pool import Pool, open_pool
from worker.errors import ConfigError, QueueMissing, SchemaUnsupported
from worker.queue import Fence, PgBoss
from worker.queue.schema import attach_schema, ensure_schema, read_version


async def state_of(pool: Pool, job_id: object) -> str:
    return str(await pool.fetchval("SELECT state::text FROM pgboss.job WHERE id = $1", job_id))


async def test_queue_is_created_once_and_keeps_its_settings(queue: PgBoss) -> None:
    first = await queue.create_queue("q", retry_limit=7, retry_backoff=True, retry_delay_max=9, expire_in_seconds=60)
    second = await queue.create_queue("q", retry_limit=1)
    assert first == second
    assert (first.policy, first.retry_limit, first.retry_delay_max, first.expire_seconds) == ("standard", 7, 9, 60)
    assert await queue.get_queue("nope") is None


@pytest.mark.parametrize("options", [{"retry_limit": -1}, {"heartbeat_seconds": 5}, {"expire_in_seconds": 90_000}])
async def test_settings_pg_boss_would_refuse_are_refused(queue: PgBoss, options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        await queue.create_queue("q", **options)  # type: ignore[arg-type]


async def test_sent_job_carries_the_queues_settings(queue: PgBoss, pool: Pool) -> None:
    job_id = await queue.send("clip", {"a": [1, "ü"]}, priority=5)
    row = await pool.fetchrow("SELECT * FROM pgboss.job WHERE id = $1", job_id)
    assert row is not None
    assert (row["data"], row["priority"], row["policy"], row["retry_limit"]) == ({"a": [1, "ü"]}, 5, "standard", 2)
    assert row["keep_until"] - row["start_after"] == timedelta(days=14)


async def test_job_without_data_has_sql_null(queue: PgBoss, pool: Pool) -> None:
    job_id = await queue.send("clip")
    assert await pool.fetchval("SELECT data IS NULL FROM pgboss.job WHERE id = $1", job_id)


@pytest.mark.parametrize(
    ("start_after", "seconds"),
    [
        (5, 5),
        ("5", 5),
        (timedelta(minutes=1), 60),
        ("5 minutes", 300),
        ("PT1H", 3600),
        (datetime(2099, 1, 1, tzinfo=UTC), None),
        ("2099-01-01T00:00:00", None),
        ("2099-01-01T00:00:00Z", None),
    ],
)
async def test_start_after_in_all_its_forms(
    queue: PgBoss, pool: Pool, start_after: object, seconds: int | None
) -> None:
    job_id = await queue.send("clip", {}, start_after=start_after)  # type: ignore[arg-type]
    row = await pool.fetchrow("SELECT start_after, created_on FROM pgboss.job WHERE id = $1", job_id)
    assert row is not None
    if seconds is None:
        assert row["start_after"] == datetime(2099, 1, 1, tzinfo=UTC)
    else:
        assert row["start_after"] - row["created_on"] == timedelta(seconds=seconds)
    assert await queue.fetch("clip") == []


async def test_send_belongs_to_the_callers_transaction(queue: PgBoss, pool: Pool) -> None:
    async with pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await queue.send("clip", {}, connection=connection)
        await transaction.rollback()
    assert await queue.fetch("clip") == []


async def test_send_many_in_one_statement(queue: PgBoss) -> None:
    same = str(uuid4())
    ids = await queue.insert("clip", [{"data": {"n": n}} for n in range(500)] + [{"id": same}, {"id": same}])
    assert len(ids) == 501


async def test_send_to_an_unknown_queue(queue: PgBoss) -> None:
    with pytest.raises(QueueMissing, match="'nope' does not exist"):
        await queue.send("nope", {})


async def test_throttle_allows_one_job_a_slot(queue: PgBoss) -> None:
    assert await queue.send("clip", {}, singleton_seconds=3600) is not None
    assert await queue.send("clip", {}, singleton_seconds=3600) is None
    assert await queue.send("clip", {}, singleton_seconds=3600, singleton_key="other") is not None


async def test_short_policy_allows_one_waiting_job(queue: PgBoss) -> None:
    await queue.create_queue("short", policy="short")
    assert await queue.send("short", {}) is not None
    assert await queue.send("short", {}) is None


async def test_fetch_orders_by_priority_then_age(queue: PgBoss) -> None:
    for priority in (0, 5, 1, 5, 0):
        await queue.send("clip", {"p": priority}, priority=priority)
    assert [delivery.data["p"] for delivery in await queue.fetch("clip", 5)] == [5, 5, 1, 0, 0]


@pytest.mark.parametrize(
    ("output", "stored"),
    [(1, {"value": 1}), ("s", {"value": "s"}), ([1, 2], {"value": [1, 2]}), ({"x": 1}, {"x": 1}), (None, None)],
)
async def test_output_has_the_shape_node_gives_it(queue: PgBoss, pool: Pool, output: object, stored: object) -> None:
    await queue.send("clip", {})
    (delivery,) = await queue.fetch("clip")
    assert await queue.complete("clip", [delivery.fence], [output]) == {delivery.id}
    assert await pool.fetchval("SELECT output FROM pgboss.job WHERE id = $1", delivery.id) == stored


async def test_job_runs_retry_limit_plus_one_times(queue: PgBoss, pool: Pool) -> None:
    job_id = await queue.send("clip", {})
    seen = []
    for _ in range(3):
        (delivery,) = await queue.fetch("clip")
        seen.append(delivery.retry_count)
        states = await queue.fail("clip", [delivery.fence], [{"message": "no"}])
    assert seen == [0, 1, 2]
    assert states == {job_id: "failed"}
    assert await queue.fetch("clip") == []


@pytest.mark.parametrize("failures", [0, 1, 3])
async def test_backoff_doubles_with_jitter_up_to_its_cap(queue: PgBoss, pool: Pool, failures: int) -> None:
    await queue.create_queue("slow", retry_limit=9, retry_delay=2, retry_backoff=True)
    job_id = await queue.send("slow", {})
    for _ in range(failures + 1):
        await pool.execute("UPDATE pgboss.job SET start_after = now()")
        (delivery,) = await queue.fetch("slow")
        await queue.fail("slow", [delivery.fence])
    wait = await pool.fetchval("SELECT extract(epoch FROM start_after - now()) FROM pgboss.job WHERE id = $1", job_id)
    assert 2 * 2**failures - 1 <= wait <= 4 * 2**failures
    await pool.execute("UPDATE pgboss.job SET start_after = now(), retry_delay_max = 1")
    (delivery,) = await queue.fetch("slow")
    await queue.fail("slow", [delivery.fence])
    assert await pool.fetchval("SELECT start_after - now() <= interval '1 s' FROM pgboss.job WHERE id = $1", job_id)


async def test_settle_with_an_old_fence_touches_nothing(queue: PgBoss, pool: Pool) -> None:
    job_id = await queue.send("clip", {})
    (delivery,) = await queue.fetch("clip")
    await queue.fail("clip", [delivery.fence])
    (again,) = await queue.fetch("clip")
    assert again.retry_count == delivery.retry_count + 1
    assert await queue.complete("clip", [delivery.fence]) == set()
    assert await queue.fail("clip", [delivery.fence]) == {}
    assert await queue.touch("clip", [delivery.fence]) == set()
    assert await queue.restore("clip", [delivery.fence]) == set()
    assert await state_of(pool, job_id) == "active"
    assert await queue.touch("clip", [again.fence]) == {job_id}


async def test_cancelled_job_cannot_be_completed(queue: PgBoss, pool: Pool) -> None:
    job_id = await queue.send("clip", {})
    (delivery,) = await queue.fetch("clip")
    assert job_id is not None
    assert await queue.cancel("clip", [job_id]) == {job_id}
    assert await queue.complete("clip", [delivery.fence]) == set()
    assert await state_of(pool, job_id) == "cancelled"


async def test_stately_job_with_another_in_retry_fails_for_good(queue: PgBoss, pool: Pool) -> None:
    await queue.create_queue("stately", policy="stately", retry_limit=5)
    await queue.send("stately", {})
    (first,) = await queue.fetch("stately")
    await queue.fail("stately", [first.fence])
    await pool.execute("UPDATE pgboss.job SET start_after = now() + interval '1 hour'")
    second_id = await queue.send("stately", {})
    (second,) = await queue.fetch("stately")
    assert await queue.fail("stately", [second.fence]) == {second_id: "failed"}


async def test_unfenced_fail_reaches_a_waiting_job(queue: PgBoss) -> None:
    job_id = await queue.send("clip", {})
    assert job_id is not None
    assert await queue.fail("clip", [Fence(job_id)], is_final=True) == {job_id: "failed"}


class TestSchema:
    async def test_absent_schema_is_refused_and_then_created(self, empty_dsn: str) -> None:
        pool = await open_pool(empty_dsn, name="tests")
        try:
            with pytest.raises(SchemaUnsupported, match="no pg-boss schema"):
                await attach_schema(pool, "jobs")
            assert await ensure_schema(pool, "jobs") == 46
            assert await read_version(pool, "jobs") == 46
        finally:
            await pool.close()

    @pytest.mark.parametrize(
        ("version", "words"), [(24, "upgrade pg-boss"), (36, "37 or newer"), (999, "upgrade clipboss")]
    )
    async def test_version_out_of_range_is_refused_without_a_write(self, pool: Pool, version: int, words: str) -> None:
        await pool.execute("UPDATE pgboss.version SET version = $1", version)
        with pytest.raises(SchemaUnsupported, match=words):
            await PgBoss.install(pool)
        assert await read_version(pool, "pgboss") == version

    async def test_racing_creators_make_one_schema(self, empty_dsn: str) -> None:
        pool = await open_pool(empty_dsn, name="tests", size=4)
        try:
            assert await asyncio.gather(*(ensure_schema(pool, "pgboss") for _ in range(4))) == [46] * 4
        finally:
            await pool.close()


async def test_columns_of_newer_schemas_are_left_out_on_older_ones(pool: Pool, queue: PgBoss) -> None:
    """Schema 37 lacks upsert_by_key, trace_context and source_output: nothing may name them."""
    await pool.execute("UPDATE pgboss.version SET version = 37")
    for column in ("upsert_by_key", "trace_context", "source_output", "source_root_id"):
        await pool.execute(f"ALTER TABLE pgboss.job DROP COLUMN {column} CASCADE")
    old = await PgBoss.attach(pool)
    await old.create_queue("graveyard")
    await pool.execute("UPDATE pgboss.queue SET dead_letter = 'graveyard' WHERE name = 'clip'")
    await old.send("clip", {"x": 1})
    (delivery,) = await old.fetch("clip")
    assert await old.restore("clip", [delivery.fence]) == {delivery.id}
    (delivery,) = await old.fetch("clip")
    await old.fail("clip", [delivery.fence], [{"message": "no"}], is_final=True)
    buried = await pool.fetchrow("SELECT data, output, source_id FROM pgboss.job WHERE name = 'graveyard'")
    assert buried is not None
    assert tuple(buried) == ({"x": 1}, {"message": "no"}, delivery.id)
