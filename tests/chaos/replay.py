"""A job's life, told by its timeline alone: every edge must be one that jobs may take."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.chaos.history import Event

FINAL = frozenset({"done", "failed", "cancelled"})
#: written while an attempt runs, and changing nothing
NOTES = frozenset({"isolated", "cancel:requested"})
NOTE_PREFIXES = ("stage:", "skipped:", "redone:")


@dataclass(slots=True)
class Replay:
    """Where the timeline leads to, and what is wrong with it."""

    #: None: not known to us yet
    status: str | None = None
    attempts: int = 0
    crashes: int = 0
    is_handed_back: bool = False
    problems: list[str] = field(default_factory=list)
    miscounts: list[str] = field(default_factory=list)
    #: leases that were taken while the one before was not closed: (the event that took it, the event it was taken from)
    taken_over: list[tuple[Event, Event]] = field(default_factory=list)
    _held_since: Event | None = None

    def see(self, event: Event, *, may_be_revived: bool) -> None:
        kind = event.kind
        if kind == "acquired":
            self._acquire(event, may_be_revived=may_be_revived)
        elif kind == "submitted":
            self._move(event, {None}, "queued")
        elif kind == "revived":
            self._move(event, {"failed", "cancelled"}, "queued")
            self.crashes = 0
        elif kind in {"retry:scheduled", "requeued:stale", "requeued:handed-back"}:
            self._move(event, {"processing"}, "queued")
            self.attempts += kind != "requeued:handed-back"
            self.crashes += kind == "requeued:stale"
        elif kind in FINAL:
            self._end(event)
        elif kind.startswith("aborted:"):
            self._move(event, {"processing"}, "processing")
            self.is_handed_back = True
        elif kind in NOTES or kind.startswith(NOTE_PREFIXES):
            self._move(event, {"processing"}, "processing")
        else:
            self.problems.append(f"event {kind!r} is not known")

    def _acquire(self, event: Event, *, may_be_revived: bool) -> None:
        if self.status == "processing":
            assert self._held_since is not None
            if not self.is_handed_back:
                self.taken_over.append((event, self._held_since))
                self.attempts += 1
        elif self.status in {"failed", "cancelled"} and may_be_revived:
            pass
        elif self.status not in {None, "queued"}:
            self.problems.append(f"acquired when it was {self.status}")
        if event.attempt != self.attempts + 1:
            self.miscounts.append(f"acquired as attempt {event.attempt} after {self.attempts} without success")
        self.status, self.is_handed_back, self._held_since = "processing", False, event

    def _end(self, event: Event) -> None:
        allowed = {"processing", "queued", None} if event.kind == "cancelled" else {"processing"}
        self._move(event, allowed, event.kind)
        self.crashes += event.is_crash
        if event.kind == "failed" and event.facts.get("code") != "DELIVERY_GONE":
            self.attempts += 1
        else:
            self.attempts += event.is_crash

    def _move(self, event: Event, allowed: set[str | None], status: str) -> None:
        if self.status not in allowed:
            self.problems.append(f"event {event.kind!r} ({event.id}) when it was {self.status}")
        self.status = status


def replay(events: Sequence[Event], *, may_be_revived: bool) -> Replay:
    """`may_be_revived`: a Node application has revived this job, which leaves no event."""
    life = Replay()
    for event in events:
        life.see(event, may_be_revived=may_be_revived)
    return life
