"""What a stage is, and the work that the stages of one job hand on to each other."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from worker.domain.job import JobId, StageName
from worker.domain.media import Artifact, ArtifactKind, ClipFile, ClipRange, Probe, Transcript
from worker.domain.request import ClipRequest
from worker.sources.base import OpenedSource


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


@dataclass(slots=True)
class Work:
    """Each stage reads what earlier ones left here and adds its own."""

    job_id: JobId
    spec: Any
    scratch: Path
    report: Report
    #: closed when the job ends, whatever way
    resources: AsyncExitStack
    maybe_resolved: Resolved | None = None
    maybe_clip: ClipFile | None = None
    poster: Path | None = None
    transcript: Transcript | None = None
    artifacts: dict[ArtifactKind, Artifact] = field(default_factory=dict)
    result: dict[str, Any] = field(default_factory=dict)

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
