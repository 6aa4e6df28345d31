"""Speech recognition behind one seam: an engine hears one window at a time; everything else is the same for all."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from worker.domain.transcript import Segment


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """How much sound an engine likes to hear at once."""

    #: no window is cut shorter than this, though what is left of the speech may be
    shortest_seconds: float
    longest_seconds: float


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a recording that one engine hears in one go; times from the recording's start."""

    start_seconds: float
    end_seconds: float
    #: where somebody speaks in it
    speech: tuple[tuple[float, float], ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Heard:
    """What an engine understood of a window; times from the window's start."""

    segments: tuple[Segment, ...]
    #: what the engine was told or found; None: it does not say
    language: str | None = None


class Engine(Protocol):
    """Failures that a later attempt may cure surface as AsrUnavailable, others as AsrRefused; unreadable sound is
    OutputCorrupt. Cancelling `hear` stops the engine's work."""

    name: str
    #: which weights it uses, where it has a choice
    model: str | None
    policy: WindowPolicy
    #: windows that it hears at the same time
    at_once: int

    def check_language(self, language: str | None) -> None:
        """InvalidRequest for one it does not know."""

    async def check(self) -> str:
        """What it would use, in a line; an error that says what to mend when it cannot work."""

    async def hear(self, wav: Path, window: Window, *, language: str | None) -> Heard:
        """Recognise a part of a 16 kHz mono WAV file. Segments without words get estimated ones later."""

    async def close(self) -> None:
        """Stop the engine and whatever processes it runs."""
