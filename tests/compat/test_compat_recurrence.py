"""Cron times, slots and keys over random inputs, against pg-boss's own cron pass at chosen moments."""

import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tests.compat.conftest import StartNode
from worker.db.pool import Pool
from worker.queue import PgBoss
from worker.queue.recurrence import latest_occurrence, minute_slot, occurrence_key

# Without Australia/Lord_Howe, whose clocks change by half an hour: there pg-boss's parser loses its way.
ZONES = ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Sydney", "Pacific/Apia"]
QUEUES = ["plain", "under_score", "a__b", "dots.and-dashes/slashes", "_"]
START = datetime(2026, 1, 1, tzinfo=UTC)
#: clocks go forward and back in New York, Berlin and Sydney
CHANGES = [
    datetime(2026, 3, 8, 7, tzinfo=UTC),
    datetime(2026, 3, 29, 1, tzinfo=UTC),
    datetime(2026, 4, 4, 16, tzinfo=UTC),
    datetime(2026, 10, 3, 16, tzinfo=UTC),
    datetime(2026, 10, 25, 1, tzinfo=UTC),
    datetime(2026, 11, 1, 6, tzinfo=UTC),
]


def a_field(value: int, least: int, most: int) -> str:
    """Text of a cron field, which more often than not matches `value`."""
    low, high = random.randint(least, value), random.randint(value, most)
    # pg-boss refuses a value that is named twice
    other = random.choice([number for number in range(least, most + 1) if number != value])
    return random.choice(
        [
            "*",
            "*",
            "*",
            str(value),
            f"{low}-{high}",
            f"{value},{other}",
            f"*/{random.randint(1, 7)}",
            f"{low}-{high}/{random.randint(1, 5)}",
            str(random.randint(least, most)),
        ]
    )


def a_cron(at: datetime) -> str:
    fields = [
        a_field(at.minute, 0, 59),
        a_field(at.hour, 0, 23),
        random.choice(["*", "*", a_field(min(at.day, 28), 1, 28)]),
        random.choice(["*", "*", a_field(at.month, 1, 12), at.strftime("%b")]),
        random.choice(["*", "*", "1-5", a_field(at.isoweekday() % 7, 0, 6), at.strftime("%a").upper()]),
    ]
    if random.random() < 0.2:
        fields.insert(0, random.choice(["0", "*/20", "15,45", "*"]))
    return " ".join(fields)


def moments() -> list[datetime]:
    """Ascending, at least a minute apart: any time of some years, whole minutes, and around changes of the clocks."""
    any_time = [START + timedelta(seconds=random.randrange(3 * 365 * 86400)) for _ in range(8)]
    whole = [moment.replace(second=0) for moment in any_time[:3]]
    changes = [change + timedelta(minutes=random.randint(-90, 90), seconds=random.randint(0, 59)) for change in CHANGES]
    return sorted(any_time[3:] + whole + changes + [change + timedelta(seconds=1) for change in CHANGES])


async def test_occurrences_slots_and_keys_equal_those_of_node(boss: PgBoss, start_node: StartNode, pool: Pool) -> None:
    for queue in QUEUES:
        await boss.create_queue(queue)
    node = await start_node(schedule=True, testClock=int(START.timestamp() * 1000))
    compared = 0
    for moment in moments():
        schedules = []
        for number in range(60):
            zone = random.choice(ZONES)
            cron = a_cron(moment.astimezone(ZoneInfo(zone)))
            schedules.append((random.choice(QUEUES), f"k_{number}", cron, zone))
        await pool.execute("DELETE FROM pgboss.schedule")
        # Before there are schedules: Node's own pass may come at any time.
        await node.call("setTime", int(moment.timestamp() * 1000))
        await pool.execute("DELETE FROM pgboss.job WHERE name = '__pgboss__send-it'")
        await pool.executemany(
            "INSERT INTO pgboss.schedule (name, key, cron, timezone) VALUES ($1, $2, $3, $4)", schedules
        )
        await node.call("tick", 1)
        rows = await pool.fetch("SELECT * FROM pgboss.job WHERE name = '__pgboss__send-it'")
        theirs = {(row["singleton_key"], row["singleton_on"], row["data"]["slot"]) for row in rows}

        ours = set()
        # Node's pass comes with the tick, a millisecond into the moment at most.
        for name, key, cron, zone in schedules:
            due = latest_occurrence(cron, zone, after=moment - timedelta(seconds=60), until=moment)
            if due is not None:
                slot = minute_slot(due)
                ours.add((occurrence_key(name, key, version=46), slot, slot.strftime("%Y-%m-%d %H:%M:%S")))
        by_key = {occurrence_key(name, key, version=46): (cron, zone) for name, key, cron, zone in schedules}
        assert {(*by_key[key], slot) for key, slot, _ in ours} == {(*by_key[key], slot) for key, slot, _ in theirs}, (
            moment
        )
        assert ours == theirs
        compared += len(theirs)
    assert compared > 100
    assert await node.call("events") == []
