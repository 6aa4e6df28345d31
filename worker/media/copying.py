"""Copies a range without encoding anything: what the parent asks of the child that does it, and what that answers."""

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from worker.domain.media import ClipRange, Probe
from worker.errors import ClipFailed
from worker.media.failure import failure_of
from worker.media.process import ChildResult, Limits
from worker.media.source import ReadableSource


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """Plain values, because they travel as JSON. Seconds are on the container's timeline."""

    input: str
    protocols: tuple[str, ...]
    formats: tuple[str, ...]
    output: str
    start_seconds: float
    end_seconds: float
    #: what the container's own clock shows at its zero
    source_start_seconds: float
    video_index: int | None
    audio_index: int | None
    #: pictures from the keyframe to the start stay in the file, and players skip them
    is_lead_hidden: bool


@dataclass(frozen=True, slots=True)
class Copied:
    """Where the clip really starts and ends."""

    start_seconds: float = 0.0
    end_seconds: float = 0.0
    frames: int = 0
    #: why nothing was copied; empty when it was
    unfit: str = ""


def copy_order(
    source: ReadableSource, probe: Probe, span: ClipRange, output: Path, *, is_lead_hidden: bool
) -> CopyOrder:
    return CopyOrder(
        input=source.input,
        protocols=source.protocols,
        formats=source.formats,
        output=f"file:{output}",
        start_seconds=span.start_seconds,
        end_seconds=span.end_seconds,
        source_start_seconds=probe.start_seconds,
        video_index=probe.video.index or 0 if probe.video is not None else None,
        audio_index=probe.audio.index if probe.audio is not None else None,
        is_lead_hidden=is_lead_hidden and probe.video is not None,
    )


def copy_argv(order: CopyOrder) -> list[str]:
    """A process of its own: what hangs or crashes inside libav can be killed and takes no worker with it."""
    return [sys.executable, "-m", "worker.media.copy_child", json.dumps(asdict(order))]


def parse_copy_order(text: str) -> CopyOrder:
    fields: dict[str, Any] = json.loads(text)
    return CopyOrder(**{**fields, "protocols": tuple(fields["protocols"]), "formats": tuple(fields["formats"])})


def copied(result: ChildResult, limits: Limits, label: str) -> Copied:
    if failure := failure_of(result, limits):
        raise failure
    try:
        told = Copied(**json.loads(result.stdout.splitlines()[-1]))
    except (IndexError, TypeError, ValueError):
        raise ClipFailed(f"{label} could not be copied: the copy did not tell what it did") from None
    if told.unfit:
        raise ClipFailed(f"{label} cannot be copied: {told.unfit}; use mode exact")
    return told
