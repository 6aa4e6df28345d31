"""Three workers, an operator and a Node client on real tables, each of whose acts the model must have foreseen."""

from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass
from uuid import UUID, uuid4

from tests.integration.leases.ground import LEASE_SECONDS, QUEUE, Ground, require_sound
from tests.integration.leases.job_model import Held, ModelJob
from worker.domain.job import Lease, WorkerId
from worker.errors import ClipFailed, LeaseLost, UpstreamFailure
from worker.jobs.desk import JobDesk
from worker.jobs.recovery import StaleLeases
from worker.jobs.store import JobStore

WORKERS = 3


@dataclass(frozen=True)
class Grip:
    """A lease that a worker was given once, whether or not it still holds."""

    job_id: UUID
    worker: int
    lease: Lease
    held: Held


class Fleet:
    def __init__(self, ground: Ground, make_store: type[JobStore] = JobStore) -> None:
        ground.clear()
        self._ground = ground
        self._store = make_store(ground.pool, ground.queue, LEASE_SECONDS)
        self._desk = JobDesk(ground.pool, ground.queue)
        self._leases = StaleLeases(ground.pool, ground.queue, lease_seconds=LEASE_SECONDS)
        self._workers = [WorkerId(uuid4()) for _ in range(WORKERS)]
        self.grips: list[Grip] = []
        self.jobs: dict[UUID, ModelJob] = {}

    @property
    def held_grips(self) -> list[Grip]:
        return [grip for grip in self.grips if self.jobs[grip.job_id].held == grip.held]

    @property
    def lost_grips(self) -> list[Grip]:
        """Of zombies: they may still try everything."""
        return [grip for grip in self.grips if self.jobs[grip.job_id].held != grip.held]

    def submit(self, retry_limit: int) -> UUID:
        job_id = self._run(self._desk.submit(QUEUE, {}, {"retryLimit": retry_limit}))
        assert job_id is not None
        self.jobs[job_id] = ModelJob(retry_limit)
        self.jobs[job_id].submit()
        return job_id

    def send(self, retry_limit: int) -> UUID:
        """As a Node producer does: only pg-boss knows the job."""
        job_id = self._run(self._ground.queue.send(QUEUE, {}, retry_limit=retry_limit))
        assert job_id is not None
        self.jobs[job_id] = ModelJob(retry_limit)
        return job_id

    def acquire(self, worker: int, count: int = 1) -> list[Grip]:
        due = [job_id for job_id, job in self.jobs.items() if job.is_due][:count]
        acquired = self._run(self._store.acquire(QUEUE, count, self._workers[worker]))
        assert [attempt.job_id for attempt in acquired.attempts] == due, "acquired others than those due, oldest first"
        grips = []
        # Within a batch tokens come in any order, across batches they only grow.
        newest = max((grip.lease.token for grip in self.grips), default=0)
        tokens = {attempt.lease.token for attempt in acquired.attempts}
        assert len(tokens) == len(due), "a token was given twice"
        assert all(token > newest for token in tokens), "a token was used again"
        for attempt in acquired.attempts:
            job = self.jobs[attempt.job_id]
            held = job.acquire(len(self.grips))
            assert (attempt.number, attempt.crash_count, attempt.max_attempts, attempt.lease.retry_count) == (
                job.attempt_count + 1,
                job.crash_count,
                job.max_attempts,
                held.retry_count,
            )
            assert (attempt.job_id in acquired.cancelled) == job.is_unwanted
            grips.append(Grip(attempt.job_id, worker, attempt.lease, held))
            self.grips.append(grips[-1])
        return grips

    def beat(self, grip: Grip) -> str:
        """What the worker hears: held, cancelled or lost."""
        expected = self.jobs[grip.job_id].beat(grip.held)
        answer = self._run(self._store.beat([grip.lease]))
        heard = "cancelled" if answer.cancelled else "lost" if answer.lost else "held"
        assert heard == expected, f"{heard} instead of {expected}"
        return heard

    def finish(self, grip: Grip) -> bool:
        result = {"by": grip.lease.token}
        return self._write(
            self._store.finish(grip.lease, result), expected=self.jobs[grip.job_id].finish(grip.held, result)
        )

    def requeue(self, grip: Grip) -> bool:
        write = self._store.requeue(grip.lease, UpstreamFailure("away"))
        return self._write(write, expected=self.jobs[grip.job_id].requeue(grip.held))

    def give_up(self, grip: Grip) -> bool:
        write = self._store.give_up(grip.lease, ClipFailed("no"))
        return self._write(write, expected=self.jobs[grip.job_id].give_up(grip.held))

    def mark_cancelled(self, grip: Grip) -> bool:
        write = self._store.mark_cancelled(grip.lease)
        return self._write(write, expected=self.jobs[grip.job_id].mark_cancelled(grip.held))

    def release(self, grip: Grip) -> bool:
        return self._write(self._store.release(grip.lease), expected=self.jobs[grip.job_id].release(grip.held))

    def note(self, grip: Grip) -> bool:
        write = self._store.note(grip.lease, "stage:started")
        return self._write(write, expected=self.jobs[grip.job_id].note(grip.held))

    def expire(self, worker: int) -> None:
        """Nobody has heard of this worker for longer than a lease."""
        for grip in self.grips:
            job = self.jobs[grip.job_id]
            if grip.worker == worker and job.held == grip.held:
                self._ground.silence(grip.job_id)
                job.expire()

    def scan(self, *, silent_are_dead: bool = True) -> None:
        reasons = [job.scan(silent_are_dead=silent_are_dead) for job in self.jobs.values()]
        report = self._run(self._leases.recover(silent_are_dead=silent_are_dead))
        expected = Counter(reason for reason in reasons if reason)
        assert report.recovered == expected, f"{report.recovered} instead of {expected}"

    def cancel(self, job_id: UUID) -> None:
        expected = self.jobs[job_id].cancel()
        assert self._run(self._desk.cancel(job_id)) == expected

    def retry(self, job_id: UUID) -> None:
        expected = self.jobs[job_id].retry()
        assert self._run(self._desk.retry(job_id)) == expected

    def node_cancel(self, job_id: UUID) -> None:
        self.jobs[job_id].node_cancel()
        self._run(self._ground.queue.cancel(QUEUE, [job_id]))

    def node_revive(self, job_id: UUID) -> None:
        state = self.jobs[job_id].state
        self.jobs[job_id].node_revive()
        revive = self._ground.queue.retry if state == "failed" else self._ground.queue.resume
        self._run(revive(QUEUE, [job_id]))

    def check(self) -> None:
        """Both tables are as the model says, and sound whatever it says."""
        rows = self._ground.rows()
        assert rows.keys() == self.jobs.keys()
        tokens = {grip.held: grip.lease.token for grip in self.grips}
        for job_id, job in self.jobs.items():
            row = rows[job_id]
            require_sound(row, moved_by_node=job.moved_by_node)
            found = (row["status"], row["state"], row["retry_count"], row["pulse"], row["result"], row["events"])
            expected = (job.status, job.state, job.retry_count, job.pulse, job.result, job.events)
            assert found == expected, f"{found} instead of {expected}"
            assert row["lease_token"] == (tokens[job.held] if job.held else None), "held under another lease"
            counted = (row["attempt_count"] or 0, row["crash_count"] or 0)
            assert counted == (job.attempt_count, job.crash_count), f"miscounted: {job.events}"
            if job.held:
                holder = next(grip.worker for grip in self.grips if grip.held == job.held)
                assert row["worker_id"] == self._workers[holder]

    def _write(self, write: Awaitable[None], *, expected: bool) -> bool:
        """A write goes through exactly if the lease still holds."""
        try:
            self._run(write)
        except LeaseLost:
            assert not expected, "the holder of the lease was told that it was lost"
            return False
        assert expected, "a write under a lost lease went through"
        return True

    def _run(self, call: Awaitable):  # type: ignore[type-arg, no-untyped-def]
        return self._ground.run(call)
