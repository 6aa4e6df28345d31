"""Is a worker alive? The one place where that is decided."""

from enum import StrEnum

#: parts of the expected interval. Loops vary theirs by a tenth and statements take their time: a worker that is a
#: little behind is not late, and one that missed a heartbeat is not dead
LATE_AFTER = 1.5
DEAD_AFTER = 2.0


class WorkerState(StrEnum):
    ALIVE = "alive"
    #: a heartbeat is missing
    LATE = "late"
    #: two are; its jobs go to others as soon as their leases run out
    DEAD = "dead"
    #: it said good-bye
    STOPPED = "stopped"
    #: it holds jobs, but has no row: somebody removed it, or the worker runs without the registry
    UNREGISTERED = "unregistered"


def worker_state(silent_seconds: float | None, expected_seconds: float | None, *, is_stopped: bool) -> WorkerState:
    """`silent_seconds` by the database's clock; None for both: there is no row."""
    if silent_seconds is None or expected_seconds is None:
        return WorkerState.UNREGISTERED
    if is_stopped:
        return WorkerState.STOPPED
    if silent_seconds > DEAD_AFTER * expected_seconds:
        return WorkerState.DEAD
    return WorkerState.LATE if silent_seconds > LATE_AFTER * expected_seconds else WorkerState.ALIVE
