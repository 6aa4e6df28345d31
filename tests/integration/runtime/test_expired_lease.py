"""A worker that wakes up behind the end of its lease does not begin what others may have begun."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.conftest import LEASE_SECONDS, Room
from tests.jobs import event_kinds, one_attempt
from worker.continuation.store import RunStore
from worker.domain.job import Lease, StageName, WorkerId
from worker.jobs.store import JobStore
from worker.runtime.active import ActiveJob
from worker.runtime.executor import Executor
from worker.runtime.scratch import Scratch
from worker.runtime.solitude import Solitude
from worker.runtime.tally import Tally
from worker.stages.base import Courses, Work
from worker.telemetry.metrics import Metrics


class FrozenBehindANote(JobStore):
    """Its process stands still between a confirmed write and whatever comes next, as under SIGSTOP."""

    async def note(
        self, lease: Lease, kind: str, data: Mapping[str, Any] | None = None, *, stage: StageName | None = None
    ) -> None:
        await super().note(lease, kind, data, stage=stage)
        time.sleep(0.3)  # the whole loop, which is the point


class Stage:
    name = StageName.RESOLVE

    def __init__(self) -> None:
        self.runs = 0

    async def run(self, _work: Work) -> None:
        self.runs += 1


@pytest.mark.parametrize(("holds_seconds", "runs"), [(0.2, 0), (30, 1)])
async def test_stage_does_not_begin_on_a_lease_that_is_over(
    room: Room, tmp_path: Path, holds_seconds: float, runs: int
) -> None:
    job_id = await room.desk.submit("clip", {})
    attempt = await one_attempt(room, WorkerId(uuid4()))
    store = FrozenBehindANote(room.pool, room.queue, lease_seconds=LEASE_SECONDS)
    stage = Stage()
    executor = Executor(
        Courses([[stage]]),
        store=store,
        runs=RunStore(room.pool, room.queue, store),
        scratch=Scratch(tmp_path, min_free_bytes=0),
        solitude=Solitude(),
        tally=Tally(),
        metrics=Metrics(),
    )
    job = ActiveJob(attempt, time.monotonic(), holds_seconds)
    job.task = asyncio.create_task(executor.run(job))
    await job.task
    assert stage.runs == runs
    kinds = await event_kinds(room, job_id)
    assert ("aborted:cut-off" in kinds, "done" in kinds) == ((True, False) if runs == 0 else (False, True))
