"""Long media in pages: which slices a range is cut into, and which of them follow each other. Arithmetic only."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import ceil, floor
from typing import Any, Final
from uuid import UUID, uuid5

from worker.domain.job import JobId
from worker.domain.media import ClipRange, VideoStream
from worker.errors import InvalidRequest

#: where pages wait for a worker; their messages are ours, nobody else sends them
PAGE_QUEUE: Final = "clip.page"
#: every page reads where all of them meet; three days in pages of two minutes
MOST_PAGES: Final = 2000
#: stands for the size that the clip itself has
OWN_HEIGHT: Final = 0
#: recognizers look for speech in steps of 32 ms; a page that begins on a step of the whole hears in it what the whole
#: does. Five steps are whole samples at 44.1 kHz too.
HEARING_STEP_SECONDS: Final = 5 * 0.032


class PageKind(StrEnum):
    """What a page makes."""

    #: its slice of the pictures, encoded
    PICTURES = "pictures"
    #: the sound of the whole range, in one piece: at seams of encoded sound something would be heard
    SOUND = "sound"
    #: what is said in its slice, and a little around it
    SPEECH = "speech"


@dataclass(frozen=True, slots=True)
class PageRef:
    """Names one page: which job it is a part of, and its place in a chain of pages."""

    run_id: JobId
    partition: int
    offset: int

    @property
    def job_id(self) -> JobId:
        """The same page always gets the same job, so that sending it twice sends it once."""
        return self.named("")

    def named(self, suffix: str) -> JobId:
        return JobId(uuid5(self.run_id, f"{self.run_id}:{self.partition}:{self.offset}{suffix}"))

    @property
    def message(self) -> Mapping[str, Any]:
        return {"run": str(self.run_id), "partition": self.partition, "offset": self.offset}


def parse_page(message: Any) -> PageRef:
    match message:
        case {"run": str(run), "partition": int(partition), "offset": int(offset)} if _are_numbers(partition, offset):
            try:
                return PageRef(JobId(UUID(run)), partition, offset)
            except ValueError as exc:
                raise InvalidRequest(f"run: {run!r} is not the id of a job") from exc
    raise InvalidRequest(f"queue {PAGE_QUEUE} is for pages of long jobs, which workers send themselves; use queue clip")


def _are_numbers(*values: int) -> bool:
    """As the database counts."""
    return all(not isinstance(value, bool) and 0 <= value < 2**31 for value in values)


@dataclass(frozen=True, slots=True)
class Paging:
    """How jobs are split."""

    #: no shorter range is split
    threshold_seconds: float
    page_seconds: float
    #: chains of pages of one kind, which run at the same time if there are workers
    partitions: int


@dataclass(frozen=True, slots=True)
class Chain:
    """Pages from `first` to before `past`, one after another."""

    kind: PageKind
    first: int
    past: int
    #: of pictures: which sizes each page makes; OWN_HEIGHT is the clip's own
    heights: tuple[int, ...] = ()


def page_borders(wanted: ClipRange, video: VideoStream | None, *, page_seconds: float) -> tuple[float, ...]:
    """Where pages meet, the range's ends included: equal lengths, and between two frames where frames are regular."""
    count = min(MOST_PAGES, max(1, ceil(wanted.duration_seconds / page_seconds - 1e-9)))
    inner = [wanted.start_seconds + wanted.duration_seconds * number / count for number in range(1, count)]
    if video is not None and video.fps:
        inner = [_between_frames(each, video.start_seconds, video.fps) for each in inner]
    borders = [wanted.start_seconds]
    # a page of less than a frame would be none
    borders += [each for each in inner if wanted.start_seconds < each < wanted.end_seconds]
    return (*sorted(set(borders)), wanted.end_seconds)


def page_span(borders: tuple[float, ...], offset: int) -> ClipRange:
    return ClipRange(borders[offset], borders[offset + 1])


def chains_of(kind: PageKind, pages: int, *, partitions: int, heights: tuple[int, ...] = ()) -> list[Chain]:
    """Neighbouring pages in as many chains as allowed, none more than a page longer than another."""
    count = max(1, min(partitions, pages))
    ends = [pages * number // count for number in range(count + 1)]
    return [Chain(kind, first, past, heights) for first, past in pairwise(ends)]


def heard_span(borders: tuple[float, ...], offset: int, *, overlap_seconds: float) -> ClipRange:
    """What is listened to for a page: neighbours overlap, so that no word is cut in two."""
    page, begin = page_span(borders, offset), borders[0]
    steps = floor(max(0.0, page.start_seconds - overlap_seconds - begin) / HEARING_STEP_SECONDS)
    return ClipRange(begin + steps * HEARING_STEP_SECONDS, min(borders[-1], page.end_seconds + overlap_seconds))


def _between_frames(seconds: float, first_frame_seconds: float, fps: float) -> float:
    return first_frame_seconds + (floor((seconds - first_frame_seconds) * fps) + 0.5) / fps
