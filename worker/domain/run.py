"""A job that was split: what its pages must know, and how far they are."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from worker.domain.job import JobId, JobStatus
from worker.domain.media import AudioStream, ClipRange, Probe, VideoStream
from worker.domain.paging import PageKind, PageRef


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Decided once, when the job is split, so that all pages are cut alike."""

    #: where pages meet, on the source's timeline; the range's ends are the first and the last
    borders: tuple[float, ...]
    probe: Probe
    #: the source as it was then: pages of two versions make no clip
    label: str
    size_bytes: int
    etag: str | None
    #: why a smart cut became an exact one; empty when it did not
    fallback: str = ""

    @property
    def wanted(self) -> ClipRange:
        return ClipRange(self.borders[0], self.borders[-1])


@dataclass(frozen=True, slots=True)
class Partition:
    """A chain of pages, and how far it is."""

    id: int
    kind: PageKind
    first: int
    past: int
    next: int
    heights: tuple[int, ...]
    #: of the page that is its turn; None when nothing was sent, or it is done although the chain has not moved
    page_status: JobStatus | None = None
    page_code: str | None = None
    page_message: str | None = None

    @property
    def is_complete(self) -> bool:
        return self.next == self.past

    @property
    def has_failed(self) -> bool:
        """Its page ended badly, and nobody will try it again."""
        return not self.is_complete and self.page_status in {JobStatus.FAILED, JobStatus.CANCELLED}

    @property
    def is_idle(self) -> bool:
        return not self.is_complete and self.page_status in {None, JobStatus.DONE}


@dataclass(frozen=True, slots=True)
class Run:
    id: JobId
    plan: RunPlan
    partitions: tuple[Partition, ...]

    @property
    def is_complete(self) -> bool:
        return all(partition.is_complete for partition in self.partitions)

    @property
    def pages(self) -> int:
        return sum(partition.past - partition.first for partition in self.partitions)

    @property
    def finished_pages(self) -> int:
        return sum(partition.next - partition.first for partition in self.partitions)

    @property
    def failed(self) -> Partition | None:
        return next((partition for partition in self.partitions if partition.has_failed), None)

    @property
    def idle(self) -> list[PageRef]:
        """Pages that it is the turn of, and that nobody has been sent for."""
        return [PageRef(self.id, partition.id, partition.next) for partition in self.partitions if partition.is_idle]

    def has(self, kind: PageKind, height: int | None = None) -> bool:
        return any(
            partition.kind is kind and (height is None or height in partition.heights) for partition in self.partitions
        )


def plan_json(plan: RunPlan) -> dict[str, Any]:
    return asdict(plan)


def plan_from_json(found: Mapping[str, Any]) -> RunPlan:
    return RunPlan(
        borders=tuple(found["borders"]),
        probe=_probe(found["probe"]),
        label=found["label"],
        size_bytes=found["size_bytes"],
        etag=found["etag"],
        fallback=found["fallback"],
    )


def _probe(found: Mapping[str, Any]) -> Probe:
    video, audio = found["video"], found["audio"]
    return Probe(
        format=found["format"],
        duration_seconds=found["duration_seconds"],
        start_seconds=found["start_seconds"],
        video=VideoStream(**video) if video is not None else None,
        audio=AudioStream(**audio) if audio is not None else None,
    )


@dataclass(frozen=True, slots=True)
class PageOrder:
    """What a page is about, as the database has it."""

    page: PageRef
    plan: RunPlan
    kind: PageKind
    heights: tuple[int, ...]
    #: of the job that was split
    spec: Any
    #: why there is nothing to do; empty when there is
    obsolete: str


@dataclass(frozen=True, slots=True)
class FinishedPage:
    """What a page left behind for whoever puts the pages together."""

    kind: PageKind
    partition: int
    offset: int
    facts: Mapping[str, Any]


def newest(pages: Sequence[FinishedPage], kind: PageKind, *, height: int | None = None) -> dict[int, FinishedPage]:
    """By offset, in order: of a page that was made again the last counts. `height`: only pages that made this one."""
    found = {
        page.offset: page
        for page in sorted(pages, key=lambda each: each.partition)
        if page.kind is kind and (height is None or any(made["height"] == height for made in page.facts["pictures"]))
    }
    return dict(sorted(found.items()))
