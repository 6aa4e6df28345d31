"""Everything that is known after a run: rows of the database, traces of the workers, deeds of the harness."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.postgres import Outage
from tests.chaos.trace import Traces


@dataclass(frozen=True, slots=True)
class Event:
    """A row of worker.job_events; `at` on the monotonic clock."""

    id: int
    at: float
    attempt: int | None
    worker: str | None
    kind: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_crash(self) -> bool:
        """Recovery says so of a worker that was not heard of; of a lease that was given back it does not."""
        return "last_heartbeat_at" in self.facts


@dataclass(frozen=True, slots=True)
class JobRow:
    id: str
    status: str
    attempt_count: int
    max_attempts: int
    crash_count: int
    error_code: str | None
    spec: Mapping[str, Any]
    result: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class ProcessLife:
    name: str
    died_at: float
    freezes: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True)
class NodeDeeds:
    """Jobs whose pg-boss row was moved behind the worker's back, as Node applications may."""

    revived: frozenset[str] = frozenset()
    cancelled: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class History:
    lease_seconds: float
    scan_seconds: float
    accepted: frozenset[str]
    jobs: Mapping[str, JobRow]
    #: pgboss.job.state by id
    deliveries: Mapping[str, str]
    events: Mapping[str, Sequence[Event]]
    traces: Traces
    processes: Mapping[str, ProcessLife]
    outages: Sequence[Outage] = ()
    node: NodeDeeds = field(default_factory=NodeDeeds)


@dataclass(frozen=True, slots=True)
class Violation:
    check: str
    job: str | None
    detail: str

    def __str__(self) -> str:
        return f"{self.check}: {f'job {self.job}: ' if self.job else ''}{self.detail}"
