"""Why a child failed, in the words of our error tree."""

import re
import signal
from typing import Final

from worker.errors import (
    ClipFailed,
    ClipTimeout,
    DiskFull,
    JobError,
    RetryableError,
    SourceForbidden,
    SourceNotFound,
    UpstreamFailure,
)
from worker.media.process import ChildEnd, ChildResult, Limits

#: lines of ffmpeg's complaint that a person gets to read
SHOWN_LINES: Final = 3
#: ffmpeg catches the signals that ask it to stop, SIGXCPU among them, and ends with this
STOPPED: Final = 255
#: ffmpeg writes addresses of its inputs into its complaints
_ADDRESS: Final = re.compile(r"\b(?:https?|file|tcp):[^\s']*")
#: the first that matches decides
_COMPLAINTS: Final[tuple[tuple[re.Pattern[str], type[JobError], str], ...]] = (
    (re.compile(r"No space left on device|Disk quota exceeded"), DiskFull, "the disk is full"),
    (re.compile(r"File too large"), DiskFull, "the output outgrew its size limit"),
    (re.compile(r"404 Not Found|\b410 Gone"), SourceNotFound, "the source is gone"),
    (re.compile(r"40[13] (?:Unauthorized|Forbidden)"), SourceForbidden, "the source may not be read"),
    (
        re.compile(
            r"Connection (?:refused|reset|timed out)|Server returned 5|HTTP error 5|Stream ends prematurely|"
            r"Network is unreachable|No route to host|HTTP error 429|Too Many Requests"
        ),
        UpstreamFailure,
        "the source broke off",
    ),
)


def failure_of(result: ChildResult, limits: Limits) -> JobError | None:
    """None when the child ended well."""
    match result.ended:
        case ChildEnd.TIMED_OUT:
            return ClipTimeout(f"ffmpeg was stopped: not done within {limits.wall_seconds:g} s")
        case ChildEnd.STALLED:
            return ClipTimeout(f"ffmpeg was stopped: no progress for {limits.stall_seconds:g} s")
        case ChildEnd.EXITED if result.exit_code == 0:
            return None
        case ChildEnd.EXITED if result.exit_code == STOPPED and limits.cpu_seconds is not None:
            return ClipTimeout(f"ffmpeg was told to stop, probably after {limits.cpu_seconds} s of processor time")
        case ChildEnd.EXITED if result.exit_code < 0:
            return _killed(signal.Signals(-result.exit_code), result, limits)
        case ChildEnd.EXITED:
            return complaint_of(result) or ClipFailed(
                f"ffmpeg ended with {result.exit_code}: {shown(result) or 'it did not say why'}"
            )


def complaint_of(result: ChildResult) -> JobError | None:
    """A cause that ffmpeg named, even if it ended with 0."""
    text = "\n".join(result.stderr_tail)
    for pattern, error, what in _COMPLAINTS:
        if pattern.search(text):
            return error(f"{what}: {shown(result)}")
    return None


def shown(result: ChildResult, *, lines: int = SHOWN_LINES) -> str:
    """ffmpeg's last words without addresses."""
    return "; ".join(_ADDRESS.sub("the file", line) for line in result.stderr_tail[-lines:])


def encoder_failure(result: ChildResult, limits: Limits) -> JobError | None:
    """Of a run with a hardware encoder: its first complaint is the driver's, its last one ffmpeg's."""
    failure = failure_of(result, limits)
    if not isinstance(failure, ClipFailed) or not result.stderr_tail:
        return failure
    first, *rest = (_ADDRESS.sub("the file", line) for line in result.stderr_tail)
    return ClipFailed("; ".join([first, *rest[-1:]]))


def _killed(number: signal.Signals, result: ChildResult, limits: Limits) -> JobError:
    match number:
        case signal.SIGXFSZ:
            return DiskFull(f"the output outgrew its limit of {limits.file_bytes} bytes")
        case signal.SIGXCPU:
            return ClipTimeout(f"ffmpeg was stopped: it used {limits.cpu_seconds} s of processor time")
        case signal.SIGKILL:
            return RetryableError("ffmpeg was killed from outside, perhaps for want of memory")
        case signal.SIGTERM | signal.SIGINT | signal.SIGHUP:
            return RetryableError(f"ffmpeg was stopped from outside by {number.name}")
        case _:
            return ClipFailed(f"ffmpeg crashed with {number.name}: {shown(result) or 'it did not say why'}")
