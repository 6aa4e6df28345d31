"""Starts the worker's loops in order, and stops them in order when asked to."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import structlog

from worker.db.listen import Listener
from worker.domain.outcome import Cancelled, HandedBack
from worker.runtime.active import ActiveJobs
from worker.runtime.dispatcher import Dispatcher
from worker.runtime.heartbeat import Heartbeat
from worker.runtime.loop import PeriodicLoop
from worker.runtime.progress import ProgressWriter
from worker.runtime.pulse import Pulse, Ticker
from worker.runtime.recovery import RecoveryScanner

log = structlog.get_logger(__name__)

#: stopped children are gone after 5 s at most; a database that does not answer must not hold up the exit
ABORT_SECONDS = 10.0
#: an acquire in flight may have claimed jobs; it is waited for, but not for ever
TAKING_SECONDS = 5.0
BEATS_SECONDS = 2.0
PROGRESS_SECONDS = 0.5
FENCE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Pace:
    poll_seconds: float
    heartbeat_seconds: float
    tick_seconds: float
    recovery_seconds: float
    #: how long running jobs may take to end after the first signal
    shutdown_seconds: float


class Supervisor:
    def __init__(
        self,
        *,
        dispatcher: Dispatcher,
        heartbeat: Heartbeat,
        ticker: Ticker,
        recovery: RecoveryScanner,
        progress: ProgressWriter,
        active: ActiveJobs,
        make_listener: Callable[[Callable[[str], None], Callable[[str], None], Callable[[], None]], Listener],
        pace: Pace,
    ) -> None:
        self._dispatcher = dispatcher
        self._beats = Pulse("heartbeat", heartbeat.run_once, heartbeat.close, seconds=pace.heartbeat_seconds)
        self._recovery = recovery
        self._active = active
        self._shutdown_seconds = pace.shutdown_seconds
        self._poll = PeriodicLoop("dispatch", self._dispatch, interval_seconds=pace.poll_seconds)
        self._keeping = [
            PeriodicLoop("tick", ticker.run_once, interval_seconds=pace.tick_seconds),
            PeriodicLoop("fence", heartbeat.stop_expired, interval_seconds=FENCE_SECONDS),
            PeriodicLoop("progress", progress.run_once, interval_seconds=PROGRESS_SECONDS),
        ]
        self._recover = PeriodicLoop("recovery", recovery.run_once, interval_seconds=pace.recovery_seconds)
        self._listener = make_listener(lambda _queue: self._poll.wake(), self._cancel, self._poll.wake)
        self._is_draining = False
        self._stopping = asyncio.Event()
        self._hurrying = asyncio.Event()
        dispatcher.on_slot_free = self._poll.wake

    def stop(self) -> None:
        """What SIGTERM does: first time finish what runs, second time do not wait for it."""
        if self._stopping.is_set():
            self._hurrying.set()
        self._stopping.set()

    async def run(self, *, drain: bool = False) -> None:
        """Work until stopped; with `drain`, until nothing is due any more."""
        self._is_draining = drain
        async with _Tasks() as keeping:
            self._beats.start()
            for loop in self._keeping:
                keeping.start(loop.run())
            async with _Tasks() as taking:
                if drain:
                    await self._recovery.run_once()
                taking.start(self._recover.run())
                taking.start(self._listener.run())
                polling = asyncio.create_task(self._poll.run())
                log.info("worker_started")
                await self._stopping.wait()
                await self._stop_taking(polling)
            await self._finish()
            await self._beats.stop(timeout_seconds=BEATS_SECONDS)
        log.info("worker_stopped")

    async def _dispatch(self) -> None:
        started = await self._dispatcher.run_once()
        if self._is_draining and not started and not len(self._active):
            self.stop()

    async def _stop_taking(self, polling: asyncio.Task[None]) -> None:
        self._dispatcher.is_stopping = True
        self._poll.stop()
        await asyncio.wait([polling], timeout=TAKING_SECONDS)
        polling.cancel()

    async def _finish(self) -> None:
        """Let running jobs end; those that take too long are handed back."""
        if len(self._active):
            log.info("worker_draining", jobs=len(self._active), timeout_seconds=self._shutdown_seconds)
        await _first_of(self._active.wait_empty(), self._hurrying.wait(), timeout=self._shutdown_seconds)
        for job in self._active:
            log.warning("job_handed_back", job_id=str(job.attempt.job_id))
            job.stop(HandedBack())
        await _first_of(self._active.wait_empty(), timeout=ABORT_SECONDS)

    def _cancel(self, payload: str) -> None:
        for job in self._active:
            if str(job.lease.job_id) == payload:
                job.stop(Cancelled())


def stop_on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)


class _Tasks:
    """Tasks that live as long as the block, and are gone when it is left."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def __aenter__(self) -> "_Tasks":
        return self

    async def __aexit__(self, *_exc: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _first_of(*waits: Coroutine[Any, Any, object], timeout: float) -> None:
    tasks = [asyncio.create_task(wait) for wait in waits]
    await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
