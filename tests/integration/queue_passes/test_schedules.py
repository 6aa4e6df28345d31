"""Schedule rows."""

from typing import Any

import pytest

from worker.db.pool import Pool
from worker.errors import ConfigError, QueueMissing
from worker.queue import PgBoss


async def test_schedule_is_stored_in_pg_bosss_words(queue: PgBoss) -> None:
    await queue.schedule(
        "clip",
        "0 9 * * MON-FRI",
        {"a": 1},
        tz="America/New_York",
        key="k_1",
        missed="once",
        retry_limit=3,
        singleton_key="s",
        group_id="g",
        group_tier="gold",
    )
    (row,) = await queue.get_schedules()
    assert (row.name, row.key, row.kind, row.cron, row.timezone) == (
        "clip",
        "k_1",
        "cron",
        "0 9 * * MON-FRI",
        "America/New_York",
    )
    assert row.data == {"a": 1}
    assert row.options == {
        "tz": "America/New_York",
        "key": "k_1",
        "missed": "once",
        "retryLimit": 3,
        "singletonKey": "s",
        "group": {"id": "g", "tier": "gold"},
    }
    assert row.last_job_id is None


async def test_second_call_replaces_the_first_of_its_key(queue: PgBoss, pool: Pool) -> None:
    await queue.schedule("clip", "0 9 * * *", {"a": 1}, priority=2)
    (before,) = await queue.get_schedules("clip")
    await queue.schedule("clip", "0 10 * * *")
    await queue.schedule("clip", "0 11 * * *", key="other")
    first, other = await queue.get_schedules("clip")
    assert (first.cron, first.data, first.options) == ("0 10 * * *", None, {"tz": "UTC"})
    assert first.created_on == before.created_on
    assert first.updated_on > before.updated_on
    assert (other.key, other.cron) == ("other", "0 11 * * *")
    assert await pool.fetchval("SELECT data IS NULL FROM pgboss.schedule WHERE key = ''")


async def test_schedules_are_found_and_removed_by_queue_and_key(queue: PgBoss) -> None:
    await queue.create_queue("b")
    for name, key in (("clip", ""), ("clip", "x"), ("b", "x")):
        await queue.schedule(name, "* * * * *", key=key)
    assert [(row.name, row.key) for row in await queue.get_schedules()] == [("b", "x"), ("clip", ""), ("clip", "x")]
    assert [(row.name, row.key) for row in await queue.get_schedules("clip", "x")] == [("clip", "x")]
    assert await queue.unschedule("clip", "x")
    assert not await queue.unschedule("clip", "x")
    assert [row.key for row in await queue.get_schedules("clip")] == [""]


async def test_recurrence_rule_is_stored_as_one(queue: PgBoss) -> None:
    await queue.schedule("clip", "RRULE:FREQ=DAILY;BYHOUR=9", tz="Europe/Berlin")
    (row,) = await queue.get_schedules()
    assert (row.kind, row.cron) == ("rrule", "RRULE:FREQ=DAILY;BYHOUR=9")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"cron": "every day"}, "5 fields"),
        ({"cron": "99 * * * *"}, "minute"),
        ({"tz": "Mars/Olympus"}, "time zone"),
        ({"cron": "FREQ=DAILY", "tz": "Mars/Olympus"}, "time zone"),
        ({"key": "no spaces"}, "key"),
        ({"missed": "twice"}, "missed"),
        ({"id": "00000000-0000-0000-0000-000000000001"}, "id"),
        ({"retry_limit": -1}, "retry_limit"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_what_makes_no_sense_is_refused(queue: PgBoss, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        await queue.schedule("clip", **{"cron": "* * * * *", **arguments})
    assert await queue.get_schedules() == []


async def test_schedule_needs_its_queue(queue: PgBoss) -> None:
    with pytest.raises(QueueMissing, match="'nope'"):
        await queue.schedule("nope", "* * * * *")


async def test_older_schema_has_cron_only(old_boss: PgBoss) -> None:
    await old_boss.schedule("q", "0 9 * * *", {"a": 1}, key="k")
    (row,) = await old_boss.get_schedules()
    assert (row.kind, row.cron, row.key, row.last_job_id) == ("cron", "0 9 * * *", "k", None)
    with pytest.raises(ConfigError, match="schema 41"):
        await old_boss.schedule("q", "FREQ=DAILY")
