"""One database for thousands of small cases: how it is opened, emptied, read and judged."""

import asyncio
import itertools
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID, uuid4

import asyncpg

from tests.conftest import database_dsn
from worker.db.pool import Pool, open_pool
from worker.queue import PgBoss

#: long, so that a slow machine never makes a lease stale that a case calls live
LEASE_SECONDS = 3600.0
QUEUE = "clip"
#: as docs/operations.md says
AGREEMENT = frozenset(
    {
        ("queued", "created"),
        ("queued", "retry"),
        ("processing", "active"),
        ("done", "completed"),
        ("failed", "failed"),
        ("cancelled", "cancelled"),
    }
)
ENDS = frozenset({"done", "failed", "cancelled"})
T = TypeVar("T")


@dataclass(frozen=True)
class Ground:
    runner: asyncio.Runner
    dsn: str
    pool: Pool
    queue: PgBoss

    def run(self, call: Awaitable[T]) -> T:
        """From sync code, always on the one loop that the pool belongs to."""

        async def awaited() -> T:
            return await call

        return self.runner.run(awaited())

    def clear(self) -> None:
        self.run(self.pool.execute("TRUNCATE pgboss.job, worker.jobs, worker.job_events"))

    def silence(self, job_id: UUID) -> None:
        """As if its worker had not been heard of for a day; a lease that was given back stays so."""
        statement = (
            "UPDATE worker.jobs SET last_heartbeat_at = now() - interval '1 day'"
            " WHERE id = $1 AND status = 'processing' AND last_heartbeat_at > '-infinity'"
        )
        self.run(self.pool.execute(statement, job_id))

    def rows(self) -> dict[UUID, Mapping[str, Any]]:
        """What both tables and the timeline say about each delivery."""
        found = self.run(self.pool.fetch(ROWS))
        return {row["id"]: dict(row) for row in found}


ROWS = """
SELECT theirs.id, ours.status, theirs.state::text AS state, ours.attempt_count, ours.crash_count, ours.lease_token,
       ours.worker_id, ours.result, theirs.output, theirs.retry_count,
       ours.cancel_requested_at IS NOT NULL AS is_unwanted,
       CASE WHEN ours.status IS DISTINCT FROM 'processing' THEN NULL
            WHEN ours.last_heartbeat_at = '-infinity' THEN 'given back'
            WHEN ours.last_heartbeat_at < now() - interval '12 hours' THEN 'silent' ELSE 'live' END AS pulse,
       array(SELECT kind FROM worker.job_events AS event WHERE event.job_id = theirs.id ORDER BY event.id) AS events
FROM pgboss.job AS theirs LEFT JOIN worker.jobs AS ours USING (id)
ORDER BY theirs.created_on
"""


@contextmanager
def open_ground(server_dsn: str, template: str) -> Iterator[Ground]:
    name = f"test_{uuid4().hex}"
    with asyncio.Runner() as runner:
        admin = runner.run(asyncpg.connect(server_dsn))
        runner.run(admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}"))
        try:
            dsn = database_dsn(server_dsn, name)
            pool = runner.run(open_pool(dsn, name="tests", size=4))
            queue = runner.run(PgBoss.attach(pool))
            runner.run(queue.create_queue(QUEUE, retry_limit=2))
            yield Ground(runner, dsn, pool, queue)
            runner.run(pool.close())
        finally:
            runner.run(admin.execute(f"DROP DATABASE {name} WITH (FORCE)"))
            runner.run(admin.close())


def require_sound(row: Mapping[str, Any], *, moved_by_node: bool = False) -> None:
    """What must hold of any job at any moment, whatever happened to it."""
    status, state, events = row["status"], row["state"], row["events"]
    if status is not None and not moved_by_node:
        assert (status, state) in AGREEMENT, f"the tables disagree: {status} here, {state} there; {events}"
    assert (status == "processing") == (row["lease_token"] is not None), f"{status} with lease {row['lease_token']}"
    for kind, following in itertools.pairwise(events):
        # Node's retry and resume write no event of ours: the next we hear is that somebody acquired the job.
        assert kind not in ENDS or following in {"revived", "acquired"}, f"{kind} was not the end: {events}"
    assert (status in ENDS) == (bool(events) and events[-1] in ENDS), f"{status} after {events}"
    if status in ENDS:
        assert events[-1] == status, f"{status} after {events}"
    assert row["attempt_count"] is None or row["attempt_count"] <= events.count("acquired"), f"overcounted: {events}"
    if status == "done":
        assert row["result"] == row["output"], "the two tables hold different results"
