"""Every outcome of every attempt leads to exactly one step."""

from uuid import uuid4

import pytest

from worker.domain.decide import Drop, Finish, GiveUp, MarkCancelled, Release, Requeue, decide
from worker.domain.job import Attempt, JobId, Lease, LeaseToken
from worker.domain.media import Probe
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
from worker.domain.paging import Chain, PageKind, PageRef
from worker.domain.run import RunPlan
from worker.errors import ClipFailed, JobError, RetryableError, UpstreamFailure

PAGE = PageRef(JobId(uuid4()), 0, 3)
SPLIT = Split(RunPlan((0.0, 1.0), Probe("mp4", 1.0, 0.0, None, None), "a", 1, None), (Chain(PageKind.SPEECH, 0, 1),))


def attempt(number: int = 1, most: int = 3) -> Attempt:
    lease = Lease(JobId(uuid4()), "clip", LeaseToken(1), 0)
    return Attempt(lease, {}, number, most, 0, 900, None)


@pytest.mark.parametrize(
    ("outcome", "step"),
    [
        (Done({"x": 1}), Finish({"x": 1})),
        (Cancelled(), MarkCancelled()),
        (HandedBack(AbortReason.CUT_OFF), Release(AbortReason.CUT_OFF)),
        (LeaseLost(), Drop()),
        (SPLIT, SPLIT),
        (Snoozed((PAGE,)), Snoozed((PAGE,))),
        (PageDone(PAGE, {"pictures": []}), PageDone(PAGE, {"pictures": []})),
    ],
)
@pytest.mark.parametrize("number", [1, 3])
def test_outcomes_that_do_not_depend_on_the_attempt(outcome: Outcome, step: object, number: int) -> None:
    assert decide(attempt(number), outcome) == step


def test_fatal_error_gives_up_at_the_first_attempt() -> None:
    error = ClipFailed("broken")
    assert decide(attempt(1), Failed(error)) == GiveUp(error)


@pytest.mark.parametrize("number", [1, 2])
def test_retryable_error_is_retried_while_attempts_are_left(number: int) -> None:
    error = UpstreamFailure("503")
    assert decide(attempt(number), Failed(error)) == Requeue(error)


@pytest.mark.parametrize(
    ("number", "most", "words"), [(3, 3, "gave up after 3 attempts"), (1, 1, "no retries allowed")]
)
def test_last_attempt_is_exhausted_and_names_its_cause(number: int, most: int, words: str) -> None:
    step = decide(attempt(number, most), Failed(UpstreamFailure("503")))
    assert isinstance(step, GiveUp)
    assert step.error.code == "RETRIES_EXHAUSTED"
    assert str(step.error) == f"UPSTREAM_FAILURE: 503 ({words})"


def test_the_retryable_codes_are_the_promised_ones() -> None:
    def below(error: type[JobError]) -> list[type[JobError]]:
        return [error, *(each for child in error.__subclasses__() for each in below(child))]

    assert {error.code for error in below(RetryableError)} == {
        "STORAGE_UPLOAD_FAILED", "YTDLP_TIMEOUT", "CLIP_TIMEOUT", "UPSTREAM_FAILURE", "INTERNAL_TRANSIENT",
        "OUTPUT_CORRUPT", "ASR_UNAVAILABLE", "DISK_FULL", "JOB_TIMEOUT",
    }  # fmt: skip
    assert all(error.retryable for error in below(RetryableError))
