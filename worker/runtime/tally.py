"""What a worker got done since it began: one number for each attempt whose end is written down."""

from collections import Counter
from dataclasses import dataclass, field

from worker.domain.job import Attempt, JobId
from worker.errors import JobError


@dataclass(slots=True)
class Tally:
    """Equals the timelines: a success is a `done`, an error a `failed` or `retry:scheduled` that this worker wrote."""

    successes: int = 0
    errors: int = 0
    last_error: str | None = None
    #: both together, by queue
    processed: Counter[str] = field(default_factory=Counter)
    last_jobs: dict[str, JobId] = field(default_factory=dict)

    def note_success(self, attempt: Attempt) -> None:
        self.successes += 1
        self._note(attempt)

    def note_error(self, attempt: Attempt, error: JobError) -> None:
        self.errors += 1
        self.last_error = f"{error.code}: {error}"
        self._note(attempt)

    def _note(self, attempt: Attempt) -> None:
        self.processed[attempt.queue] += 1
        self.last_jobs[attempt.queue] = attempt.job_id
