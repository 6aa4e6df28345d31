"""The one periodic loop: everything the worker does again and again is a `run_once` driven by this."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger(__name__)

#: after a failure the next turn comes sooner than the interval says, then later and later
FIRST_RETRY_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 10.0


class PeriodicLoop:
    """Runs `work` at an interval, sooner when woken, in growing pauses while it fails."""

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[object]],
        *,
        interval_seconds: float,
        longest_pause_seconds: float = LONGEST_PAUSE_SECONDS,
        jitter: float = 0.1,
    ) -> None:
        """`longest_pause_seconds`: between two turns that fail; work that others wait for cannot afford long ones."""
        self._name = name
        self._work = work
        self._interval = interval_seconds
        self._longest_pause = longest_pause_seconds
        self._jitter = jitter
        self._woken = asyncio.Event()
        self._failures = 0
        self._stop = asyncio.Event()

    def wake(self) -> None:
        self._woken.set()

    def stop(self) -> None:
        """End after the turn in progress; cancelling instead could lose what that turn has just taken."""
        self._stop.set()
        self._woken.set()

    async def run(self) -> None:
        """Until stopped. A failing turn is logged once until it works again, and retried with growing pauses."""
        while not self._stop.is_set():
            # Cleared before the work: a wake-up during it means another turn, not a lost one.
            self._woken.clear()
            await self._turn()
            if self._stop.is_set():
                return
            try:
                await asyncio.wait_for(self._woken.wait(), self._pause())
            except TimeoutError:
                continue

    async def _turn(self) -> None:
        try:
            await self._work()
        except Exception as exc:  # noqa: BLE001 - a loop of the worker outlives every failure of its work
            self._failures += 1
            if self._failures == 1:
                log.warning("loop_failing", loop=self._name, error=f"{type(exc).__name__}: {exc}")
            else:
                log.debug("loop_still_failing", loop=self._name, failures=self._failures, error=str(exc))
        else:
            if self._failures:
                log.info("loop_recovered", loop=self._name, failures=self._failures)
            self._failures = 0

    def _pause(self) -> float:
        pause = self._interval
        if self._failures:
            pause = min(FIRST_RETRY_SECONDS, self._interval) * 2.0 ** min(self._failures - 1, 10)
            pause = min(pause, self._longest_pause)
        return pause * random.uniform(1 - self._jitter, 1 + self._jitter)  # noqa: S311 - jitter, not a secret
