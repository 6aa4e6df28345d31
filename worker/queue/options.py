"""What can be said of queues and jobs, in pg-boss's words with Python's spelling."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypedDict
from uuid import UUID

from worker.errors import ConfigError

Policy = Literal["standard", "short", "singleton", "stately", "exclusive", "key_strict_fifo"]


class QueueOptions(TypedDict, total=False):
    policy: Policy
    partition: bool
    retry_limit: int
    retry_delay: int
    retry_backoff: bool
    retry_delay_max: int
    expire_in_seconds: int
    retention_seconds: int
    delete_after_seconds: int
    warning_queue_size: int
    heartbeat_seconds: int
    dead_letter: str
    notify: bool


class SendOptions(TypedDict, total=False):
    #: chosen by the caller; a second send of the same id is refused
    id: UUID
    priority: int
    #: seconds from now, a moment, a duration, or text as pg-boss takes it ("5 minutes", "2030-01-01T00:00:00Z")
    start_after: int | float | timedelta | datetime | str
    singleton_key: str
    #: at most one job per slot of this many seconds (and key)
    singleton_seconds: int
    retry_limit: int
    retry_delay: int
    retry_backoff: bool
    retry_delay_max: int
    expire_in_seconds: int
    retention_seconds: int
    delete_after_seconds: int
    heartbeat_seconds: int
    dead_letter: str
    group_id: str
    group_tier: str


_LEAST = {
    "retry_limit": 0,
    "retry_delay": 0,
    "retry_delay_max": 0,
    "retention_seconds": 1,
    "delete_after_seconds": 0,
}
_LEAST |= {"expire_in_seconds": 1, "heartbeat_seconds": 10, "singleton_seconds": 1}
_MOST = {"expire_in_seconds": 86400}
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_ZONE = re.compile(r"(Z|[+-]\d\d(:?\d\d)?)$")


def as_json(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options under their pg-boss names, checked as pg-boss checks them."""
    for name, value in options.items():
        least, most = _LEAST.get(name), _MOST.get(name)
        if least is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise ConfigError(f"{name} must be a whole number of at least {least}, not {value!r}")
        if most is not None and value > most:
            raise ConfigError(f"{name} must be at most {most}, not {value!r}")
    if options.get("retry_delay_max") is not None and not options.get("retry_backoff"):
        raise ConfigError("retry_delay_max needs retry_backoff")
    camel = {_camel(name): value for name, value in options.items() if value is not None}
    if "startAfter" in camel:
        camel["startAfter"] = start_after_text(camel["startAfter"])
    if "id" in camel:
        camel["id"] = str(camel["id"])
    return camel


def start_after_text(value: float | timedelta | datetime | str) -> str | None:
    """What the send statement casts: a timestamp with zone, an interval, or None for at once."""
    match value:
        case datetime():
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
        case timedelta():
            return str(value.total_seconds()) if value > timedelta(0) else None
        case str():
            # pg-boss pins a date without zone to UTC; the server's own zone must not decide.
            return f"{value}Z" if _DATE.match(value) and "T" in value and not _ZONE.search(value) else value
        case _:
            return str(value) if value > 0 else None


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
