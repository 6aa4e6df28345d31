"""Cuts one page of a long clip: its pictures to be joined with its neighbours', and its sound for recognizers."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from worker.domain.media import ClipRange, Mode, Probe, Quality
from worker.errors import ClipFailed, OutputCorrupt
from worker.media import argv
from worker.media.borders import Border, look_around
from worker.media.encoding import CPU, QUALITIES, VideoEncoder
from worker.media.expectation import FIRST_FRAME_SECONDS, first_frame_by
from worker.media.ordering import Order
from worker.media.page_ends import is_empty, opens_behind, refuse_lost_end
from worker.media.process import Limits
from worker.media.progress import fractions_of
from worker.media.reencoding import OnSeconds, Reencoder, from_keyframe
from worker.media.source import ReadableSource
from worker.media.speech import SpeechCutter
from worker.media.timeline import PageTimes, first_tick, page_times, start_tick
from worker.media.verify import ClipFacts

#: gets the fraction of the work that is done, 0 to 1
OnProgress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class PicturePage:
    """The pictures of one page, encoded apart from the others."""

    #: None: no frame comes up in this page (a slide that stands still)
    path: Path | None
    frames: int
    #: where the file's zero lies in the whole clip, in ticks (timeline.TICKS_PER_SECOND)
    zero_ticks: int
    #: why the configured encoder was replaced by the processor; empty when it was not
    cpu_fallback: str = ""


class PageCutter:
    """Cuts with one ffmpeg under one set of limits. Pages know nothing of each other but where they meet."""

    def __init__(self, ffmpeg: Path, *, limits: Limits, encoder: VideoEncoder = CPU) -> None:
        self._encoder = encoder
        self._reencoder = Reencoder(ffmpeg, limits=limits)
        self._speech = SpeechCutter(ffmpeg, limits=limits)

    async def cut_pictures(
        self,
        source: ReadableSource,
        probe: Probe,
        clip: ClipRange,
        page: ClipRange,
        *,
        work_path: Path,
        max_height: int | None,
        quality: Quality,
        on_progress: OnProgress | None = None,
    ) -> PicturePage:
        """Exactly the frames that an unsplit clip has between two borders, to be put where it has them."""
        assert probe.video is not None, "only pictures are cut in pages"
        clip, page = _within(probe, clip), _within(probe, page)
        times = page_times(clip, page, probe.video.fps)
        recipe = argv.Recipe(QUALITIES[quality], self._encoder, max_height, page=times)
        order = Order(source, replace(probe, audio=None), page, Mode.EXACT, work_path, recipe)
        cut = _PageCut(self._reencoder, order, probe, clip, times)
        found = await cut.run(fractions_of(on_progress, page.duration_seconds))
        if on_progress is not None:
            on_progress(1.0)
        if found is None:
            await asyncio.to_thread(work_path.unlink, missing_ok=True)
            return PicturePage(None, 0, times.zero_in_clip)
        facts, reason = found
        return PicturePage(work_path, facts.frames, times.zero_in_clip, reason)

    async def cut_speech(self, source: ReadableSource, probe: Probe, span: ClipRange, *, path: Path) -> None:
        """The span's sound as recognizers want it: 16 kHz mono, with silence where there is none."""
        await self._speech.cut(source, probe, _within(probe, span), path)


class _PageCut:
    """One page, held against what its source shows around both of its borders."""

    def __init__(self, reencoder: Reencoder, order: Order, probe: Probe, clip: ClipRange, times: PageTimes) -> None:
        self._reencoder = reencoder
        self._order = order
        #: with sound: where pictures end, only it may tell that the source goes on
        self._probe = probe
        self._clip = clip
        self._times = times
        self._seen: tuple[Border, Border] | None = None

    async def run(self, report: OnSeconds | None) -> tuple[ClipFacts, str] | None:
        """None when no picture comes up in it."""
        is_first = self._order.span.start_seconds == self._clip.start_seconds
        found = await (self._first(report) if is_first else self._later(report))
        if found is not None:
            _, end = await self._borders()
            refuse_lost_end(self._order, self._probe, found[0], end)
        return found

    async def _first(self, report: OnSeconds | None) -> tuple[ClipFacts, str] | None:
        """Begins as any clip does, but may have nothing to begin with."""
        try:
            return await self._reencoder.cut(self._order, report)
        except (ClipFailed, OutputCorrupt):
            start, end = await self._borders()
            if not is_empty(self._order, self._probe, start, end):
                raise
        if start.before_seconds is None or await self._begins_soon(start):
            return None
        return await self._reencoder.hold(self._order, report)

    async def _begins_soon(self, start: Border) -> bool:
        """The whole clip then opens with a later page's frame, and not with what was on display before."""
        shown_by = self._clip.start_seconds + first_frame_by(self._probe, self._clip)
        until = start_tick(min(shown_by, self._clip.end_seconds))
        (soon,) = await look_around(self._order.source, self._probe, [until])
        return soon.before_seconds != start.before_seconds

    async def _later(self, report: OnSeconds | None) -> tuple[ClipFacts, str] | None:
        """Begins with its own first frame; a seek that landed late is found out and repeated."""
        try:
            facts, reason = await self._reencoder.attempt(self._order, report)
        except (ClipFailed, OutputCorrupt):
            start, end = await self._borders()
            if is_empty(self._order, self._probe, start, end):
                return None
        else:
            start, _ = await self._borders()
            if not opens_behind(self._order, facts, start):
                return facts, reason
        order = await from_keyframe(self._order, self._order.span.start_seconds)
        facts, reason = await self._reencoder.attempt(order, report)
        # what a decoder does not show from its keyframe on, an unsplit clip does not show either
        if opens_behind(order, facts, start, grace_seconds=FIRST_FRAME_SECONDS):
            raise OutputCorrupt(f"{order.path.name} lacks what its source shows from {start.behind_seconds:.3f} s on")
        return facts, reason

    async def _borders(self) -> tuple[Border, Border]:
        if self._seen is None:
            order, video = self._order, self._probe.video
            assert video is not None, "only pictures are cut in pages"
            ticks = first_tick(order.span.start_seconds, video.fps), self._times.past_tick
            start, end = await look_around(order.source, self._probe, ticks)
            self._seen = start, end
        return self._seen


def _within(probe: Probe, span: ClipRange) -> ClipRange:
    return ClipRange(span.start_seconds, min(span.end_seconds, probe.duration_seconds))
