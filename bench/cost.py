"""What something costs: processor seconds of this process and all its ended children, and wall seconds."""

import asyncio
import resource
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


class PeerFailed(Exception):
    """A contender that is not ours did not do its work; the message is its own last word."""


@dataclass(frozen=True, slots=True)
class Cost:
    cpu_seconds: float
    wall_seconds: float
    #: of the processor's, those of this process
    own_cpu_seconds: float


async def cost_of(work: Coroutine[Any, Any, T]) -> tuple[T, Cost]:
    """Run it alone: whatever else this process does meanwhile is counted too."""
    own, theirs, wall = own_cpu_seconds(), children_cpu_seconds(), time.monotonic()
    result = await work
    own, theirs = own_cpu_seconds() - own, children_cpu_seconds() - theirs
    return result, Cost(own + theirs, time.monotonic() - wall, own)


async def run_command(argv: Sequence[str]) -> None:
    child = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, complaint = await child.communicate()
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        raise PeerFailed(complaint.decode(errors="replace").strip()[-300:] or f"exit code {child.returncode}")


def own_cpu_seconds() -> float:
    return _spent(resource.RUSAGE_SELF)


def children_cpu_seconds() -> float:
    """Of those that have ended and were waited for."""
    return _spent(resource.RUSAGE_CHILDREN)


def _spent(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime
