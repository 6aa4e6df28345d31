"""Writes that must get through: as long as the lease holds, and no longer."""

import asyncio
import time
from uuid import uuid4

import asyncpg
import pytest

from worker.domain.job import Attempt, JobId, Lease, LeaseToken
from worker.errors import LeaseLost
from worker.runtime.active import ActiveJob
from worker.runtime.persist import persist


def job(holds_seconds: float) -> ActiveJob:
    attempt = Attempt(Lease(JobId(uuid4()), "clip", LeaseToken(1), 0), {}, 1, 3, 0, 900, None)
    return ActiveJob(attempt, time.monotonic(), holds_seconds)


class Write:
    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.calls = 0

    async def __call__(self) -> None:
        self.calls += 1
        if self.failures:
            raise self.failures.pop(0)


async def test_database_that_is_away_for_a_moment_is_waited_for() -> None:
    write = Write(ConnectionResetError("reset"), asyncpg.CannotConnectNowError("starting up"))
    # A plain function that returns an awaitable, as callers pass it: it must be awaited, not just called.
    await persist(job(30), lambda: write())  # noqa: PLW0108 - see above
    assert write.calls == 3


async def test_database_that_stays_away_costs_the_lease() -> None:
    write = Write(*[ConnectionRefusedError("no") for _ in range(100)])
    started = time.monotonic()
    with pytest.raises(LeaseLost, match="stayed away"):
        await persist(job(0.5), write)
    assert time.monotonic() - started < 5
    assert write.calls >= 2


@pytest.mark.parametrize("error", [LeaseLost("gone"), asyncpg.UndefinedTableError("bug"), KeyError("bug")])
async def test_what_waiting_cannot_cure_is_raised_at_once(error: Exception) -> None:
    write = Write(error)
    with pytest.raises(type(error)):
        await persist(job(30), write)
    assert write.calls == 1


async def test_stop_is_not_taken_for_a_database_that_is_away() -> None:
    """A driver that cannot clean up after a cancellation raises an error of its own instead, one that could be cured
    by waiting; a repetition would go through, and the job go on."""
    calls = 0

    async def write() -> None:
        nonlocal calls
        calls += 1
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            raise asyncpg.QueryCanceledError("canceling statement due to user request") from None

    writing = asyncio.create_task(persist(job(60), write))
    await asyncio.sleep(0.05)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(writing, 5)
    assert calls == 1
