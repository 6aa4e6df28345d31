"""The only place where the next step of a job is chosen."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from worker.domain.job import Attempt
from worker.domain.outcome import (
    AbortReason,
    Cancelled,
    Done,
    Failed,
    HandedBack,
    LeaseLost,
    Outcome,
    PageDone,
    Snoozed,
    Split,
)
from worker.errors import JobError, RetriesExhausted


@dataclass(frozen=True, slots=True)
class Finish:
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Requeue:
    """Another attempt, after the delay the delivery asks for."""

    error: JobError


@dataclass(frozen=True, slots=True)
class GiveUp:
    error: JobError


@dataclass(frozen=True, slots=True)
class MarkCancelled:
    pass


@dataclass(frozen=True, slots=True)
class Release:
    """Give the lease back; recovery requeues the job without burning an attempt."""

    reason: AbortReason


@dataclass(frozen=True, slots=True)
class Drop:
    """Write nothing."""


#: what continues a long job is told as it is
Step = Finish | Split | Snoozed | PageDone | Requeue | GiveUp | MarkCancelled | Release | Drop


def decide(attempt: Attempt, outcome: Outcome) -> Step:
    match outcome:
        case Done(result):
            return Finish(result)
        case Split() | Snoozed() | PageDone():
            return outcome
        case Failed(error) if not error.retryable:
            return GiveUp(error)
        case Failed(error) if attempt.number < attempt.max_attempts:
            return Requeue(error)
        case Failed(error):
            return GiveUp(_exhausted(attempt, error))
        case Cancelled():
            return MarkCancelled()
        case HandedBack(reason):
            return Release(reason)
        case LeaseLost():
            return Drop()
        case _:
            assert_never(outcome)


def _exhausted(attempt: Attempt, last: JobError) -> JobError:
    if attempt.max_attempts == 1:
        return RetriesExhausted(f"{last.code}: {last} (no retries allowed)")
    return RetriesExhausted(f"{last.code}: {last} (gave up after {attempt.number} attempts)")
