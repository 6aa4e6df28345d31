"""What can be said of queues and jobs, in pg-boss's words with Python's spelling."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NotRequired, Required, TypedDict, cast, get_args
from uuid import UUID

from worker.errors import ConfigError

Policy = Literal["standard", "short", "singleton", "stately", "exclusive", "key_strict_fifo"]
#: seconds from now, a moment, a duration, or text as pg-boss takes it ("5 minutes", "2030-01-01T00:00:00Z")
StartAfter = int | float | timedelta | datetime | str


class Group(TypedDict):
    id: Required[str]
    #: chooses among the limits of `group_concurrency`
    tier: NotRequired[str]


class QueueOptions(TypedDict, total=False):
    policy: Policy
    #: a table of its own; for queues that are much larger or busier than the others
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


class QueueChanges(TypedDict, total=False):
    """Policy and partition are for life. None takes a limit or a dead letter queue away."""

    retry_limit: int
    retry_delay: int
    retry_backoff: bool
    retry_delay_max: int | None
    expire_in_seconds: int
    retention_seconds: int
    delete_after_seconds: int
    warning_queue_size: int
    heartbeat_seconds: int | None
    dead_letter: str | None
    notify: bool


class SendOptions(TypedDict, total=False):
    """What is left out comes from the queue, as it stands at that moment."""

    #: chosen by the caller; a second send of the same id is refused
    id: UUID
    #: higher goes first
    priority: int
    start_after: StartAfter
    singleton_key: str
    #: at most one job per slot of this many seconds (and key)
    singleton_seconds: int
    #: refused by the slot? Then wait for the next one (debounce)
    singleton_next_slot: bool
    retry_limit: int
    retry_delay: int
    retry_backoff: bool
    retry_delay_max: int
    expire_in_seconds: int
    retention_seconds: int
    delete_after_seconds: int
    heartbeat_seconds: int
    dead_letter: str
    group: Group
    #: `group` in flat form
    group_id: str
    group_tier: str


class NewJob(SendOptions, total=False):
    """One of many jobs for `insert`."""

    data: Any


class JobChanges(TypedDict, total=False):
    """What `update` can change on a job that waits. None takes a limit or a dead letter queue away."""

    priority: int
    start_after: StartAfter
    retry_limit: int
    retry_delay: int
    retry_backoff: bool
    retry_delay_max: int | None
    expire_in_seconds: int
    retention_seconds: int
    delete_after_seconds: int
    heartbeat_seconds: int | None
    dead_letter: str | None
    group: Group


_LEAST = {
    "retry_limit": 0,
    "retry_delay": 0,
    "retry_delay_max": 0,
    "retention_seconds": 1,
    "delete_after_seconds": 0,
    "warning_queue_size": 0,
    "expire_in_seconds": 1,
    "heartbeat_seconds": 10,
    "singleton_seconds": 1,
    "priority": -(2**31),
}
_MOST = {"expire_in_seconds": 86400}
#: what the columns hold
_MOST_OF_ALL = 2**31 - 1
_ZONELESS = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?")
_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")


def as_json(options: Mapping[str, Any], known: Any = None) -> dict[str, Any]:
    """Options under their pg-boss names, checked as pg-boss checks them; `known` is the TypedDict they belong to."""
    options = {_snake(name): value for name, value in options.items()}
    if known and (unknown := options.keys() - _names(known)):
        raise ConfigError(f"unknown option {', '.join(sorted(unknown))}; there are {', '.join(sorted(_names(known)))}")
    check_numbers(options)
    if options.get("retry_delay_max") is not None and not options.get("retry_backoff"):
        raise ConfigError("retry_delay_max needs retry_backoff")
    if (policy := options.get("policy")) is not None and policy not in get_args(Policy):
        raise ConfigError(f"policy must be one of {', '.join(get_args(Policy))}, not {policy!r}")
    camel = {_camel(name): value for name, value in _flat_group(options).items() if value is not None}
    if "startAfter" in camel:
        camel["startAfter"] = start_after_text(camel["startAfter"])
    if "id" in camel:
        camel["id"] = str(camel["id"])
    return camel


def from_json(options: Mapping[str, Any] | None) -> SendOptions:
    """Send options that a Node process wrote down, as in a schedule; what is not for sending is left out."""
    known = {_snake(name): value for name, value in (options or {}).items() if value is not None}
    return cast("SendOptions", {name: value for name, value in known.items() if name in _names(SendOptions)})


def check_numbers(options: Mapping[str, Any]) -> None:
    for name in _LEAST.keys() & options.keys():
        value, least, most = options[name], _LEAST[name], _MOST.get(name, _MOST_OF_ALL)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(f"{name} must be a whole number of at least {least}, not {value!r}")
        if value > most:
            raise ConfigError(f"{name} must be at most {most}, not {value!r}")


def start_after_text(value: StartAfter) -> str | None:
    """What the send statement casts: a timestamp with zone, an interval, or None for at once."""
    match value:
        case datetime():
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
        case timedelta():
            return str(value.total_seconds()) if value > timedelta(0) else None
        case str():
            # pg-boss pins a date without zone to UTC; the server's own zone must not decide.
            zoneless = _ZONELESS.fullmatch(value)
            return f"{zoneless[1]}T{zoneless[2] or '00:00'}Z" if zoneless else value
        case _:
            return str(value) if value > 0 else None


def _flat_group(options: Mapping[str, Any]) -> dict[str, Any]:
    flat = dict(options)
    if (group := flat.pop("group", None)) is not None:
        flat |= {"group_id": group.get("id"), "group_tier": group.get("tier")}
        if not flat["group_id"]:
            raise ConfigError("group needs an id")
    elif flat.get("group_tier") is not None and flat.get("group_id") is None:
        raise ConfigError("group_tier needs group_id")
    return flat


def _names(options: Any) -> frozenset[str]:
    return frozenset(options.__required_keys__ | options.__optional_keys__)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _snake(name: str) -> str:
    return _CAPITAL.sub(lambda found: f"_{found[1].lower()}", name)
