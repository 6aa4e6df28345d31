"""Changing jobs that still wait, or sending them where there is nothing to change."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, Unpack, get_args
from uuid import UUID

from worker.db.pool import Connection
from worker.domain.text import storable
from worker.errors import ConfigError, SchemaUnsupported
from worker.queue.conflicts import transaction
from worker.queue.options import JobChanges, as_json
from worker.queue.sending import Sending

#: which of several waiting jobs of a key
Match = Literal["newest", "oldest", "all"]
#: the schema that keeps two upserts of one key from both inserting
_UPSERT_SCHEMA = 45
_COLUMNS = {
    "priority": "priority",
    "retryLimit": "retry_limit",
    "retryDelay": "retry_delay",
    "retryBackoff": "retry_backoff",
    "retryDelayMax": "retry_delay_max",
    "expireInSeconds": "expire_seconds",
    "deleteAfterSeconds": "deletion_seconds",
    "heartbeatSeconds": "heartbeat_seconds",
    "deadLetter": "dead_letter",
    "groupId": "group_id",
    "groupTier": "group_tier",
}
_CLEARABLE = {"retry_delay_max", "heartbeat_seconds", "dead_letter"}


class Unchanged(Enum):
    UNCHANGED = "unchanged"


#: leaves a job's data as it is; None would empty it
UNCHANGED: Final = Unchanged.UNCHANGED


@dataclass(frozen=True, slots=True)
class Upserted:
    """Empty when neither was possible: the job with this id runs or has ended, or the policy refused a new one."""

    ids: tuple[UUID, ...]
    is_inserted: bool


@dataclass(frozen=True, slots=True)
class _Edit:
    queue: str
    id: UUID | None
    singleton_key: str | None
    match: Match
    options: Mapping[str, Any]
    data: Any


class Changing(Sending):
    async def update(
        self,
        queue: str,
        data: Any = UNCHANGED,
        *,
        id: UUID | None = None,  # noqa: A002 - pg-boss's word
        singleton_key: str | None = None,
        match: Match | None = None,
        connection: Connection | None = None,
        **changes: Unpack[JobChanges],
    ) -> list[UUID]:
        """Change what is given on the waiting job with this id, or on the newest (oldest, all) of a key.

        The ids that were changed: a job that is claimed already is left alone. A job that is moved by `start_after`
        (0 = now) is kept as long after its start as before.
        """
        edit = _edit(queue, data, id, singleton_key, match, changes)
        return await self._update(edit, connection)

    async def upsert(
        self,
        queue: str,
        data: Any = UNCHANGED,
        *,
        id: UUID | None = None,  # noqa: A002 - pg-boss's word
        singleton_key: str | None = None,
        match: Match | None = None,
        connection: Connection | None = None,
        **changes: Unpack[JobChanges],
    ) -> Upserted:
        """Update, or send when nothing waits; two at once for one key make one job."""
        edit = _edit(queue, data, id, singleton_key, match, changes)
        if edit.singleton_key is not None and self.version < _UPSERT_SCHEMA:
            raise SchemaUnsupported(
                f"upsert by singleton_key needs pg-boss schema {_UPSERT_SCHEMA} (pg-boss 12.37), "
                f"{self.schema!r} is at {self.version}: upgrade pg-boss, or upsert by id"
            )
        # Outside the transaction: whether queues exist is checked at its commit.
        with self._explained(queue):
            async with transaction(self._pool, connection) as db:
                return await self._update_or_insert(edit, db)

    async def _update_or_insert(self, edit: _Edit, db: Connection) -> Upserted:
        if ids := await self._update(edit, db):
            return Upserted(tuple(ids), is_inserted=False)
        if ids := await self._insert(edit.queue, [_as_new(edit)], db):
            return Upserted(tuple(ids), is_inserted=True)
        # Somebody else's insert came first; it is committed now and can be seen.
        return Upserted(tuple(await self._update(edit, db)), is_inserted=False)

    async def _update(self, edit: _Edit, connection: Connection | None) -> list[UUID]:
        values = {_COLUMNS[name]: value for name, value in edit.options.items() if name in _COLUMNS}
        if edit.data is not UNCHANGED:
            values["data"] = storable(edit.data)
        with self._explained(edit.queue):
            row = await self._on(connection).fetchrow(
                self._sql["update_jobs"],
                edit.queue,
                edit.id,
                edit.singleton_key,
                edit.match,
                values,
                edit.options.get("startAfter"),
                edit.options.get("retentionSeconds"),
                self.channel,
            )
        return self._ids_of(row, edit.queue)


def _edit(
    queue: str, data: Any, id_: UUID | None, singleton_key: str | None, match: Match | None, changes: JobChanges
) -> _Edit:
    if (id_ is None) == (singleton_key is None):
        raise ConfigError("say which job: its id or its singleton_key, one of them")
    if match is not None and (id_ is not None or match not in get_args(Match)):
        raise ConfigError("match goes with singleton_key and is newest, oldest or all")
    if empty := [name for name, value in changes.items() if value is None and name not in _CLEARABLE]:
        raise ConfigError(f"{', '.join(sorted(empty))} must have a value")
    options = as_json(changes, JobChanges)
    options |= {name: None for name, column in _COLUMNS.items() if column in changes and name not in options}
    if "startAfter" in options:
        # As an edit, "no delay" is a change of its own.
        options["startAfter"] = options["startAfter"] or "0"
    return _Edit(queue, id_, singleton_key, match or "newest", options, data)


def _as_new(edit: _Edit) -> dict[str, Any]:
    job = dict(edit.options)
    if edit.data is not UNCHANGED:
        job["data"] = edit.data
    if edit.id is not None:
        return {**job, "id": str(edit.id)}
    return {**job, "singletonKey": edit.singleton_key, "upsertByKey": True}
