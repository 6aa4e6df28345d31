"""Measures the queues for the metrics: how much waits, how much runs, and for how long the oldest has been due."""

from collections.abc import Sequence

from worker.db.pool import Pool
from worker.db.sql import load_queries
from worker.queue import PgBoss
from worker.telemetry.backlog import QueueDepth

#: more is told as this many: whoever scales has seen enough, and what a scrape costs has an upper limit
COUNT_LIMIT = 20_000
#: a late answer is no use to a scrape, and one of few connections is wanted back
TIMEOUT_SECONDS = 5.0


class Backlog:
    def __init__(self, pool: Pool, queue: PgBoss, queues: Sequence[str], *, count_limit: int = COUNT_LIMIT) -> None:
        self._pool = pool
        # A queue named twice in the settings must not become a series twice: Prometheus refuses all of such a scrape.
        self._queues = list(dict.fromkeys(queues))
        self._count_limit = count_limit
        self._sql = load_queries("worker.jobs", queue_schema=queue.schema, queue_version=queue.version)

    async def read(self) -> list[QueueDepth]:
        rows = await self._pool.fetch(self._sql["backlog"], self._queues, self._count_limit, timeout=TIMEOUT_SECONDS)
        return [QueueDepth(row["queue"], row["pending"], row["active"], row["backlog_seconds"]) for row in rows]
