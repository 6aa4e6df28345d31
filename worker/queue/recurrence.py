"""When a schedule is due: cron text and time zone to moments, agreeing with pg-boss's parser to the second."""

import re
from datetime import UTC, datetime, tzinfo
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from worker.errors import ConfigError

Kind = Literal["cron", "rrule"]

_RRULE = re.compile(r"FREQ=|DTSTART|RRULE|RDATE|EXDATE", re.IGNORECASE)
_PRESETS = {
    "@yearly": "0 0 0 1 1 *",
    "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0",
    "@daily": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
    "@minutely": "0 * * * * *",
    "@secondly": "* * * * * *",
    "@weekdays": "0 0 0 * * 1-5",
    "@weekends": "0 0 0 * * 0,6",
}
#: the simulator reads 5-5/2 as 5/2, which goes on to the end
_STEPS_OF_ONE = re.compile(r"\b(\w+)-\1/\d+")
_STEPS_OF_ALL = re.compile(r"\*/\d+")


def kind_of(text: str) -> Kind:
    """Recurrence rules are told from cron by their words, whatever the column says."""
    return "rrule" if _RRULE.search(text) else "cron"


def check_cron(text: str, tz: str) -> None:
    """ConfigError unless both this client and pg-boss can evaluate it."""
    _simulate(text, datetime.now(_zone(tz)))


def latest_occurrence(text: str, tz: str, *, after: datetime, until: datetime) -> datetime | None:
    """The last moment in (after, until] at which the wall clock of `tz` matches, in UTC."""
    # Backwards gives what lies strictly before its start; a microsecond later, the second itself counts.
    start = until.astimezone(_zone(tz)).replace(microsecond=1)
    found = next(_simulate(text, start), None)
    return found.astimezone(UTC) if found is not None and found > after else None


def minute_slot(moment: datetime) -> datetime:
    """The slot that makes an occurrence unique across processes: its minute, as pg-boss's zone-less UTC time."""
    return moment.astimezone(UTC).replace(second=0, microsecond=0, tzinfo=None)


def occurrence_key(name: str, key: str, *, version: int) -> str:
    """Names the schedule in its slots. Before schema 41, `a__b` and key `c` met `a` and key `b__c`."""
    escaped = name if version < 41 else name.replace("_", r"\_")
    return f"{escaped}__{key}"


def _simulate(text: str, start: datetime) -> CronSim:
    fields = _six_fields(text)
    try:
        return CronSim(" ".join(fields), start, reverse=True)
    except CronSimError as exc:
        raise ConfigError(f"{text!r} is not a cron expression: {exc}") from exc


def _six_fields(text: str) -> list[str]:
    """Seconds first, in words that mean the same to both parsers.

    With six fields the simulator matches the wall clock as it is: a time that daylight saving skips does not occur,
    one that comes twice occurs twice, as for pg-boss. With five it would follow Debian's cron.
    """
    plain = _PRESETS.get(text.strip().lower(), text).upper().replace("?", "*")
    fields = _STEPS_OF_ONE.sub(r"\1", plain).split()
    if len(fields) == 5:
        fields.insert(0, "0")
    if len(fields) != 6:
        raise ConfigError(f"{text!r} is not a cron expression: 5 fields are needed, or 6 with seconds first")
    *clock, day, month, weekday = fields
    if "W" in day or ("#" in weekday and "," in weekday):
        raise ConfigError(f"{text!r} is not a cron expression that pg-boss understands (W, or # in a list)")
    # Days given by step are a choice (either day field may match), not the absence of one (both must).
    if _STEPS_OF_ALL.fullmatch(day):
        day = day.replace("*", "1-31")
    if _STEPS_OF_ALL.fullmatch(weekday):
        weekday = weekday.replace("*", "0-7")
    return [*clock, day, month, weekday]


def _zone(name: str) -> tzinfo:
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise ConfigError(f"{name!r} is not a time zone; give a name such as Europe/Berlin") from exc
