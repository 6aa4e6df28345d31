"""A job's states, the edges between them, and what a worker holds while it works on one."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NewType
from uuid import UUID

JobId = NewType("JobId", UUID)
WorkerId = NewType("WorkerId", UUID)
LeaseToken = NewType("LeaseToken", int)


#: a job that takes its worker down this often is not tried again
POISON_CRASHES = 3


class JobStatus(StrEnum):
    #: waits for a worker: fresh, between two attempts, or snoozed
    QUEUED = "queued"
    #: a worker holds a lease on it
    PROCESSING = "processing"
    #: finished; its result is recorded
    DONE = "done"
    #: ended without success; an operator may revive it
    FAILED = "failed"
    #: stopped on request; an operator may revive it
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in {JobStatus.DONE, JobStatus.FAILED, JobStatus.CANCELLED}


#: every edge a job may take; the statements of `jobs/` and the tests follow this map
TRANSITIONS: Mapping[JobStatus, frozenset[JobStatus]] = {
    JobStatus.QUEUED: frozenset({JobStatus.PROCESSING, JobStatus.CANCELLED}),
    JobStatus.PROCESSING: frozenset(
        {JobStatus.DONE, JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.QUEUED, JobStatus.PROCESSING}
    ),
    JobStatus.DONE: frozenset(),
    JobStatus.FAILED: frozenset({JobStatus.QUEUED, JobStatus.PROCESSING}),
    JobStatus.CANCELLED: frozenset({JobStatus.QUEUED, JobStatus.PROCESSING}),
}


class StageName(StrEnum):
    RESOLVE = "resolve"
    CLIP = "clip"
    UPLOAD = "upload"
    ASR = "asr"
    FINALIZE = "finalize"


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a job. Every write carries it; a write that finds it gone changes nothing."""

    job_id: JobId
    queue: str
    token: LeaseToken
    #: pg-boss's number of this delivery: its fence, beside our token
    retry_count: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One acquired job: the lease and what the delivery said."""

    lease: Lease
    spec: Any
    #: 1 for the first
    number: int
    max_attempts: int
    crash_count: int
    #: pg-boss takes the job away after this long
    expire_seconds: int
    heartbeat_seconds: int | None

    @property
    def job_id(self) -> JobId:
        return self.lease.job_id

    @property
    def is_suspect(self) -> bool:
        """One more crash and it counts as poison."""
        return self.crash_count >= POISON_CRASHES - 1

    @property
    def queue(self) -> str:
        return self.lease.queue
