"""How an attempt ended, as a value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from worker.errors import JobError


@dataclass(frozen=True, slots=True)
class Done:
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    error: JobError


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Somebody asked for it, here or through pg-boss."""


@dataclass(frozen=True, slots=True)
class HandedBack:
    """The worker is shutting down: not the job's fault."""


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """The job belongs to somebody else now; nothing may be written."""


Outcome = Done | Failed | Cancelled | HandedBack | LeaseLost
