"""What a job must look like after each operation, in plain Python: the rules of the lease without any SQL."""

from dataclasses import dataclass, field
from typing import Any, Literal

from worker.domain.job import POISON_CRASHES

Pulse = Literal["live", "silent", "given back"]


@dataclass(frozen=True)
class Held:
    """What the model knows of a lease: which acquire gave it, and the delivery's number then."""

    serial: int
    retry_count: int


@dataclass
class ModelJob:
    retry_limit: int
    #: None = only pg-boss knows it
    status: str | None = None
    state: str = "created"
    attempt_count: int = 0
    crash_count: int = 0
    max_attempts: int = 0
    retry_count: int = 0
    has_started: bool = False
    held: Held | None = None
    pulse: Pulse | None = None
    is_unwanted: bool = False
    result: Any = None
    events: list[str] = field(default_factory=list)

    @property
    def moved_by_node(self) -> bool:
        """A Node client changed the delivery behind our back, and nobody has noticed yet."""
        agreed = {"created": "queued", "retry": "queued", "active": "processing", "completed": "done"}
        return self.status is not None and self.status != agreed.get(self.state, self.state)

    @property
    def is_waiting(self) -> bool:
        return self.state in {"created", "retry"}

    @property
    def is_due(self) -> bool:
        return self.is_waiting and not (self.status == "processing" and self.pulse == "live")

    def submit(self) -> None:
        self.status, self.max_attempts = "queued", self.retry_limit + 1
        self.events.append("submitted")

    def acquire(self, serial: int) -> Held:
        self.retry_count += self.has_started
        self.has_started, self.state = True, "active"
        # An expired lease under a delivery that waits again: that attempt ended without success.
        if self.status == "processing":
            self.attempt_count += self.pulse != "given back"
        else:
            self.is_unwanted = False
        self.status, self.pulse, self.max_attempts = "processing", "live", self.retry_limit + 1
        self.held = Held(serial, self.retry_count)
        self.events.append("acquired")
        return self.held

    def is_ours(self, held: Held) -> bool:
        return self.status == "processing" and self.held == held

    def is_delivered_to(self, held: Held) -> bool:
        return self.state == "active" and self.retry_count == held.retry_count

    def beat(self, held: Held) -> str:
        """What the worker hears: held, cancelled or lost."""
        renewed = self.is_ours(held) and self.is_delivered_to(held) and self.pulse != "given back"
        if renewed:
            self.pulse = "live"
        # Whose delivery it no longer is need not know what became of it.
        is_cancelled = self.state == "cancelled" and self.retry_count == held.retry_count
        if is_cancelled or (renewed and self.is_unwanted):
            return "cancelled"
        return "held" if renewed else "lost"

    def finish(self, held: Held, result: Any) -> bool:
        if not (self.is_ours(held) and self.is_delivered_to(held)):
            return False
        self.result, self.state = result, "completed"
        self._leave("done", "done")
        return True

    def requeue(self, held: Held) -> bool:
        return self._fail(held, "queued", "retry", "retry:scheduled")

    def give_up(self, held: Held) -> bool:
        return self._fail(held, "failed", "failed", "failed")

    def mark_cancelled(self, held: Held) -> bool:
        if not self.is_ours(held):
            return False
        self.state = "cancelled"
        self._leave("cancelled", "cancelled")
        return True

    def release(self, held: Held) -> bool:
        if not self.is_ours(held):
            return False
        self.pulse = "given back"
        self.events.append("aborted:shutdown")
        return True

    def note(self, held: Held) -> bool:
        if self.is_ours(held):
            self.events.append("stage:started")
        return self.is_ours(held)

    def expire(self) -> None:
        if self.pulse == "live":
            self.pulse = "silent"

    def scan(self, *, silent_are_dead: bool) -> str | None:
        """The reason it was taken back for, if it was."""
        if self.pulse is None or self.pulse == "live" or (self.pulse == "silent" and not silent_are_dead):
            return None
        is_crash = self.pulse == "silent"
        self.attempt_count += is_crash
        self.crash_count += is_crash
        out_of_luck = self.crash_count >= POISON_CRASHES or self.attempt_count >= self.max_attempts
        if self.is_unwanted or self.state == "cancelled":
            self.state = "cancelled"
            self._leave("cancelled", "cancelled")
        elif is_crash and out_of_luck:
            self.state = "failed"
            self._leave("failed", "failed")
        else:
            if self.state == "active":
                self.state = "retry" if is_crash else "created"
                self.has_started = is_crash
            self._leave("queued", "requeued:stale" if is_crash else "requeued:handed-back")
            return "stale" if is_crash else "handed_back"
        return self.status

    def cancel(self) -> str | None:
        """What the caller hears."""
        if self.status in {"done", "failed", "cancelled"}:
            return self.status
        if self.status == "processing":
            self.is_unwanted = True
            self.events.append("cancel:requested")
            return self.status
        if self.status is None and not self.is_waiting:
            return self.state
        if self.status is None:
            self.max_attempts = self.retry_limit + 1
        self.state, self.is_unwanted = "cancelled", True
        self._leave("cancelled", "cancelled")
        return self.status

    def retry(self) -> str | None:
        if self.status not in {"failed", "cancelled"}:
            return self.status or self.state
        self.state = "retry" if self.has_started else "created"
        self.retry_limit = max(self.retry_limit, self.retry_count + self.has_started)
        self.max_attempts = max(self.max_attempts, self.attempt_count + 1, self.retry_limit + 1)
        self.status, self.crash_count, self.is_unwanted = "queued", 0, False
        self.events.append("revived")
        return self.status

    def node_cancel(self) -> None:
        if self.is_waiting or self.state == "active":
            self.state = "cancelled"

    def node_revive(self) -> None:
        """Node's resume of a cancelled job, or its retry of a failed one."""
        if self.state == "cancelled":
            self.state = "created"
        elif self.state == "failed":
            self.state, self.retry_limit = "retry", self.retry_limit + 1

    def _fail(self, held: Held, status: str, state: str, event: str) -> bool:
        if not (self.is_ours(held) and self.is_delivered_to(held)):
            return False
        self.attempt_count += 1
        self.state = state
        self._leave(status, event)
        return True

    def _leave(self, status: str, event: str) -> None:
        self.status, self.held, self.pulse = status, None, None
        self.events.append(event)
