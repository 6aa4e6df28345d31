"""A scrape tells what the queues hold, and neither waits long nor fails when the database cannot be asked."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from worker.telemetry.backlog import BacklogGauges, QueueDepth

CLIP = QueueDepth("clip", pending=7, active=2, backlog_seconds=31.5)


class Database:
    """Answers as it is told to, and counts."""

    def __init__(self) -> None:
        self.asked = 0
        self.depths: Sequence[QueueDepth] = [CLIP]
        self.error: Exception | None = None
        self.hangs = asyncio.Event()
        self.hangs.set()

    async def read(self) -> Sequence[QueueDepth]:
        self.asked += 1
        await self.hangs.wait()
        if self.error:
            raise self.error
        return self.depths


def registry_of(database: Database, **options: float) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(BacklogGauges(database.read, asyncio.get_running_loop(), **options))
    return registry


async def scrape(registry: CollectorRegistry) -> dict[str, float]:
    """In a thread, as a scrape comes; values of the queue `clip` and those without a queue."""

    def collect() -> dict[str, float]:
        samples = [sample for family in registry.collect() for sample in family.samples]
        return {sample.name: sample.value for sample in samples if sample.labels in ({}, {"queue": "clip"})}

    return await asyncio.to_thread(collect)


@asynccontextmanager
async def at_most(seconds: float) -> AsyncIterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < seconds


async def test_scrape_tells_what_the_database_says() -> None:
    found = await scrape(registry_of(Database(), patience_seconds=10))

    assert found.pop("worker_snapshot_age_seconds") < 10
    assert found == {"worker_pending_jobs": 7, "worker_active_jobs": 2, "worker_backlog_seconds": 31.5}


async def test_registering_asks_nobody() -> None:
    database = Database()
    registry_of(database)
    assert database.asked == 0


async def test_many_scrapes_are_one_question() -> None:
    database = Database()
    registry = registry_of(database, fresh_seconds=60, patience_seconds=10)

    found = await asyncio.gather(*(scrape(registry) for _ in range(8)))

    assert database.asked == 1
    assert [each["worker_pending_jobs"] for each in found] == [7] * 8


async def test_scrape_after_a_while_asks_again() -> None:
    database = Database()
    registry = registry_of(database, fresh_seconds=0, patience_seconds=10)
    await scrape(registry)
    database.depths = [QueueDepth("clip", 8, 2, 40.0)]

    assert (await scrape(registry))["worker_pending_jobs"] == 8


async def test_database_that_fails_leaves_the_last_values_and_their_age() -> None:
    database = Database()
    registry = registry_of(database, fresh_seconds=0, patience_seconds=10)
    first = await scrape(registry)
    database.error = OSError("connection refused")

    second = await scrape(registry)

    assert second["worker_pending_jobs"] == 7
    assert second["worker_snapshot_age_seconds"] > first["worker_snapshot_age_seconds"]


async def test_database_that_never_answered_leaves_no_value_but_an_endless_age() -> None:
    database = Database()
    database.error = OSError("connection refused")

    assert await scrape(registry_of(database, patience_seconds=10)) == {"worker_snapshot_age_seconds": float("inf")}


async def test_database_that_hangs_does_not_hold_up_the_scrape() -> None:
    database = Database()
    database.hangs.clear()
    registry = registry_of(database, fresh_seconds=0, patience_seconds=0.05)

    async with at_most(5):
        for _ in range(3):
            await scrape(registry)

    # Nor are questions piled up behind the one that hangs.
    assert database.asked == 1
    database.hangs.set()


async def test_late_answer_is_told_by_a_later_scrape() -> None:
    database = Database()
    database.hangs.clear()
    registry = registry_of(database, fresh_seconds=60, patience_seconds=0.05)
    assert "worker_pending_jobs" not in await scrape(registry)

    database.hangs.set()
    async with asyncio.timeout(10):
        while "worker_pending_jobs" not in await scrape(registry):
            await asyncio.sleep(0)


def test_scrape_of_a_worker_that_has_ended_still_answers() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    gauges = BacklogGauges(Database().read, loop, patience_seconds=10)

    assert [sample.name for family in gauges.collect() for sample in family.samples] == ["worker_snapshot_age_seconds"]


def test_scrape_of_a_worker_whose_loop_stands_still_still_answers() -> None:
    loop = asyncio.new_event_loop()
    gauges = BacklogGauges(Database().read, loop, patience_seconds=0.05)
    answered: list[object] = []
    scraping: Callable[[], None] = lambda: answered.extend(gauges.collect())  # noqa: E731
    thread = threading.Thread(target=scraping)
    thread.start()
    thread.join(timeout=10)
    loop.close()
    assert answered
