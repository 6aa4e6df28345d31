"""Occurrences of cron expressions, as pg-boss's own parser finds them."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.errors import ConfigError
from worker.queue.recurrence import check_cron, kind_of, latest_occurrence, minute_slot, occurrence_key

LONG_AGO = datetime(1990, 1, 1, tzinfo=UTC)
NAMES = st.text("ab_.-/", min_size=1, max_size=6)
KEYS = st.text("ab_.-/", max_size=6)
MOMENTS = st.integers(0, 15 * 365 * 86400).map(
    lambda seconds: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)
ZONES = st.sampled_from(["UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata"])
CRONS = st.sampled_from(
    ["* * * * *", "*/7 * * * *", "30 2 * * *", "15,45 */3 * * 1-5", "10 30 1 * * *", "*/20 * * * * *", "0 0 L * *"]
)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def all_between(cron: str, tz: str, start: str, end: str) -> list[str]:
    found, until = [], moment(end)
    while (at := latest_occurrence(cron, tz, after=moment(start), until=until)) is not None:
        found.append(at.strftime("%d %H:%M"))
        until = at - timedelta(seconds=1)
    return found[::-1]


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("* * * * *", "2026-11-18T10:20:00"),
        ("*/15 * * * *", "2026-11-18T10:15:00"),
        ("*/20 * * * * *", "2026-11-18T10:20:20"),
        ("5/10 * * * *", "2026-11-18T10:15:00"),
        ("7-7/5 * * * *", "2026-11-18T10:07:00"),
        ("0 9 * jan-mar MON-FRI", "2026-03-31T09:00:00"),
        ("0 0 L * *", "2026-10-31T00:00:00"),
        ("0 0 * * 5L", "2026-10-30T00:00:00"),
        ("0 0 * * 1#2", "2026-11-09T00:00:00"),
        ("0 0 * * 7", "2026-11-15T00:00:00"),
        ("0 0 ? * SUN", "2026-11-15T00:00:00"),
        # either day field, when both are given; a step is given
        ("0 0 1 * MON", "2026-11-16T00:00:00"),
        ("0 0 */10 * MON", "2026-11-16T00:00:00"),
        ("@daily", "2026-11-18T00:00:00"),
        ("@weekdays", "2026-11-18T00:00:00"),
    ],
)
def test_expression_finds_its_last_occurrence(cron: str, expected: str) -> None:
    assert latest_occurrence(cron, "UTC", after=LONG_AGO, until=moment("2026-11-18T10:20:33.250")) == moment(expected)


def test_window_is_open_at_its_start_and_closed_at_its_end() -> None:
    noon = moment("2026-11-18T12:00:00")
    assert latest_occurrence("0 12 * * *", "UTC", after=noon - timedelta(seconds=60), until=noon) == noon
    assert latest_occurrence("0 12 * * *", "UTC", after=noon, until=noon + timedelta(seconds=60)) is None


@pytest.mark.parametrize(
    ("tz", "cron", "start", "end", "expected"),
    [
        # 02:00 to 03:00 does not exist on that day
        ("America/New_York", "30 2 * * *", "2026-03-07T00:00", "2026-03-10T00:00", ["07 07:30", "09 06:30"]),
        ("Europe/Berlin", "30 2 * * *", "2026-03-28T00:00", "2026-03-31T00:00", ["28 01:30", "30 00:30"]),
        # 01:00 to 02:00 (02:00 to 03:00) comes twice
        (
            "America/New_York",
            "30 1 * * *",
            "2026-10-31T00:00",
            "2026-11-03T00:00",
            ["31 05:30", "01 05:30", "01 06:30", "02 06:30"],
        ),
        (
            "Europe/Berlin",
            "30 2 * * *",
            "2026-10-24T00:00",
            "2026-10-27T00:00",
            ["24 00:30", "25 00:30", "25 01:30", "26 01:30"],
        ),
        ("Europe/Berlin", "0 */2 * * *", "2026-03-28T22:30", "2026-03-29T04:30", ["28 23:00", "29 02:00", "29 04:00"]),
    ],
)
def test_daylight_saving_follows_the_wall_clock(tz: str, cron: str, start: str, end: str, expected: list[str]) -> None:
    assert all_between(cron, tz, start, end) == expected


@pytest.mark.parametrize(
    "cron",
    [
        "",
        "* * * *",
        "* * * * * * *",
        "61 * * * *",
        "a * * * *",
        "0 0 30 2 *",
        "0 0 LW * *",
        "0 0 * * 1#2,5#1",
        "@never",
    ],
)
def test_what_pg_boss_would_not_read_is_refused(cron: str) -> None:
    with pytest.raises(ConfigError, match="is not a cron expression"):
        check_cron(cron, "UTC")


@pytest.mark.parametrize("tz", ["Europe/Atlantis", "", "../etc/passwd", "America"])
def test_unknown_time_zone_is_refused(tz: str) -> None:
    with pytest.raises(ConfigError, match="is not a time zone"):
        check_cron("* * * * *", tz)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("* * * * *", "cron"),
        ("0 9 * JAN-MAR MON-FRI", "cron"),
        ("FREQ=DAILY;INTERVAL=2", "rrule"),
        ("DTSTART;TZID=Europe/Berlin:20260101T090000\nRRULE:FREQ=DAILY", "rrule"),
    ],
)
def test_kind_is_read_from_the_text(text: str, kind: str) -> None:
    assert kind_of(text) == kind


def test_expression_that_never_occurs_has_no_occurrence() -> None:
    assert latest_occurrence("0 0 * 2 1#5", "UTC", after=moment("2026-01-01"), until=moment("2026-12-31")) is None


@settings(max_examples=150, deadline=None)
@given(cron=CRONS, tz=ZONES, now=MOMENTS, later=st.integers(0, 59))
def test_occurrence_has_the_same_slot_for_whoever_sees_it(cron: str, tz: str, now: datetime, later: int) -> None:
    window = timedelta(seconds=60)
    found = latest_occurrence(cron, tz, after=now - window, until=now)
    if found is None:
        return
    assert now - window < found <= now
    again = latest_occurrence(cron, tz, after=found - window, until=found)
    assert again == found
    slot = minute_slot(found)
    assert slot.tzinfo is None
    assert (slot.second, slot.microsecond) == (0, 0)
    assert slot == minute_slot(found.astimezone(ZoneInfo(tz)).replace(second=later))


@given(st.tuples(NAMES, KEYS), st.tuples(NAMES, KEYS))
def test_schedules_never_share_a_key(one: tuple[str, str], other: tuple[str, str]) -> None:
    same = occurrence_key(*one, version=46) == occurrence_key(*other, version=46)
    assert same == (one == other)


@pytest.mark.parametrize(
    ("version", "expected"), [(46, r"my\_queue__k_1"), (41, r"my\_queue__k_1"), (40, "my_queue__k_1")]
)
def test_key_has_the_form_of_the_schemas_release(version: int, expected: str) -> None:
    assert occurrence_key("my_queue", "k_1", version=version) == expected
