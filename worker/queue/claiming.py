"""Claiming due jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NotRequired, Required, TypedDict, Unpack
from uuid import UUID

import asyncpg

from worker.db.pool import Connection
from worker.errors import ConfigError
from worker.queue.conflicts import fetch_apart
from worker.queue.core import Core, Fence


@dataclass(frozen=True, slots=True)
class Delivery:
    """A claimed job."""

    id: UUID
    queue: str
    data: Any
    priority: int
    created_on: datetime
    retry_count: int
    retry_limit: int
    expire_seconds: int
    heartbeat_seconds: int | None
    group_id: str | None
    group_tier: str | None

    @property
    def fence(self) -> Fence:
        return Fence(self.id, self.retry_count)


class GroupConcurrency(TypedDict):
    """How many jobs of one group may run at once, and how many of a group whose jobs carry a tier."""

    default: Required[int]
    tiers: NotRequired[Mapping[str, int]]


class FetchOptions(TypedDict, total=False):
    #: also jobs that are not due yet
    ignore_start_after: bool
    min_priority: int
    max_priority: int
    #: a limit that this fetcher keeps; fetchers that claim in the same instant do not see each other's
    group_concurrency: int | GroupConcurrency
    ignore_groups: Sequence[str]


class Claiming(Core):
    async def fetch(
        self,
        queue: str,
        batch_size: int = 1,
        *,
        connection: Connection | None = None,
        **options: Unpack[FetchOptions],
    ) -> list[Delivery]:
        """Claim up to `batch_size` due jobs that the queue's policy lets run now, most urgent first."""
        arguments = _arguments(batch_size, options)
        try:
            rows = await fetch_apart(self._pool, connection, self._sql["fetch"], queue, *arguments)
        except (asyncpg.UniqueViolationError, asyncpg.DeadlockDetectedError):
            # Another worker claimed the same key of a one-at-a-time policy in the same instant; or each of two claimed
            # a key that the other one wanted as well.
            return []
        found = [Delivery(queue=queue, **row) for row in rows]
        return sorted(found, key=lambda delivery: (-delivery.priority, delivery.created_on))


def _arguments(batch_size: int, options: FetchOptions) -> tuple[Any, ...]:
    if batch_size < 1:
        raise ConfigError(f"batch_size must be at least 1, not {batch_size!r}")
    lowest, highest = options.get("min_priority"), options.get("max_priority")
    if lowest is not None and highest is not None and lowest > highest:
        raise ConfigError(f"min_priority ({lowest}) must not be above max_priority ({highest})")
    default, tiers = _limits(options.get("group_concurrency"))
    ignored = list(options.get("ignore_groups") or ())
    return batch_size, options.get("ignore_start_after", False), lowest, highest, default, tiers, ignored


def _limits(concurrency: int | GroupConcurrency | None) -> tuple[int | None, dict[str, int]]:
    match concurrency:
        case None:
            return None, {}
        case int():
            default, tiers = concurrency, {}
        case _:
            default, tiers = concurrency["default"], dict(concurrency.get("tiers") or {})
    for limit in (default, *tiers.values()):
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise ConfigError(f"group_concurrency must be whole numbers of at least 1, not {limit!r}")
    return default, tiers
