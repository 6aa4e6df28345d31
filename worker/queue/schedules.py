"""Schedules: the rows that say which queue gets a job when."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Unpack
from uuid import UUID

from worker.db.pool import Connection
from worker.domain.text import storable
from worker.errors import ConfigError, QueueMissing
from worker.queue.core import Core
from worker.queue.options import SendOptions, as_json
from worker.queue.recurrence import check_cron, kind_of

_KEY = re.compile(r"[A-Za-z0-9_.\-/]*")


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as it stands in the database."""

    name: str
    key: str
    cron: str
    timezone: str
    data: Any
    #: send options in pg-boss's own words, with `tz`, `key` and `missed`
    options: dict[str, Any]
    created_on: datetime
    updated_on: datetime
    #: what the column says; `kind_of(cron)` is what counts
    kind: str = "cron"
    last_job_id: UUID | None = None


class Schedules(Core):
    async def schedule(
        self,
        name: str,
        cron: str,
        data: Any = None,
        *,
        tz: str = "UTC",
        key: str = "",
        missed: Literal["skip", "once"] | None = None,
        connection: Connection | None = None,
        **options: Unpack[SendOptions],
    ) -> None:
        """Send a job to queue `name` whenever the wall clock of `tz` matches `cron` (seconds may lead).

        One schedule for each (name, key): a second call replaces the first. `missed="once"` makes up for one
        occurrence after a time in which nobody ran the schedules. Recurrence rules (`RRULE:…`) are stored for a Node
        process to evaluate; `run_cron_once` leaves them alone.
        """
        row = {
            "key": _checked_key(key),
            "kind": self._checked_kind(cron, tz),
            "cron": cron,
            "timezone": tz,
            "data": storable(data),
            "options": _stored_options(options, tz=tz, key=key, missed=missed),
        }
        if await self._on(connection).fetchval(self._sql["schedule"], name, row) is None:
            raise QueueMissing(f"queue {name!r} does not exist in schema {self.schema!r}; create it first")

    async def unschedule(self, name: str, key: str = "", *, connection: Connection | None = None) -> bool:
        """Whether there was such a schedule."""
        return await self._on(connection).fetchval(self._sql["unschedule"], name, key) is not None

    async def get_schedules(
        self, name: str | None = None, key: str | None = None, *, connection: Connection | None = None
    ) -> list[Schedule]:
        """All of them, or those of one queue, or the one with that key."""
        rows = await self._on(connection).fetch(self._sql["get_schedules"], name, key)
        return [Schedule(**row) for row in rows]

    def _checked_kind(self, cron: str, tz: str) -> str:
        kind = kind_of(cron)
        if kind == "cron":
            check_cron(cron, tz)
        elif self.version < 41:
            raise ConfigError(f"recurrence rules need pg-boss 12.31 (schema 41); this schema is at {self.version}")
        else:
            check_cron("* * * * *", tz)
        return kind


def _checked_key(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise ConfigError(f"{key!r} cannot be a schedule's key (letters, digits and _ . - / only)")
    return key


def _stored_options(options: SendOptions, *, tz: str, key: str, missed: str | None) -> dict[str, Any]:
    if options.get("id") is not None:
        raise ConfigError("a schedule sends many jobs; they cannot share an id")
    if missed not in (None, "skip", "once"):
        raise ConfigError(f"missed must be 'skip' or 'once', not {missed!r}")
    stored = as_json(options, SendOptions)
    if (group := stored.pop("groupId", None)) is not None:
        # Node reads groups in this form only.
        stored["group"] = {"id": group} | ({"tier": stored.pop("groupTier")} if "groupTier" in stored else {})
    stored |= {"tz": tz, "key": key or None, "missed": missed}
    return {name: storable(value) for name, value in stored.items() if value is not None}
