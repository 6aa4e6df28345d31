"""Tells everybody that this worker is there, and what it got done: a row with its heartbeat and its counts."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from uuid import uuid4

import asyncpg
import structlog

from worker.domain.job import WorkerId
from worker.jobs.workers import Place, QueueTotal, WorkerRows
from worker.runtime.loop import PeriodicLoop
from worker.runtime.persist import is_transient
from worker.runtime.tally import Tally

log = structlog.get_logger(__name__)

#: how often what ended is counted by queue, if anything did
PROGRESS_SECONDS = 1.0
PRUNE_SECONDS = 3600.0
#: for the last heartbeat; a database that does not answer must not hold up the exit
FAREWELL_SECONDS = 2.0
#: no table, no function, or no right to it: an older schema, or one that is not ours to write to
_MISSING = (asyncpg.SyntaxOrAccessError, asyncpg.InvalidSchemaNameError)


class Registry:
    """A database that is away costs nothing: the tally goes on, and its totals are sent when somebody listens again."""

    def __init__(
        self,
        rows: WorkerRows,
        tally: Tally,
        *,
        version: str,
        place: Place,
        queues: Sequence[str],
        interval_seconds: float,
        retention_seconds: float,
    ) -> None:
        self._rows = rows
        self._tally = tally
        self._version = version
        self._place = place
        self._queues = queues
        self._interval_seconds = interval_seconds
        self._retention_seconds = retention_seconds
        self._worker_id: WorkerId | None = None
        self._is_registered = False
        self._is_off = False
        # Of the tally: what is known to be counted, and what of that a row before this one has counted.
        self._counted = self._base = (0, 0)
        self._counted_queues: Counter[str] = Counter()
        self._base_queues: Counter[str] = Counter()
        self._turn = asyncio.Lock()
        #: called when jobs may be taken again
        self.on_registered: Callable[[], None] = lambda: None

    @property
    def worker_id(self) -> WorkerId | None:
        """What new leases carry. None: take nothing, nobody knows of this worker yet, or any more."""
        return self._worker_id

    async def register(self) -> None:
        """At boot, once. Should it fail, the first turn tries again."""
        try:
            await self.run_once()
        except Exception as exc:  # noqa: BLE001 - whatever it is, it is no reason not to start
            log.warning("registration_delayed", error=f"{type(exc).__name__}: {exc}")

    async def run_once(self) -> None:
        """One heartbeat, with what ended since the one before."""
        async with self._turn:
            if self._is_off:
                return
            try:
                if not self._is_registered or not await self._beat():
                    await self._start()
            except _MISSING as exc:
                self._turn_off(exc)

    async def note_progress(self) -> None:
        """What ended, by queue; nothing is written if nothing did."""
        async with self._turn:
            if not self._is_registered:
                return
            try:
                await self._count_queues()
            except _MISSING as exc:
                self._turn_off(exc)

    async def prune(self) -> None:
        """Forget workers that ended long ago, whoever they were."""
        if self._is_registered and (forgotten := await self._rows.prune(older_than_seconds=self._retention_seconds)):
            log.info("workers_pruned", workers=forgotten)

    async def leave(self) -> None:
        """The last heartbeat, and good-bye; given up after a moment."""
        try:
            async with asyncio.timeout(FAREWELL_SECONDS), self._turn:
                if self._is_registered and self._worker_id is not None and await self._beat():
                    await self._count_queues()
                    await self._rows.stop(self._worker_id)
        except Exception as exc:  # noqa: BLE001 - whatever it is, it is no reason to stay
            log.warning("farewell_failed", error=f"{type(exc).__name__}: {exc}")

    def loops(self) -> list[PeriodicLoop]:
        every = self._interval_seconds
        return [
            # In no longer pauses when it fails: nobody should look dead for long after the database came back.
            PeriodicLoop("registry", self.run_once, interval_seconds=every, longest_pause_seconds=every),
            PeriodicLoop("registry-progress", self.note_progress, interval_seconds=PROGRESS_SECONDS),
            PeriodicLoop("registry-prune", self.prune, interval_seconds=PRUNE_SECONDS),
        ]

    async def _start(self) -> None:
        """Get a row. Leases that are held already keep the id they were taken with, and end as they would have."""
        self._is_registered = False
        self._worker_id = None
        try:
            started = await self._rows.start(self._version, expected_seconds=self._interval_seconds, place=self._place)
        except asyncpg.PostgresError as exc:
            if is_transient(exc):
                raise
            self._turn_off(exc)
            return
        # What no row is known to have counted is this one's to count.
        self._base, self._base_queues = self._counted, self._counted_queues.copy()
        self._worker_id, self._is_registered = started, True
        log.info("worker_registered", worker_id=str(started))
        self.on_registered()
        await self._count_queues(every=True)

    async def _beat(self) -> bool:
        """False: the row is gone."""
        assert self._worker_id is not None, "there is an id as long as there is a row"
        totals = (self._tally.successes, self._tally.errors)
        is_known = await self._rows.heartbeat(
            self._worker_id,
            successes=totals[0] - self._base[0],
            errors=totals[1] - self._base[1],
            last_error=self._tally.last_error,
        )
        if is_known:
            self._counted = totals
        else:
            log.warning("worker_vanished", worker_id=str(self._worker_id), reason="its row was removed")
        return is_known

    async def _count_queues(self, *, every: bool = False) -> None:
        """`every`: those of which nothing has ended yet too, so that they have their row."""
        assert self._worker_id is not None, "there is an id as long as there is a row"
        processed = self._tally.processed.copy()
        changed = {queue for queue, count in processed.items() if count != self._counted_queues[queue]}
        if every:
            changed.update(self._queues)
        if changed:
            totals = {
                queue: QueueTotal(processed[queue] - self._base_queues[queue], self._tally.last_jobs.get(queue))
                for queue in changed
            }
            await self._rows.progress(self._worker_id, totals)
        self._counted_queues = processed

    def _turn_off(self, exc: Exception) -> None:
        self._is_off, self._is_registered = True, False
        self._worker_id = self._worker_id or WorkerId(uuid4())
        log.warning("registry_off", reason=f"{type(exc).__name__}: {exc}", hint="python -m worker migrate")
        self.on_registered()
