"""What became of a smart cut: a result, an error of the job, or the reason to cut another way."""

import json

from worker.errors import ClipFailed
from worker.media.failure import failure_of, shown
from worker.media.process import ChildEnd, ChildResult, Limits
from worker.media.smart.order import SmartResult, Unfit


def smart_result(result: ChildResult, limits: Limits) -> SmartResult:
    """Only what ffmpeg could do better is a reason to ask it; a full disk is full for both."""
    if result.ended is ChildEnd.STALLED:
        raise Unfit(f"the quick cut made no progress for {limits.stall_seconds:g} s")
    failure = failure_of(result, limits)
    if isinstance(failure, ClipFailed):
        raise Unfit(f"the quick cut failed with {result.exit_code}: {shown(result, lines=1)}") from failure
    if failure is not None:
        raise failure
    told = parse_result(result.stdout)
    if told.unfit:
        raise Unfit(told.unfit)
    return told


def parse_result(stdout: bytes) -> SmartResult:
    """From the last line that the child printed."""
    try:
        return SmartResult(**json.loads(stdout.splitlines()[-1]))
    except (IndexError, TypeError, ValueError):
        return SmartResult(unfit="the quick cut did not tell what it did")
