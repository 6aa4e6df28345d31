"""How an attempt ended, as a value."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from worker.domain.paging import Chain, PageRef
from worker.domain.run import RunPlan
from worker.errors import JobError


class AbortReason(StrEnum):
    #: the worker was told to stop
    SHUTDOWN = "shutdown"
    #: the worker could not renew the lease in time, and stopped before anybody else could start
    CUT_OFF = "cut-off"


@dataclass(frozen=True, slots=True)
class Done:
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Split:
    """The job goes on in pages; it waits for them without holding a slot."""

    plan: RunPlan
    #: in which its pages are; added to those there are
    chains: tuple[Chain, ...]


@dataclass(frozen=True, slots=True)
class Snoozed:
    """Its pages are not finished; it looks again later."""

    #: pages that it is the turn of and that are on their way to nobody
    lost: tuple[PageRef, ...] = ()


@dataclass(frozen=True, slots=True)
class PageDone:
    page: PageRef
    #: for whoever puts the pages together
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    error: JobError


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Somebody asked for it, here or through pg-boss."""


@dataclass(frozen=True, slots=True)
class HandedBack:
    """The lease goes back before its time: not the job's fault, and no attempt is lost."""

    reason: AbortReason


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """The job belongs to somebody else now; nothing may be written."""


#: what stages may end a job with before its course is over
Ending = Done | Split | Snoozed | PageDone
Outcome = Ending | Failed | Cancelled | HandedBack | LeaseLost
