"""The situations a job can be in when two operations meet, the operations, and what can be seen of them afterwards."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tests.integration.leases.ground import LEASE_SECONDS, QUEUE, ROWS, Ground, require_sound
from tests.integration.leases.stepping import Race, Schedule, Side, following
from worker.db.pool import open_connection
from worker.domain.job import Attempt, Lease, WorkerId
from worker.errors import LeaseLost, UpstreamFailure
from worker.jobs.desk import JobDesk
from worker.jobs.recovery import ScanReport, StaleLeases
from worker.jobs.store import Acquired, BeatAnswer, JobStore
from worker.queue import PgBoss

FIRST, SECOND, LEFT, RIGHT = (WorkerId(UUID(int=number)) for number in range(1, 5))
NAMES = {FIRST: "first", SECOND: "second", LEFT: "left", RIGHT: "right", None: None}


@dataclass(frozen=True)
class Actor:
    """One side of a race: everything it does goes through its own stepped connection."""

    store: JobStore
    desk: JobDesk
    leases: StaleLeases
    queue: PgBoss
    worker: WorkerId


@dataclass(frozen=True)
class Scene:
    job_id: UUID
    #: the lease that each side acts with, if there is one
    grips: tuple[Lease | None, Lease | None]


Operation = Callable[[Actor, UUID, Any], Awaitable[Any]]
#: by name; those of LEASED need a lease
OPERATIONS: dict[str, Operation] = {
    "acquire": lambda actor, job_id, lease: actor.store.acquire(QUEUE, 1, actor.worker),
    "scan": lambda actor, job_id, lease: actor.leases.recover(silent_are_dead=True),
    "cancel": lambda actor, job_id, lease: actor.desk.cancel(job_id),
    "node cancel": lambda actor, job_id, lease: actor.queue.cancel(QUEUE, [job_id]),
    "beat": lambda actor, job_id, lease: actor.store.beat([lease]),
    "finish": lambda actor, job_id, lease: actor.store.finish(lease, {"by": lease.token}),
    "requeue": lambda actor, job_id, lease: actor.store.requeue(lease, UpstreamFailure("away")),
    "mark cancelled": lambda actor, job_id, lease: actor.store.mark_cancelled(lease),
    "release": lambda actor, job_id, lease: actor.store.release(lease),
}
LEASED = frozenset({"beat", "finish", "requeue", "mark cancelled", "release"})
#: only one of these may end an attempt
ENDINGS = frozenset({"finish", "requeue", "mark cancelled"})
#: they pass over what is locked, and come again with the next tick
PASSING = frozenset({"acquire", "scan"})
SITUATIONS = ("queued", "live", "stale", "taken over", "cancel requested", "given back")


#: the rows of the situation, kept beside the real tables
REMEMBER = """
DROP TABLE IF EXISTS kept_delivery, kept_job, kept_event;
CREATE TABLE kept_delivery AS TABLE pgboss.job;
CREATE TABLE kept_job AS TABLE worker.jobs;
CREATE TABLE kept_event AS TABLE worker.job_events;
"""
#: and back: ten times as fast as TRUNCATE, which makes new files
RECALL = """
DELETE FROM pgboss.job;
DELETE FROM worker.jobs;
DELETE FROM worker.job_events;
INSERT INTO pgboss.job TABLE kept_delivery;
INSERT INTO worker.jobs TABLE kept_job;
INSERT INTO worker.job_events OVERRIDING SYSTEM VALUE TABLE kept_event;
"""


class Arena:
    def __init__(self, ground: Ground, race: Race, actors: tuple[Actor, Actor]) -> None:
        self._ground = ground
        self._race = race
        self._actors = actors
        self._has_node = False
        self._store = JobStore(ground.pool, ground.queue, LEASE_SECONDS)

    def set(self, situation: str) -> Scene:
        """Bring a job into the situation, by real operations, and remember the rows."""
        run, pool = self._ground.run, self._ground.pool
        self._ground.clear()
        desk = JobDesk(pool, self._ground.queue)
        job_id = run(desk.submit(QUEUE, {}))
        assert job_id is not None
        grips: tuple[Lease | None, Lease | None] = (None, None)
        if situation != "queued":
            first = self._acquire(FIRST)
            grips = (first, first)
            if situation in {"stale", "taken over"}:
                self._ground.silence(job_id)
            if situation == "taken over":
                run(StaleLeases(pool, self._ground.queue, lease_seconds=LEASE_SECONDS).recover(silent_are_dead=True))
                grips = (first, self._acquire(SECOND))
            elif situation == "cancel requested":
                run(desk.cancel(job_id))
            elif situation == "given back":
                run(self._store.release(first))
        run(pool.execute(REMEMBER))
        return Scene(job_id, grips)

    def outcomes(self, scene: Scene, names: tuple[str, str]) -> Iterator[tuple[Schedule, Any]]:
        """What can be seen after each schedule there is, both serial orders among them."""
        schedule: Schedule | None = ()
        while schedule is not None:
            path, outcome = self._ground.run(self._play(scene, names, schedule))
            yield tuple(chosen for chosen, _ in path), outcome
            schedule = following(path)

    def alone(self, scene: Scene, names: tuple[str, str], at: int) -> Any:
        """What can be seen when one side acts and the other finds nothing to do."""

        async def run() -> Any:
            self._has_node = "node cancel" in names
            await self._ground.pool.execute(RECALL)
            absent = Acquired([], frozenset(), 0) if names[1 - at] == "acquire" else ScanReport({})

            async def nothing() -> Any:
                return absent

            acting = self._call(scene, names, at)
            await self._race.run((nothing(), acting) if at else (acting, nothing()), ())
            return await self._seen()

        return self._ground.run(run())

    async def _play(self, scene: Scene, names: tuple[str, str], schedule: Schedule) -> tuple[Any, Any]:
        self._has_node = "node cancel" in names
        await self._ground.pool.execute(RECALL)
        calls = (self._call(scene, names, 0), self._call(scene, names, 1))
        path = await self._race.run(calls, schedule)
        return path, await self._seen()

    def _call(self, scene: Scene, names: tuple[str, str], at: int) -> Awaitable[Any]:
        return OPERATIONS[names[at]](self._actors[at], scene.job_id, scene.grips[at])

    async def _seen(self) -> Any:
        (row,) = (dict(found) for found in await self._ground.pool.fetch(ROWS))
        answers = tuple(_answer(side.outcome()) for side in self._race.sides)
        require_sound(row, moved_by_node=self._has_node and row["state"] == "cancelled")
        held_by = NAMES[row["worker_id"]] if row["status"] == "processing" else None
        kept = ("status", "state", "attempt_count", "crash_count", "retry_count", "pulse", "is_unwanted", "result")
        facts = {name: str(row[name]) for name in kept} | {"holder": held_by, "events": tuple(row["events"])}
        return (*facts.items(), ("answers", answers))

    def _acquire(self, worker: WorkerId) -> Lease:
        (attempt,) = self._ground.run(self._store.acquire(QUEUE, 1, worker)).attempts
        return attempt.lease


def _answer(outcome: Any) -> Any:
    match outcome:
        case LeaseLost():
            return "lease lost"
        case BaseException():
            raise AssertionError(f"{type(outcome).__name__}: {outcome}") from outcome
        case Acquired(attempts=attempts):
            return ("acquired", tuple(_number(attempt) for attempt in attempts))
        case BeatAnswer(lost=lost, cancelled=cancelled):
            return "cancelled" if cancelled else "lost" if lost else "held"
        case ScanReport(recovered=recovered):
            return ("scanned", tuple(sorted(recovered.items())))
        case set():
            return len(outcome)
    return outcome


def _number(attempt: Attempt) -> int:
    return attempt.number


@contextmanager
def open_arena(ground: Ground, make_store: type[JobStore] = JobStore) -> Iterator[Arena]:
    connections = [ground.run(open_connection(ground.dsn, name=f"tests {number}")) for number in range(3)]
    sides = (Side(connections[0]), Side(connections[1]))
    try:
        yield Arena(
            ground,
            Race(sides, connections[2]),
            (_actor(ground, sides[0], LEFT, make_store), _actor(ground, sides[1], RIGHT, make_store)),
        )
    finally:
        for connection in connections:
            ground.run(connection.close())


def _actor(ground: Ground, side: Any, worker: WorkerId, make_store: type[JobStore]) -> Actor:
    queue = PgBoss(side, schema=ground.queue.schema, version=ground.queue.version)
    return Actor(
        make_store(side, queue, LEASE_SECONDS),
        JobDesk(side, queue),
        StaleLeases(side, queue, lease_seconds=LEASE_SECONDS),
        queue,
        worker,
    )
