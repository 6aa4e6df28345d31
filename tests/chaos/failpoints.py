"""The worker's store with its every write traced, and with named points before and after each where it may fail."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import asyncpg

from tests.chaos.trace import TraceWriter
from worker.domain.job import Attempt, Lease, WorkerId
from worker.jobs.store import Acquired, BeatAnswer, JobStore

T = TypeVar("T")

ACTIONS = ("error", "sleep", "kill", "stop")
#: errors and pauses are everyday; each death costs a second of starting anew
ACTION_WEIGHTS = (6, 3, 1, 1)
LONGEST_SLEEP_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class FailpointPlan:
    #: that a given point fires
    probability: float
    seed: str


class Failpoints:
    """`before:finish` fails with nothing written; `after:finish` with everything written and nobody told."""

    def __init__(self, plan: FailpointPlan, trace: TraceWriter) -> None:
        self._probability = plan.probability
        self._random = random.Random(plan.seed)
        self._trace = trace

    async def reach(self, point: str) -> None:
        if self._random.random() >= self._probability:
            return
        action = self._random.choices(ACTIONS, ACTION_WEIGHTS)[0]
        self._trace.record("failpoint", point=point, action=action)
        match action:
            case "error":
                raise asyncpg.ConnectionDoesNotExistError(f"failpoint {point}")
            case "sleep":
                await asyncio.sleep(self._random.uniform(0, LONGEST_SLEEP_SECONDS))
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stop":
                # the fleet wakes it up again after two leases
                os.kill(os.getpid(), signal.SIGSTOP)


class Leases:
    """The attempts this process was given, for stages that behave differently at each."""

    def __init__(self) -> None:
        self._attempts: dict[int, Attempt] = {}

    def remember(self, attempts: Sequence[Attempt]) -> None:
        self._attempts |= {int(attempt.lease.token): attempt for attempt in attempts}

    def attempt(self, token: int) -> Attempt:
        return self._attempts[token]


class Tracing:
    """What happens around a write."""

    def __init__(self, leases: Leases, trace: TraceWriter, failpoints: Failpoints) -> None:
        self._leases = leases
        self._trace = trace
        self._failpoints = failpoints

    async def take(self, worker_id: WorkerId, call: Callable[[], Awaitable[Acquired]]) -> Acquired:
        before = time.monotonic()
        await self._failpoints.reach("before:acquire")
        acquired = await call()
        after = time.monotonic()
        self._leases.remember(acquired.attempts)
        for attempt in acquired.attempts:
            job, token = str(attempt.job_id), attempt.lease.token
            self._trace.record("taken", worker=str(worker_id), job=job, token=token, before=before, after=after)
        await self._failpoints.reach("after:acquire")
        return acquired

    async def write(self, name: str, held: Sequence[Lease], call: Callable[[], Awaitable[T]]) -> T:
        await self._failpoints.reach(f"before:{name}")
        before = time.monotonic()
        answer = await call()
        confirmed = held
        if isinstance(answer, BeatAnswer):
            confirmed = [lease for lease in held if lease.job_id not in answer.lost | answer.cancelled]
        if confirmed:
            leases = [(str(lease.job_id), lease.token) for lease in confirmed]
            self._trace.record("wrote", name=name, before=before, leases=leases)
        await self._failpoints.reach(f"after:{name}")
        return answer


class _TracedWrites(JobStore):
    tracing: Tracing

    async def acquire(self, queue: str, count: int, worker_id: WorkerId) -> Acquired:
        return await self.tracing.take(worker_id, partial(super().acquire, queue, count, worker_id))

    async def finish(self, lease: Lease, *args: Any, **options: Any) -> None:
        await self.tracing.write("finish", [lease], partial(super().finish, lease, *args, **options))

    async def requeue(self, lease: Lease, *args: Any, **options: Any) -> None:
        await self.tracing.write("requeue", [lease], partial(super().requeue, lease, *args, **options))

    async def give_up(self, lease: Lease, *args: Any, **options: Any) -> None:
        await self.tracing.write("give_up", [lease], partial(super().give_up, lease, *args, **options))

    async def mark_cancelled(self, lease: Lease, *args: Any, **options: Any) -> None:
        await self.tracing.write("mark_cancelled", [lease], partial(super().mark_cancelled, lease, *args, **options))

    async def release(self, lease: Lease, *args: Any, **options: Any) -> None:
        await self.tracing.write("release", [lease], partial(super().release, lease, *args, **options))

    async def beat(self, leases: Sequence[Lease], *args: Any, **options: Any) -> BeatAnswer:
        return await self.tracing.write("beat", leases, partial(super().beat, leases, *args, **options))

    async def note(self, lease: Lease, *args: Any, **options: Any) -> None:
        await self.tracing.write("note", [lease], partial(super().note, lease, *args, **options))


def traced(base: type[JobStore], tracing: Tracing) -> type[JobStore]:
    """`base` with traces and failpoints around every write."""
    bases = (_TracedWrites,) if base is JobStore else (_TracedWrites, base)
    return type("TracedStore", bases, {"tracing": tracing})
