"""What the parent asks of the child that cuts without re-encoding everything, and what that answers."""

import json
from dataclasses import dataclass
from typing import Any


class Unfit(Exception):
    """This source cannot be cut that way and be right; the message says why, for people."""


@dataclass(frozen=True, slots=True)
class SmartOrder:
    """Plain values, because they travel as JSON. Seconds are on the container's timeline."""

    input: str
    #: what reading it may touch
    protocols: tuple[str, ...]
    formats: tuple[str, ...]
    output: str
    start_seconds: float
    end_seconds: float
    #: what the container's own clock shows at its zero
    source_start_seconds: float
    fps: float | None
    video_index: int
    audio_index: int | None
    #: when in the clip a picture must be on display
    first_frame_by_seconds: float
    preset: str
    crf: int
    threads: int


@dataclass(frozen=True, slots=True)
class SmartResult:
    frames: int = 0
    frames_reencoded: int = 0
    #: why nothing was cut; empty when it was
    unfit: str = ""


def parse_order(text: str) -> SmartOrder:
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(text).items()
    }
    return SmartOrder(**fields)
