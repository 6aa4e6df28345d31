"""What the parent asks of the child that joins pages, and what that answers. Plain values, that travel as JSON."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from worker.errors import ClipFailed, OutputCorrupt
from worker.media.failure import failure_of
from worker.media.process import ChildResult, Limits


@dataclass(frozen=True, slots=True)
class JoinedPage:
    path: str
    #: where the file's zero lies in the clip
    zero_ticks: int


@dataclass(frozen=True, slots=True)
class JoinOrder:
    output: str
    pages: Sequence[JoinedPage]
    #: a file whose sound is taken as it is
    sound: str | None
    #: no picture is shown behind that
    clip_ticks: int


@dataclass(frozen=True, slots=True)
class Joined:
    frames: int = 0
    #: when the first picture comes up in the clip, and when the last one is over
    first_ticks: int = 0
    past_ticks: int = 0
    #: how often pictures were preceded by what a decoder must know of their encoder; 0 when all pages had the same one
    sets_told: int = 0
    #: why nothing was joined; empty when it was
    unfit: str = ""


def join_argv(order: JoinOrder, order_path: Path) -> list[str]:
    """A process of its own, as for all that libav does; a long clip's order is longer than an argument may be."""
    order_path.write_text(json.dumps(asdict(order)))
    return [sys.executable, "-m", "worker.media.join_child", str(order_path)]


def parse_join_order(text: str) -> JoinOrder:
    fields = json.loads(text)
    return JoinOrder(**{**fields, "pages": tuple(JoinedPage(**page) for page in fields["pages"])})


def joined(result: ChildResult, limits: Limits, name: str) -> Joined:
    if failure := failure_of(result, limits):
        raise failure
    try:
        told = Joined(**json.loads(result.stdout.splitlines()[-1]))
    except (IndexError, TypeError, ValueError):
        raise ClipFailed(f"{name} could not be joined: the child did not tell what it did") from None
    if told.unfit:
        raise OutputCorrupt(f"{name} cannot be joined: {told.unfit}")
    return told
