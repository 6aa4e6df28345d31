"""Starts the worker's loops in order, and stops them in order when asked to."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import structlog

from worker.db.listen import Listener
from worker.domain.outcome import AbortReason, Cancelled, HandedBack
from worker.runtime.active import ActiveJobs
from worker.runtime.dispatcher import Dispatcher
from worker.runtime.loop import PeriodicLoop
from worker.runtime.pulse import Pulse

log = structlog.get_logger(__name__)

#: stopped children are gone after 5 s at most; a database that does not answer must not hold up the exit
ABORT_SECONDS = 10.0
#: an acquire in flight may have claimed jobs; it is waited for, but not for ever
TAKING_SECONDS = 5.0
BEATS_SECONDS = 2.0


class Supervisor:
    """Loops that keep what is running alive start first and stop last; those that take on more, the other way round."""

    def __init__(
        self,
        *,
        dispatcher: Dispatcher,
        active: ActiveJobs,
        beats: Pulse,
        keeping: Sequence[PeriodicLoop],
        taking: Sequence[PeriodicLoop],
        make_listener: Callable[[Callable[[str], None], Callable[[str], None], Callable[[], None]], Listener],
        poll_seconds: float,
        shutdown_seconds: float,
    ) -> None:
        self._dispatcher = dispatcher
        self._active = active
        self._beats = beats
        self._keeping = keeping
        self._taking = taking
        self._shutdown_seconds = shutdown_seconds
        self._poll = PeriodicLoop("dispatch", self._dispatch, interval_seconds=poll_seconds)
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
                for loop in self._taking:
                    taking.start(loop.run())
                taking.start(self._listener.run())
                polling = asyncio.create_task(self._poll.run())
                log.info("worker_started")
                await self._stopping.wait()
                await self._stop_taking(polling)
            await self._finish()
            await self._beats.stop(timeout_seconds=BEATS_SECONDS)
        log.info("worker_stopped")

    async def _dispatch(self) -> None:
        # Whoever was still running while we looked may just have put its job back.
        was_idle = not len(self._active)
        started = await self._dispatcher.run_once()
        if self._is_draining and was_idle and not started and self._dispatcher.is_open:
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
            job.stop(HandedBack(AbortReason.SHUTDOWN))
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
