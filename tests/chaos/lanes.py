"""A lane is one kind of fault: its name, how often it strikes, and what it does; each heals what it broke."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import structlog

from tests.chaos.postgres import AWAY
from tests.chaos.rig import Rig, rng

log = structlog.get_logger(__name__)

Strike = Callable[[Rig, random.Random], Awaitable[int]]


@dataclass(slots=True)
class Lane:
    name: str
    #: on average, between two strikes
    every_seconds: float
    #: returns how many faults it made
    strike: Strike
    #: None, or why this machine cannot do it
    missing: str | None = None
    count: int = 0

    async def run(self, rig: Rig) -> None:
        """Until cancelled; strikes are drawn from the run's seed."""
        choice = rng(rig, self.name)
        while True:
            await asyncio.sleep(self.every_seconds * choice.uniform(0.5, 1.5))
            try:
                self.count += await self.strike(rig, choice)
            except AWAY as exc:
                # another lane has the database down
                log.debug("strike_missed", lane=self.name, error=str(exc))


@dataclass(slots=True)
class Storm:
    """Lanes at work together."""

    rig: Rig
    lanes: Sequence[Lane]
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def begin(self) -> None:
        self._tasks = [asyncio.create_task(lane.run(self.rig)) for lane in self.lanes if lane.missing is None]

    async def end(self) -> None:
        """Strikes in progress heal what they broke as they are cancelled; a lane that fell over says so here."""
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self.rig.fleet.thaw_all()
        self.rig.s3_faults.probability = 0.0
        self.rig.traits.clear()
        for failure in ended:
            if isinstance(failure, Exception):
                raise failure
