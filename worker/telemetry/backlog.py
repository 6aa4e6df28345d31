"""Gauges of the queues, read from the database when somebody scrapes; no scrape fails or waits long for it."""

import asyncio
import math
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

import structlog
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

log = structlog.get_logger(__name__)

#: scrapes within this time share one look at the database, however many scrape
FRESH_SECONDS = 5.0
#: a scrape waits this long for new values, then tells the last ones
PATIENCE_SECONDS = 0.5
#: from asking to giving up, a free connection included
GIVE_UP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class QueueDepth:
    queue: str
    #: due and not begun
    pending: int
    #: being worked on, by whichever worker
    active: int
    #: for how long the oldest pending job has been due
    backlog_seconds: float


class BacklogGauges(Collector):
    """Scrapes come in threads of their own; the database is asked in the worker's loop, where its pool lives."""

    def __init__(
        self,
        read: Callable[[], Awaitable[Sequence[QueueDepth]]],
        loop: asyncio.AbstractEventLoop,
        *,
        fresh_seconds: float = FRESH_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._read = read
        self._loop = loop
        self._fresh_seconds = fresh_seconds
        self._patience_seconds = patience_seconds
        self._lock = threading.Lock()
        self._answered = threading.Event()
        self._asking: asyncio.Task[None] | None = None
        self._asked_at = self._read_at = -math.inf
        self._depths: Sequence[QueueDepth] = ()

    def describe(self) -> Iterable[Metric]:
        """Names and help without asking anybody."""
        return self._families((), math.inf)

    def collect(self) -> Iterable[Metric]:
        self._ask()
        self._answered.wait(max(0.0, self._asked_at + self._patience_seconds - time.monotonic()))
        return self._families(self._depths, time.monotonic() - self._read_at)

    def _ask(self) -> None:
        with self._lock:
            # Counted from the last question, not from the last answer: a database that is away is left in peace too.
            if time.monotonic() - self._asked_at < self._fresh_seconds:
                return
            self._asked_at = time.monotonic()
            self._answered.clear()
        try:
            self._loop.call_soon_threadsafe(self._start)
        except RuntimeError:
            # The loop is closed: the worker ends, and this is its last scrape.
            self._answered.set()

    def _start(self) -> None:
        if self._asking is None or self._asking.done():
            self._asking = self._loop.create_task(self._note())

    async def _note(self) -> None:
        read_at = time.monotonic()
        try:
            async with asyncio.timeout(GIVE_UP_SECONDS):
                self._depths = await self._read()
            self._read_at = read_at
        except Exception as exc:  # noqa: BLE001 - whatever it is, the age of the last values tells it
            log.debug("backlog_not_read", error=f"{type(exc).__name__}: {exc}")
        finally:
            self._answered.set()

    def _families(self, depths: Sequence[QueueDepth], age_seconds: float) -> list[Metric]:
        pending = GaugeMetricFamily(
            "worker_pending_jobs", "Jobs that are due and not begun, counted up to 20000.", labels=["queue"]
        )
        active = GaugeMetricFamily(
            "worker_active_jobs", "Jobs that any worker has begun and not ended.", labels=["queue"]
        )
        backlog = GaugeMetricFamily(
            "worker_backlog_seconds", "For how long the oldest pending job has been due.", labels=["queue"]
        )
        for depth in depths:
            pending.add_metric([depth.queue], depth.pending)
            active.add_metric([depth.queue], depth.active)
            backlog.add_metric([depth.queue], depth.backlog_seconds)
        age = GaugeMetricFamily(
            "worker_snapshot_age_seconds",
            "How old the values of pending, active and backlog are; +Inf until they were read once.",
            value=age_seconds,
        )
        return [pending, active, backlog, age]
