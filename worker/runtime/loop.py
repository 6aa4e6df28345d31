"""The one periodic loop: everything the worker does again and again is a `run_once` driven by this."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger(__name__)

LONGEST_PAUSE_SECONDS = 30.0


class PeriodicLoop:
    """Runs `work` at an interval, sooner when woken, slower while it fails."""

    def __init__(
        self,
        name: str,
        work: Callable[[], Awaitable[object]],
        *,
        interval_seconds: float,
        jitter: float = 0.1,
    ) -> None:
        self._name = name
        self._work = work
        self._interval = interval_seconds
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
        slower: float = min(self._interval * 2 ** min(self._failures, 5), max(LONGEST_PAUSE_SECONDS, self._interval))
        return slower * random.uniform(1 - self._jitter, 1 + self._jitter)  # noqa: S311 - jitter, not a secret
