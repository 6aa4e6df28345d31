"""What a stage is, and the work that the stages of one job hand on to each other."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from worker.domain.job import JobId, StageName
from worker.domain.media import Artifact, ArtifactKind, ClipFile, ClipRange, Probe
from worker.domain.outcome import Ending
from worker.domain.paging import PAGE_QUEUE
from worker.domain.request import ClipRequest
from worker.domain.run import PageOrder, Run
from worker.domain.transcript import Transcript
from worker.errors import JobError
from worker.sources.base import OpenedSource
from worker.storage.base import StoredObject


class Report(Protocol):
    """How a stage tells what happens: to the job's timeline, and how far it is (0 … 1 of the stage)."""

    async def event(self, kind: str, data: Mapping[str, Any] | None = None) -> None: ...

    def progress(self, fraction: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Resolved:
    """What resolve found out."""

    request: ClipRequest
    source: OpenedSource
    probe: Probe
    wanted: ClipRange


@dataclass(frozen=True, slots=True)
class OutputFile:
    """What will be an artifact: verified, on disk, not yet stored."""

    kind: ArtifactKind
    #: under the job's key, the same for every attempt
    name: str
    path: Path
    #: of a rendition
    height: int | None = None
    #: what sets it apart from others that were made of the same request under this name
    variant: str = ""


def reserve_nothing(_bytes: int) -> None:
    """Where nobody shares the disk."""


@dataclass(slots=True)
class Work:
    """Each stage reads what earlier ones left here and adds its own."""

    job_id: JobId
    spec: Any
    scratch: Path
    report: Report
    #: closed when the job ends, whatever way
    resources: AsyncExitStack
    #: makes sure of room for this many bytes in `scratch`, or raises DiskFull
    reserve: Callable[[int], None] = reserve_nothing
    #: of a page: what it is about
    page: PageOrder | None = None
    #: of a job that was split: its pages, all of them finished
    run: Run | None = None
    #: the course ends here, and this is why
    ending: Ending | None = None
    maybe_resolved: Resolved | None = None
    maybe_clip: ClipFile | None = None
    #: what was made beside the clip
    extras: list[OutputFile] = field(default_factory=list)
    #: the clip's sound as recognizers want it, if it was made already
    speech: Path | None = None
    transcript: Transcript | None = None
    #: why there is none, though one was asked for
    transcript_error: JobError | None = None
    #: stored by an earlier attempt and found damaged, by key: to be replaced
    damaged: dict[str, StoredObject] = field(default_factory=dict)
    #: by kind; of renditions there may be several, so their height is added
    artifacts: dict[str, Artifact] = field(default_factory=dict)
    result: dict[str, Any] = field(default_factory=dict)

    @property
    def owner_id(self) -> JobId:
        """The job whose artifacts these are."""
        return self.job_id if self.page is None else self.page.page.run_id

    @property
    def resolved(self) -> Resolved:
        assert self.maybe_resolved is not None, "resolve has not run"
        return self.maybe_resolved

    @property
    def clip(self) -> ClipFile:
        assert self.maybe_clip is not None, "clip has not run"
        return self.maybe_clip


class Stage(Protocol):
    name: StageName

    async def run(self, work: Work) -> None: ...


#: in the order they run; those of one row run side by side
Course = Sequence[Sequence[Stage]]


@dataclass(frozen=True, slots=True)
class Courses:
    """What is done with jobs, and with pages of jobs that were split."""

    jobs: Course
    pages: Course = ()

    def of(self, queue: str) -> Course:
        return self.pages if queue == PAGE_QUEUE else self.jobs
