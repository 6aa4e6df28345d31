"""A worker that nobody knows of takes no jobs."""

from typing import Any, cast
from uuid import uuid4

from worker.domain.job import WorkerId
from worker.jobs.store import Acquired, JobStore
from worker.runtime.active import ActiveJobs
from worker.runtime.dispatcher import Dispatcher
from worker.telemetry.metrics import Metrics


class Store:
    def __init__(self) -> None:
        self.asked: list[tuple[int, WorkerId]] = []

    async def acquire(self, _queue: str, count: int, worker: WorkerId) -> Acquired:
        self.asked.append((count, worker))
        return Acquired([], frozenset(), 0)


async def test_nothing_is_taken_without_an_id_and_all_slots_are_there_when_it_comes() -> None:
    store, ids = Store(), [cast("WorkerId | None", None)]

    async def execute(_job: Any) -> None:
        raise AssertionError("nothing was acquired")

    dispatcher = Dispatcher(
        cast("JobStore", store),
        ActiveJobs(),
        execute,
        queues=["clip"],
        worker_id=lambda: ids[0],
        max_concurrency=3,
        lease_holds_seconds=30,
        metrics=Metrics(),
    )
    assert (await dispatcher.run_once(), dispatcher.is_open, store.asked) == (0, False, [])
    ids[0] = worker = WorkerId(uuid4())
    await dispatcher.run_once()
    assert (dispatcher.is_open, store.asked) == (True, [(3, worker)])
