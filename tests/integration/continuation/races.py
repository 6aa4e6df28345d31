"""Two acts on one long job, each on its own connection, one interrupted by the other before any of its statements."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.conftest import Room
from tests.integration.continuation.long_jobs import LongJobs
from tests.integration.leases.ground import LEASE_SECONDS, Ground
from tests.integration.leases.stepping import STUCK_SECONDS, Race, Side
from worker.continuation.store import RunStore
from worker.db.pool import open_connection
from worker.domain.job import Attempt, JobId
from worker.domain.paging import PAGE_QUEUE
from worker.errors import LeaseLost
from worker.jobs.desk import JobDesk
from worker.jobs.recovery import StaleLeases
from worker.jobs.store import JobStore
from worker.queue import PgBoss

#: beyond this many statements nothing is interrupted: no act has so many
MOST_STEPS = 40


@dataclass
class Scene:
    job_id: JobId
    #: of the job that was split, when a worker looks at its pages
    looking: Attempt | None = None
    #: by partition and offset; those that a worker holds
    pages: dict[tuple[int, int], Attempt] = field(default_factory=dict)


Act = Callable[[LongJobs, Scene], Awaitable[Any]]
Setting = Callable[[LongJobs], Awaitable[Scene]]


class Interruption(Race):
    """The first side makes some steps, then the second goes on until it ends or waits, then whoever can."""

    async def play(self, calls: tuple[Awaitable[Any], Awaitable[Any]], after: int) -> bool:
        """Was there anything left of the first side to interrupt?"""
        for side, call in zip(self.sides, calls, strict=True):
            await side.begin(call)
        waiting: set[int] = set()
        steps, is_interrupted = 0, False
        while not all(side.is_over for side in self.sides):
            movable = [at for at, side in enumerate(self.sides) if not side.is_over and at not in waiting]
            wanted = 0 if steps < after else 1
            chosen = wanted if wanted in movable else movable[0]
            is_interrupted |= wanted == 1 and not self.sides[0].is_over
            steps += 1
            self.sides[chosen].go()
            waiting = {at for at in (chosen, *(waiting - {chosen})) if await self._is_stuck(at)}
            if len(waiting) == 2:
                waiting = set()
                for side in self.sides:  # the server ends one of them, which then tells of a deadlock
                    assert await side.arrives(STUCK_SECONDS), "both sides wait for each other, for ever"
        return is_interrupted

    def complaints(self) -> list[BaseException]:
        """To be told that the lease is lost is no failure of a zombie; a deadlock is one of anybody."""
        found = [side.outcome() for side in self.sides]
        return [each for each in found if isinstance(each, BaseException) and not isinstance(each, LeaseLost)]


class Ring:
    def __init__(self, ground: Ground, race: Interruption) -> None:
        self.ground = ground
        self.race = race
        self.long = long_jobs(ground.pool, ground.queue)
        self._actors = [long_jobs(side, ground.queue) for side in race.sides]

    def scenes(self, setting: Setting, acts: tuple[Act, Act]) -> Iterator[Scene]:
        """What is left of the setting after each interruption there is, of either by the other."""
        for order in (acts, acts[::-1]):
            for after in range(MOST_STEPS):
                scene = self.ground.run(self._set(setting))
                calls = (order[0](self._actors[0], scene), order[1](self._actors[1], scene))
                is_interrupted = self.ground.run(self.race.play(calls, after))
                assert self.race.complaints() == [], f"interrupted after {after} steps"
                yield scene
                if not is_interrupted:
                    break

    async def _set(self, setting: Setting) -> Scene:
        await self.ground.pool.execute(CLEAR)
        return await setting(self.long)


#: ten times as fast as TRUNCATE, which makes new files
CLEAR = """
DELETE FROM worker.runs;
DELETE FROM worker.job_events;
DELETE FROM worker.jobs;
DELETE FROM pgboss.job;
"""


def long_jobs(pool: Any, queue: PgBoss) -> LongJobs:
    client = PgBoss(pool, schema=queue.schema, version=queue.version)
    store = JobStore(pool, client, LEASE_SECONDS)
    leases = StaleLeases(pool, client, lease_seconds=LEASE_SECONDS)
    return LongJobs(Room(pool, client, store, JobDesk(pool, client), leases), RunStore(pool, client, store))


@contextmanager
def open_ring(ground: Ground) -> Iterator[Ring]:
    ground.run(ground.queue.create_queue(PAGE_QUEUE, retry_limit=2))
    connections = [ground.run(open_connection(ground.dsn, name=f"tests {number}")) for number in range(3)]
    try:
        yield Ring(ground, Interruption((Side(connections[0]), Side(connections[1])), connections[2]))
    finally:
        for connection in connections:
            ground.run(connection.close())
