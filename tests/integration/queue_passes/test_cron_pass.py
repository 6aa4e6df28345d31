"""Running the schedules, by the database's clock."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from queue_clock import Clock

from worker.db.pool import Pool
from worker.db.sql import load_queries
from worker.queue import PgBoss
from worker.queue.cron import FORWARDING_QUEUE, CronForwards, CronPass

NOON = datetime(2026, 6, 1, 12, 0, 10, tzinfo=UTC)


async def filings(pool: Pool) -> list[asyncpg.Record]:
    return await pool.fetch(
        "SELECT *, state::text AS state FROM pgboss.job WHERE name = $1 ORDER BY singleton_on", FORWARDING_QUEUE
    )


async def slots(pool: Pool) -> list[str]:
    return [f"{row['singleton_on']:%m-%d %H:%M}" for row in await filings(pool)]


async def run_at(boss: PgBoss, clock: Clock, at: datetime) -> CronPass:
    await clock.set(at)
    return await boss.run_cron_once()


async def test_due_schedule_is_filed_as_node_files_it(boss: PgBoss, clocked: Pool, clock: Clock) -> None:
    await boss.create_queue("my_queue")
    await boss.schedule("my_queue", "* * * * *", {"a": 1}, key="k_1", priority=7)
    assert await run_at(boss, clock, NOON) == CronPass(filed=1)
    (row,) = await filings(clocked)
    assert row["data"] == {
        "name": "my_queue",
        "key": "k_1",
        "data": {"a": 1},
        "options": {"tz": "UTC", "key": "k_1", "priority": 7},
        "slot": "2026-06-01 12:00:00",
    }
    assert (row["singleton_key"], row["singleton_on"]) == (r"my\_queue__k_1", NOON.replace(second=0, tzinfo=None))
    assert (row["state"], row["policy"], row["retry_limit"]) == ("created", "standard", 2)
    assert row["keep_until"] - row["start_after"] == timedelta(days=14)


async def test_filed_occurrence_is_sent_with_the_schedules_options(boss: PgBoss, clock: Clock) -> None:
    await boss.schedule("q", "* * * * *", {"a": 1}, key="k", priority=7, retry_limit=9, group_id="g")
    await run_at(boss, clock, NOON)
    forwards = await boss.work_cron_once()
    (job_id,) = forwards.sent
    assert forwards == CronForwards((job_id,), refused=0, failed=0)
    (delivery,) = await boss.fetch("q", 5)
    assert (delivery.id, delivery.data, delivery.priority, delivery.retry_limit, delivery.group_id) == (
        job_id,
        {"a": 1},
        7,
        9,
        "g",
    )
    (schedule,) = await boss.get_schedules()
    assert schedule.last_job_id == job_id
    assert await boss.work_cron_once() == CronForwards()


async def test_every_minute_fires_once_however_often_the_pass_runs(boss: PgBoss, clocked: Pool, clock: Clock) -> None:
    await boss.schedule("q", "* * * * *")
    for seconds in range(0, 180, 30):
        await run_at(boss, clock, NOON + timedelta(seconds=seconds))
        await boss.work_cron_once()
    assert await slots(clocked) == ["06-01 12:00", "06-01 12:01", "06-01 12:02"]
    assert len(await boss.fetch("q", 10)) == 3


async def test_pass_is_taken_once_in_thirty_seconds(boss: PgBoss, clocked: Pool, clock: Clock) -> None:
    await boss.schedule("q", "* * * * * *")
    assert (await run_at(boss, clock, NOON)).filed == 1
    await clocked.execute("DELETE FROM pgboss.job")
    assert (await run_at(boss, clock, NOON + timedelta(seconds=29))).filed == 0
    assert (await run_at(boss, clock, NOON + timedelta(seconds=30))).filed == 1


@pytest.mark.parametrize(("seconds", "filed"), [(-1, 0), (0, 1), (59, 1), (60, 0)])
async def test_occurrence_is_due_for_a_minute(boss: PgBoss, clock: Clock, seconds: int, filed: int) -> None:
    await boss.schedule("q", "30 12 * * *")
    at = datetime(2026, 6, 1, 12, 30, tzinfo=UTC) + timedelta(seconds=seconds)
    assert (await run_at(boss, clock, at)).filed == filed


async def test_seconds_lead_and_share_the_minutes_slot(boss: PgBoss, clocked: Pool, clock: Clock) -> None:
    await boss.schedule("q", "45 * * * * *")
    await run_at(boss, clock, NOON)
    assert await slots(clocked) == ["06-01 11:59"]
    await run_at(boss, clock, NOON + timedelta(seconds=30))
    assert await slots(clocked) == ["06-01 11:59"]
    await run_at(boss, clock, NOON + timedelta(seconds=60))
    assert await slots(clocked) == ["06-01 11:59", "06-01 12:00"]


@pytest.mark.parametrize(
    ("tz", "cron", "start", "expected"),
    [
        ("America/New_York", "30 2 * * *", "2026-03-08T05:00", []),
        ("America/New_York", "30 1 * * *", "2026-11-01T04:00", ["11-01 05:30", "11-01 06:30"]),
        ("Europe/Berlin", "30 2 * * *", "2026-03-29T00:00", []),
        ("Europe/Berlin", "30 2 * * *", "2026-10-25T00:00", ["10-25 00:30", "10-25 01:30"]),
        ("Europe/Berlin", "30 9 * * *", "2026-10-25T06:00", ["10-25 08:30"]),
    ],
)
async def test_daylight_saving(
    boss: PgBoss, clocked: Pool, clock: Clock, tz: str, cron: str, start: str, expected: list[str]
) -> None:
    await boss.schedule("q", cron, tz=tz)
    first = datetime.fromisoformat(start).replace(tzinfo=UTC)
    for half_hours in range(7):
        await run_at(boss, clock, first + timedelta(minutes=30 * half_hours, seconds=20))
    assert await slots(clocked) == expected


async def outage(boss: PgBoss, clocked: Pool, clock: Clock, *, missed: Any, created: datetime) -> list[str]:
    """The slots of an hourly schedule, run at 12:00 and then not before 17:30."""
    await boss.schedule("q", "0 * * * *", missed=missed)
    await clocked.execute("UPDATE pgboss.schedule SET created_on = $1", created)
    await run_at(boss, clock, NOON + timedelta(seconds=5))
    await run_at(boss, clock, NOON + timedelta(hours=5, minutes=30))
    await run_at(boss, clock, NOON + timedelta(hours=5, minutes=31))
    return await slots(clocked)


@pytest.mark.parametrize(
    ("missed", "created", "expected"),
    [
        (None, NOON - timedelta(days=1), ["06-01 12:00"]),
        ("skip", NOON - timedelta(days=1), ["06-01 12:00"]),
        ("once", NOON - timedelta(days=1), ["06-01 12:00", "06-01 17:00"]),
        # nothing is owed from before the schedule existed
        ("once", NOON + timedelta(hours=5, minutes=10), ["06-01 12:00"]),
    ],
)
async def test_missed_occurrences(
    boss: PgBoss, clocked: Pool, clock: Clock, missed: Any, created: datetime, expected: list[str]
) -> None:
    assert await outage(boss, clocked, clock, missed=missed, created=created) == expected


async def test_missed_and_due_are_both_filed(boss: PgBoss, clocked: Pool, clock: Clock) -> None:
    await boss.schedule("q", "0 * * * *", missed="once")
    await clocked.execute("UPDATE pgboss.schedule SET created_on = $1", NOON - timedelta(days=1))
    await run_at(boss, clock, NOON)
    await run_at(boss, clock, NOON + timedelta(hours=5))
    assert await slots(clocked) == ["06-01 12:00", "06-01 16:00", "06-01 17:00"]


async def test_last_job_is_that_of_the_newest_slot(boss: PgBoss, clocked: Pool, clock: Clock) -> None:
    for minutes in range(3):
        await boss.schedule("q", "* * * * *", {"minute": minutes})
        await run_at(boss, clock, NOON + timedelta(minutes=minutes))
    # Whatever order they come in: here, newest first.
    await clocked.execute("UPDATE pgboss.job SET created_on = $1::timestamptz - (created_on - $1::timestamptz)", NOON)
    assert len((await boss.work_cron_once()).sent) == 3
    (schedule,) = await boss.get_schedules()
    last = await clocked.fetchval("SELECT data FROM pgboss.job WHERE id = $1", schedule.last_job_id)
    assert last == {"minute": 2}


async def test_turn_is_taken_by_one_of_those_who_wait_for_it(boss: PgBoss, clocked: Pool) -> None:
    claim = load_queries("worker.queue", queue_schema="pgboss", queue_version=boss.version)["claim_cron"]
    async with clocked.acquire() as holder, holder.transaction():
        await holder.execute("SELECT FROM pgboss.version FOR UPDATE")
        waiting = [asyncio.create_task(clocked.fetchrow(claim)) for _ in range(3)]
        async with asyncio.timeout(10):
            while await holder.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted") < 3:
                await asyncio.sleep(0.01)
    assert sum(row is not None for row in await asyncio.gather(*waiting)) == 1


async def test_passes_at_once_file_each_minute_once(boss: PgBoss, clocked: Pool, clock: Clock) -> None:
    for key in ("", "a", "b"):
        await boss.schedule("q", "* * * * *", key=key)
    await clock.set(NOON)
    passes = await asyncio.gather(*(boss.run_cron_once() for _ in range(8)))
    assert sorted(each.filed for each in passes) == [0] * 7 + [3]
    # Without a turn to take, as among passes with a recurrence rule, the slots alone must hold.
    await boss.schedule("q", "FREQ=DAILY", key="rule")
    await clock.set(NOON + timedelta(minutes=1))
    passes = await asyncio.gather(*(boss.run_cron_once() for _ in range(8)))
    assert sum(each.filed for each in passes) == 3
    forwards = await asyncio.gather(*(boss.work_cron_once() for _ in range(8)))
    assert sum(len(each.sent) for each in forwards) == 6
    assert len(await boss.fetch("q", 20)) == 6


async def test_node_that_filed_first_is_not_repeated(boss: PgBoss, clocked: Pool, clock: Clock) -> None:
    await boss.schedule("q", "* * * * *")
    await run_at(boss, clock, NOON)
    await clocked.execute("UPDATE pgboss.job SET state = 'completed', completed_on = now()")
    await clocked.execute("UPDATE pgboss.version SET cron_on = NULL")
    assert (await run_at(boss, clock, NOON + timedelta(seconds=20))).filed == 0


async def test_unreadable_schedule_does_not_stop_the_others(boss: PgBoss, clocked: Pool, clock: Clock) -> None:
    for key in ("a", "b", "c"):
        await boss.schedule("q", "* * * * *", key=key)
    await clocked.execute("UPDATE pgboss.schedule SET cron = 'H * * * *' WHERE key = 'a'")
    await clocked.execute("UPDATE pgboss.schedule SET timezone = 'Mars/Olympus' WHERE key = 'b'")
    done = await run_at(boss, clock, NOON)
    assert done.filed == 1
    assert [sentence.split(":")[0] for sentence in done.skipped] == ["q (key 'a')", "q (key 'b')"]


async def test_recurrence_rules_leave_the_turn_to_node(boss: PgBoss, clocked: Pool, clock: Clock) -> None:
    await boss.schedule("q", "FREQ=DAILY", key="rule")
    await boss.schedule("q", "* * * * *")
    done = await run_at(boss, clock, NOON)
    assert (done.filed, len(done.skipped)) == (1, 1)
    assert "Node" in done.skipped[0]
    assert await clocked.fetchval("SELECT cron_on FROM pgboss.version") is None


async def test_refused_send_counts_and_leaves_last_job_alone(boss: PgBoss, clock: Clock) -> None:
    await boss.create_queue("short", policy="short")
    await boss.schedule("short", "* * * * *")
    await run_at(boss, clock, NOON)
    (first,) = (await boss.work_cron_once()).sent
    await run_at(boss, clock, NOON + timedelta(minutes=1))
    assert await boss.work_cron_once() == CronForwards(refused=1)
    (schedule,) = await boss.get_schedules()
    assert schedule.last_job_id == first


@pytest.mark.parametrize("data", [{"name": "gone"}, {"nothing": 1}, None, {"name": "q", "options": {"retryLimit": -1}}])
async def test_what_cannot_be_sent_on_fails_alone(boss: PgBoss, clocked: Pool, clock: Clock, data: Any) -> None:
    await boss.schedule("q", "* * * * *")
    await run_at(boss, clock, NOON)
    bad = await boss.send(FORWARDING_QUEUE, data)
    forwards = await boss.work_cron_once()
    assert (len(forwards.sent), forwards.failed) == (1, 1)
    row = await clocked.fetchrow("SELECT state::text, output FROM pgboss.job WHERE id = $1", bad)
    assert row is not None
    assert row["state"] == "retry"
    assert row["output"]["message"]


async def test_forward_that_is_no_longer_ours_sends_nothing(boss: PgBoss, clocked: Pool, clock: Clock) -> None:
    """The claim goes to somebody else between fetch and send: a trigger plays that somebody."""
    await boss.schedule("q", "* * * * *")
    await run_at(boss, clock, NOON)
    await clocked.execute(
        f"""
        CREATE FUNCTION fake.steal() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            UPDATE pgboss.job SET retry_count = retry_count + 1 WHERE name = '{FORWARDING_QUEUE}';
            RETURN NEW;
        END $$;
        CREATE TRIGGER steal BEFORE INSERT ON pgboss.job_common FOR EACH ROW WHEN (NEW.name = 'q')
            EXECUTE FUNCTION fake.steal();
        """
    )
    assert await boss.work_cron_once() == CronForwards()
    assert await boss.fetch("q") == []


@pytest.mark.parametrize(("version", "slot"), [(41, "06-01 12:00"), (42, "06-01 11:59")])
async def test_older_release_takes_the_minute_in_which_it_files(
    boss: PgBoss, clocked: Pool, clock: Clock, version: int, slot: str
) -> None:
    older = PgBoss(clocked, schema=boss.schema, version=version)
    await older.schedule("q", "45 * * * * *")
    await run_at(older, clock, NOON)
    assert await slots(clocked) == [slot]


async def test_older_schema_files_with_the_plain_key(old_boss: PgBoss, pool: Pool) -> None:
    await old_boss.create_queue("my_queue")
    await old_boss.schedule("my_queue", "* * * * *", {"a": 1}, key="k")
    assert (await old_boss.run_cron_once()).filed == 1
    (row,) = await filings(pool)
    assert row["singleton_key"] == "my_queue__k"
    assert row["singleton_on"] == row["created_on"].replace(second=0, microsecond=0, tzinfo=None)
    assert len((await old_boss.work_cron_once()).sent) == 1
    assert [delivery.data for delivery in await old_boss.fetch("my_queue")] == [{"a": 1}]
