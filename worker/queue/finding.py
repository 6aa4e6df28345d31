"""Looking at jobs without touching them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict, Unpack
from uuid import UUID

from worker.db.pool import Connection
from worker.errors import ConfigError, JobMissing
from worker.queue.core import Core


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job as it stands in the database."""

    id: UUID
    name: str
    state: str
    data: Any
    priority: int
    retry_limit: int
    retry_count: int
    retry_delay: int
    retry_backoff: bool
    retry_delay_max: int | None
    expire_seconds: int
    deletion_seconds: int
    singleton_key: str | None
    #: the throttle's slot, in UTC without a zone
    singleton_on: datetime | None
    group_id: str | None
    group_tier: str | None
    start_after: datetime
    created_on: datetime
    started_on: datetime | None
    completed_on: datetime | None
    keep_until: datetime
    output: Any
    dead_letter: str | None
    policy: str | None
    heartbeat_on: datetime | None
    heartbeat_seconds: int | None
    blocked: bool
    blocking: bool
    pending_dependencies: int
    #: of a dead letter: the job that failed
    source_name: str | None
    source_id: UUID | None
    source_created_on: datetime | None
    source_retry_count: int | None
    source_output: Any = None
    #: the first job of a chain of dead letters and redrives
    source_root_id: UUID | None = None


class JobFilter(TypedDict, total=False):
    id: UUID
    #: its singleton_key
    key: str
    #: contained in its data
    data: Mapping[str, Any]
    #: only jobs that wait
    queued: bool


class Finding(Core):
    async def get_job_by_id(self, queue: str, id: UUID, *, connection: Connection | None = None) -> JobRow | None:  # noqa: A002 - pg-boss's word
        found = await self.find_jobs(queue, id=id, connection=connection)
        return found[0] if found else None

    async def find_jobs(
        self,
        queue: str,
        *,
        limit: int = 1000,
        after: UUID | None = None,
        connection: Connection | None = None,
        **only: Unpack[JobFilter],
    ) -> list[JobRow]:
        """Jobs of a queue, oldest first; `after` is the last one of the page before."""
        if limit < 1:
            raise ConfigError(f"limit must be at least 1, not {limit!r}")
        last = await self.get_job_by_id(queue, after, connection=connection) if after is not None else None
        if after is not None and last is None:
            raise JobMissing(f"there is no job {after} in queue {queue!r} to go on after; start again")
        rows = await self._on(connection).fetch(
            self._sql["find_jobs"],
            queue,
            [only["id"]] if "id" in only else None,
            only.get("key"),
            only.get("data"),
            only.get("queued", False),
            last and last.created_on,
            after,
            limit,
        )
        return [JobRow(**row) for row in rows]

    async def get_blocked_keys(self, queue: str, *, connection: Connection | None = None) -> list[str]:
        """Keys of a key_strict_fifo queue that wait until their failed job is retried or deleted."""
        return [row["singleton_key"] for row in await self._on(connection).fetch(self._sql["blocked_keys"], queue)]
