"""A job that is told to stop ends as it was told, wherever the word reaches it, and nothing more of it begins."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import asyncpg
import pytest

from worker.continuation.store import RunStore
from worker.domain.job import Attempt, JobId, Lease, LeaseToken, StageName, WorkerId
from worker.domain.outcome import AbortReason, Cancelled, HandedBack, LeaseLost
from worker.errors import FatalError
from worker.errors import LeaseLost as LeaseLostError
from worker.jobs.store import Acquired
from worker.runtime.active import ActiveJob, ActiveJobs
from worker.runtime.dispatcher import Dispatcher
from worker.runtime.executor import Executor
from worker.runtime.scratch import Scratch
from worker.runtime.solitude import Solitude
from worker.runtime.tally import Tally
from worker.stages.base import Courses, Work
from worker.telemetry.metrics import Metrics

HANDED_BACK = HandedBack(AbortReason.SHUTDOWN)


def an_attempt() -> Attempt:
    return Attempt(Lease(JobId(uuid4()), "clip", LeaseToken(1), 0), {}, 1, 3, 0, 900, None)


class Store:
    """Writes down what it is asked to write."""

    def __init__(self, *, cancelled: bool = False) -> None:
        self.attempt = an_attempt()
        self.wrote: list[str] = []
        self._cancelled = cancelled

    async def acquire(self, _queue: str, _count: int, _worker: WorkerId) -> Acquired:
        return Acquired([self.attempt], frozenset({self.attempt.job_id} if self._cancelled else ()), 0)

    async def note(self, _lease: Lease, kind: str, *_args: Any, **_options: Any) -> None:
        self.wrote.append(kind)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[None]]:
        async def write(*_args: Any, **_options: Any) -> None:
            self.wrote.append(name)

        return write


class Stage:
    def __init__(self, name: StageName, body: Callable[[], Awaitable[None]]) -> None:
        self.name = name
        self._body = body
        self.has_begun = asyncio.Event()

    async def run(self, _work: Work) -> None:
        self.has_begun.set()
        await self._body()


async def nothing() -> None:
    pass


async def wait_for_stop() -> None:
    await asyncio.Event().wait()


async def swallow() -> None:
    """As `asyncio.wait_for` does when what it waits for ends in the same moment."""
    try:
        await wait_for_stop()
    except asyncio.CancelledError:
        return


def break_with(error: Exception) -> Callable[[], Awaitable[None]]:
    """As a driver does that cannot clean up."""

    async def body() -> None:
        try:
            await wait_for_stop()
        except asyncio.CancelledError:
            raise error from None

    return body


def executor_of(store: Any, stages: list[Stage], directory: Path) -> Executor:
    scratch = Scratch(directory, min_free_bytes=0)
    courses, runs = Courses([[stage] for stage in stages]), cast("RunStore", None)  # nothing is split here
    return Executor(
        courses, store=store, runs=runs, scratch=scratch, solitude=Solitude(), tally=Tally(), metrics=Metrics()
    )


@pytest.mark.parametrize(
    "body",
    [
        wait_for_stop,
        swallow,
        break_with(FatalError("not the job's fault")),
        break_with(asyncpg.ConnectionDoesNotExistError("gone")),
        break_with(KeyError("cleaning up")),
        break_with(LeaseLostError("the database stayed away")),
    ],
    ids=["as it should", "swallowed", "fatal", "transient", "unexpected", "lease lost"],
)
async def test_stop_is_what_becomes_of_the_job_whatever_the_stage_makes_of_it(
    tmp_path: Path, body: Callable[[], Awaitable[None]]
) -> None:
    store = Store()
    first, second = Stage(StageName.RESOLVE, body), Stage(StageName.CLIP, nothing)
    job = ActiveJob(store.attempt, time.monotonic(), 30)
    job.task = asyncio.create_task(executor_of(store, [first, second], tmp_path).run(job))
    await asyncio.wait_for(first.has_begun.wait(), 10)
    job.stop(HANDED_BACK)
    await asyncio.wait_for(job.task, 10)
    assert store.wrote[-1] == "release"
    assert not {"finish", "requeue", "give_up"} & {*store.wrote}
    assert not second.has_begun.is_set()


async def test_nothing_begins_of_a_job_that_was_told_to_stop_before(tmp_path: Path) -> None:
    store = Store()
    stage = Stage(StageName.RESOLVE, nothing)
    job = ActiveJob(store.attempt, time.monotonic(), 30)
    job.stop(HANDED_BACK)
    await executor_of(store, [stage], tmp_path).run(job)
    assert store.wrote == ["release"]
    assert not stage.has_begun.is_set()


@pytest.mark.parametrize(("cancelled", "word"), [(True, Cancelled()), (False, HANDED_BACK)])
async def test_job_that_is_told_to_stop_before_its_task_runs_comes_to_its_end(
    cancelled: bool, word: Cancelled | HandedBack
) -> None:
    """A task that is cancelled before its first step never runs: the job would keep its slot for ever."""
    store: Any = Store(cancelled=cancelled)
    active, told = ActiveJobs(), []

    async def execute(job: ActiveJob) -> None:
        told.append(job.stop_reason)

    dispatcher = Dispatcher(
        store,
        active,
        execute,
        queues=["clip"],
        worker_id=lambda: WorkerId(uuid4()),
        max_concurrency=1,
        lease_holds_seconds=30,
        metrics=Metrics(),
    )
    assert await dispatcher.run_once() == 1
    for job in active:
        job.stop(word)
    await asyncio.wait_for(active.wait_empty(), 5)
    assert told == [word]
    assert await dispatcher.run_once() == 1  # its slot is free again


async def test_attempt_whose_job_came_back_to_us_is_over() -> None:
    """Only one of them can be looked after."""
    active, attempt = ActiveJobs(), an_attempt()
    older, newer = ActiveJob(attempt, time.monotonic(), 30), ActiveJob(attempt, time.monotonic(), 30)
    active.add(older)
    active.add(newer)
    assert older.stop_reason == LeaseLost()
    assert newer.stop_reason is None
    active.remove(older)
    assert active.get(attempt.job_id) is newer
