"""A thread with an event loop of its own, for the one thing that must go on whatever the worker's loop is doing."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

from worker.runtime.loop import PeriodicLoop
from worker.telemetry.metrics import Metrics


class Ticker:
    """Shows from outside whether the worker's loop moves."""

    def __init__(self, *, interval_seconds: float, stall_seconds: float, metrics: Metrics) -> None:
        self._interval_seconds = interval_seconds
        self._stall_seconds = stall_seconds
        self._ticked_at = time.monotonic()
        self._last_lag = 0.0
        # Asked at each scrape, because a loop that hangs would never tell it.
        metrics.loop_lag.set_function(lambda: max(self._last_lag, self._lag()))

    async def run_once(self) -> None:
        self._last_lag = self._lag()
        self._ticked_at = time.monotonic()

    def is_moving(self) -> bool:
        return time.monotonic() - self._ticked_at < self._stall_seconds

    def _lag(self) -> float:
        return max(0.0, time.monotonic() - self._ticked_at - self._interval_seconds)


class Pulse:
    """Runs `work` periodically in a thread until stopped."""

    def __init__(
        self, name: str, work: Callable[[], Awaitable[object]], close: Callable[[], Awaitable[None]], *, seconds: float
    ) -> None:
        self._name = name
        self._work = work
        self._close = close
        self._seconds = seconds
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name=name, daemon=True)
        self._ready = threading.Event()
        self._stop: Callable[[], object] = lambda: None

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    async def stop(self, *, timeout_seconds: float) -> None:
        """Ends after the turn in progress; a thread that hangs dies with the process."""
        self._stop()
        await asyncio.to_thread(self._thread.join, timeout_seconds)

    async def _main(self) -> None:
        # Never slower than the interval: a database that is back must hear from us before leases run out.
        periodic = PeriodicLoop(
            self._name, self._work, interval_seconds=self._seconds, longest_pause_seconds=self._seconds
        )
        loop = asyncio.get_running_loop()
        self._stop = lambda: loop.call_soon_threadsafe(periodic.stop)
        self._ready.set()
        try:
            await periodic.run()
        finally:
            await self._close()
