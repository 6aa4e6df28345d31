"""Whether a job is long enough to be split, and into what."""

from dataclasses import dataclass

from worker.domain.media import ClipRange, Mode, Probe, TranscriptWish
from worker.domain.outcome import Split
from worker.domain.paging import OWN_HEIGHT, Chain, PageKind, Paging, chains_of, page_borders
from worker.domain.request import ClipRequest
from worker.domain.run import RunPlan
from worker.media.argv import target_size
from worker.stages.base import Work

#: a smart cut would find that out as well, but only once all else is done
SCALED = "max_height changes every frame"


@dataclass(frozen=True, slots=True)
class Splitting:
    """How this worker splits; None as `paging`: it takes no pages, so it must not rely on others to take any."""

    paging: Paging | None
    has_recognizer: bool

    def is_long(self, request: ClipRequest, wanted: ClipRange) -> bool:
        paging = self._paging_for(request)
        # what is copied is quickly done, and where it begins nobody knows before
        return (
            paging is not None and request.mode is not Mode.COPY and wanted.duration_seconds > paging.threshold_seconds
        )

    def split(self, work: Work) -> Split | None:
        """What of a job goes into pages from the beginning; None: nothing does."""
        request, probe = work.resolved.request, work.resolved.probe
        if not self.is_long(request, work.resolved.wanted):
            return None
        is_encoded = _has_picture(request, probe) and (request.mode is Mode.EXACT or request.max_height is not None)
        reason = SCALED if is_encoded and request.mode is Mode.SMART else ""
        is_heard = self.has_recognizer and request.transcript is not TranscriptWish.NONE and probe.audio is not None
        return self._split(work, is_encoded=is_encoded, is_heard=is_heard, reason=reason)

    def split_encoding(self, work: Work, reason: str) -> Split:
        """The pictures, after all: a smart cut would not have been right."""
        split = self._split(work, is_encoded=True, is_heard=False, reason=reason, renditions=())
        assert split is not None, "there are pictures"
        return split

    def _split(
        self, work: Work, *, is_encoded: bool, is_heard: bool, reason: str, renditions: tuple[int, ...] | None = None
    ) -> Split | None:
        resolved, request = work.resolved, work.resolved.request
        paging = self._paging_for(request)
        assert paging is not None, "it was asked before"
        has_picture = _has_picture(request, resolved.probe)
        smaller = _renditions(request, resolved.probe) if renditions is None else renditions
        heights = (*([OWN_HEIGHT] if is_encoded else []), *(smaller if has_picture else ()))
        if work.run is not None:
            borders = work.run.plan.borders
        else:
            video = resolved.probe.video if has_picture else None
            borders = page_borders(resolved.wanted, video, page_seconds=paging.page_seconds)
        pages, chains = len(borders) - 1, list[Chain]()
        if is_encoded and resolved.probe.audio is not None:
            # first, because it takes longest
            chains.append(Chain(PageKind.SOUND, 0, 1))
        if heights:
            chains += chains_of(PageKind.PICTURES, pages, partitions=paging.partitions, heights=heights)
        if is_heard:
            chains += chains_of(PageKind.SPEECH, pages, partitions=paging.partitions)
        if not chains:
            return None
        source = resolved.source
        plan = RunPlan(borders, resolved.probe, source.label, source.size_bytes, source.etag, reason)
        return Split(plan, tuple(chains))

    def _paging_for(self, request: ClipRequest) -> Paging | None:
        if self.paging is None or request.pages is None:
            return None
        seconds = request.pages.seconds
        return Paging(
            self.paging.threshold_seconds if seconds is None else seconds,
            self.paging.page_seconds if seconds is None else seconds,
            request.pages.partitions or self.paging.partitions,
        )


def _has_picture(request: ClipRequest, probe: Probe) -> bool:
    return probe.video is not None and request.mode is not Mode.AUDIO


def _renditions(request: ClipRequest, probe: Probe) -> tuple[int, ...]:
    """Those that are smaller than the clip; others are not made."""
    if probe.video is None:
        return ()
    _, height = target_size(probe.video, request.max_height)
    return tuple(each for each in request.renditions if each < height)
