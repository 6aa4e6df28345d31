"""The clock of a test's database, set by hand."""

from datetime import datetime

from worker.db.pool import Pool


class Clock:
    """What `now()` answers in every statement of the test's database."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def set(self, at: datetime) -> None:
        await self._pool.execute("UPDATE fake.clock SET at = $1", at)
