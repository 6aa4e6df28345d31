"""Random histories of workers that stall, die and come back: real tables and a model in Python must always agree."""

from collections import Counter
from collections.abc import Iterator
from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.integration.leases.fleet import WORKERS, Fleet, Grip
from tests.integration.leases.ground import Ground, open_ground
from worker.jobs.store import JobStore

SETTINGS = settings(
    max_examples=300,
    stateful_step_count=40,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
WRITES = ("finish", "requeue", "give_up", "mark_cancelled", "release", "note")
#: of these a run must have seen some, or it has proved nothing: random rules easily keep to the shallows
MUST_BE_SEEN = (
    *(f"{write} by the holder" for write in WRITES),
    *(f"{write} by a zombie" for write in WRITES),
    *(f"event {kind}" for kind in ("requeued:stale", "requeued:handed-back", "done", "failed", "cancelled", "revived")),
    "beat held",
    "beat lost",
    "beat cancelled",
    "taken over",
)
workers = st.integers(0, WORKERS - 1)


class LeaseMachine(RuleBasedStateMachine):
    def __init__(self, ground: Ground, make_store: type[JobStore], seen: Counter[str]) -> None:
        super().__init__()
        self.fleet = Fleet(ground, make_store)
        self.paused: set[int] = set()
        self.seen = seen

    @initialize(retry_limit=st.integers(0, 3))
    def begin_with_a_held_job(self, retry_limit: int) -> None:
        self.fleet.submit(retry_limit)
        self.fleet.acquire(0)

    @precondition(lambda self: len(self.fleet.jobs) < 3)
    @rule(by_node=st.booleans(), retry_limit=st.integers(0, 3))
    def enqueue(self, by_node: bool, retry_limit: int) -> None:
        _ = self.fleet.send(retry_limit) if by_node else self.fleet.submit(retry_limit)

    @precondition(lambda self: any(job.is_due for job in self.fleet.jobs.values()))
    @rule(worker=workers, count=st.integers(1, 2))
    def acquire(self, worker: int, count: int) -> None:
        self.paused.discard(worker)  # whoever acquires is awake
        for grip in self.fleet.acquire(worker, count):
            self.seen["taken over"] += any(other.job_id == grip.job_id for other in self.fleet.lost_grips)

    @precondition(lambda self: any(grip.worker not in self.paused for grip in self.fleet.grips))
    @rule(data=st.data())
    def beat(self, data: st.DataObject) -> None:
        awake = [grip for grip in self.fleet.grips if grip.worker not in self.paused]
        self.seen[f"beat {self.fleet.beat(data.draw(st.sampled_from(awake)))}"] += 1

    @precondition(lambda self: any(grip.worker not in self.paused for grip in self.fleet.held_grips))
    @rule(data=st.data())
    def pause(self, data: st.DataObject) -> None:
        """It beats no more until it acquires again or wakes; its writes may still come at any time."""
        self.paused.add(data.draw(st.sampled_from(self.fleet.held_grips)).worker)

    @precondition(lambda self: self.paused)
    @rule(data=st.data())
    def wake(self, data: st.DataObject) -> None:
        self.paused.discard(data.draw(st.sampled_from(sorted(self.paused))))

    @precondition(lambda self: any(grip.worker in self.paused for grip in self.fleet.held_grips))
    @rule()
    def expire(self) -> None:
        for worker in sorted(self.paused):
            self.fleet.expire(worker)

    @precondition(lambda self: any(job.pulse in {"silent", "given back"} for job in self.fleet.jobs.values()))
    @rule(silent_are_dead=st.sampled_from([True, True, False]))
    def scan(self, silent_are_dead: bool) -> None:
        self.fleet.scan(silent_are_dead=silent_are_dead)

    @rule(worker=workers)
    def look_around_for_nothing(self, worker: int) -> None:
        """Live leases must survive everybody's polls and scans."""
        if not any(job.pulse in {"silent", "given back"} or job.is_due for job in self.fleet.jobs.values()):
            self.fleet.acquire(worker)
            self.fleet.scan(silent_are_dead=True)

    @precondition(lambda self: self.fleet.held_grips)
    @rule(data=st.data(), write=st.sampled_from(WRITES))
    def holder_writes(self, data: st.DataObject, write: str) -> None:
        grip = data.draw(st.sampled_from(self.fleet.held_grips))
        # Refused all the same if Node has moved the delivery on meanwhile.
        self.seen[f"{write} by the holder"] += self._write(grip, write)

    @precondition(lambda self: self.fleet.lost_grips)
    @rule(data=st.data(), write=st.sampled_from(WRITES))
    def zombie_writes(self, data: st.DataObject, write: str) -> None:
        grip = data.draw(st.sampled_from(self.fleet.lost_grips))
        assert not self._write(grip, write)
        self.seen[f"{write} by a zombie"] += 1

    @rule(data=st.data(), act=st.sampled_from(["cancel", "retry", "node_cancel", "node_revive"]))
    def somebody_intervenes(self, data: st.DataObject, act: str) -> None:
        job_id: UUID = data.draw(st.sampled_from(list(self.fleet.jobs)))
        getattr(self.fleet, act)(job_id)

    @invariant()
    def tables_are_as_the_model_says(self) -> None:
        self.fleet.check()

    def teardown(self) -> None:
        for job in self.fleet.jobs.values():
            self.seen.update(f"event {kind}" for kind in job.events)

    def _write(self, grip: Grip, write: str) -> bool:
        return bool(getattr(self.fleet, write)(grip))


@pytest.fixture(scope="module")
def ground(server_dsn: str, template_database: str) -> Iterator[Ground]:
    with open_ground(server_dsn, template_database) as ground:
        yield ground


@pytest.mark.timeout(180)
def test_any_history_of_workers_leaves_both_tables_as_the_model_says(ground: Ground) -> None:
    seen: Counter[str] = Counter()
    run_state_machine_as_test(lambda: LeaseMachine(ground, JobStore, seen), settings=SETTINGS)
    assert [what for what in MUST_BE_SEEN if not seen[what]] == []
