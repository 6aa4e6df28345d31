import signal

import pytest

from worker import errors
from worker.media.failure import complaint_of, failure_of
from worker.media.process import ChildEnd, ChildResult, Limits

LIMITS = Limits(wall_seconds=60, stall_seconds=20, file_bytes=1000, cpu_seconds=30)


def exited(code: int, *stderr: str) -> ChildResult:
    return ChildResult(ChildEnd.EXITED, code, stderr)


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (ChildResult(ChildEnd.TIMED_OUT, 255, ()), errors.ClipTimeout),
        (ChildResult(ChildEnd.STALLED, 0, ()), errors.ClipTimeout),
        (exited(-signal.SIGXCPU), errors.ClipTimeout),
        (exited(255), errors.ClipTimeout),
        (exited(-signal.SIGXFSZ), errors.DiskFull),
        (exited(-signal.SIGKILL), errors.RetryableError),
        (exited(-signal.SIGSEGV), errors.ClipFailed),
        (exited(228, "[out#0] Error writing trailer: No space left on device"), errors.DiskFull),
        (exited(251, "av_interleaved_write_frame(): File too large"), errors.DiskFull),
        (exited(1, "[http @ 0x1] HTTP error 503 Service Unavailable"), errors.UpstreamFailure),
        (exited(1, "[tcp @ 0x1] Connection to tcp://127.0.0.1:9 failed: Connection refused"), errors.UpstreamFailure),
        (exited(1, "[http @ 0x1] HTTP error 404 Not Found"), errors.SourceNotFound),
        (exited(1, "[http @ 0x1] HTTP error 403 Forbidden"), errors.SourceForbidden),
        (exited(234, "Could not find tag for codec vp8 in stream #0"), errors.ClipFailed),
        (exited(1), errors.ClipFailed),
    ],
)
def test_each_end_has_its_error(result, error):
    assert type(failure_of(result, LIMITS)) is error


def test_good_end_is_no_failure():
    assert failure_of(exited(0, "a warning"), LIMITS) is None


def test_cause_named_despite_exit_code_0_is_found():
    complaint = complaint_of(exited(0, "[http @ 0x1] Stream ends prematurely at 8, should be 30"))
    assert isinstance(complaint, errors.UpstreamFailure)


def test_addresses_stay_out_of_the_message():
    failure = failure_of(exited(1, "Error opening input file http://127.0.0.1:9/s3cret?sig=1: Invalid data"), LIMITS)
    assert "s3cret" not in str(failure)
    assert "Invalid data" in str(failure)


def test_only_the_last_words_are_shown():
    failure = failure_of(exited(1, *(f"line {n}." for n in range(20))), LIMITS)
    assert str(failure).endswith("line 17.; line 18.; line 19.")
