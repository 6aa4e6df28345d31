"""Joins the pages of a long clip into one file, that nobody can tell from one that was cut in one piece."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from worker.domain.media import ClipFile, ClipRange, Mode, Probe
from worker.errors import OutputCorrupt
from worker.media.expectation import expect_exact
from worker.media.join_order import Joined, JoinedPage, JoinOrder, join_argv, joined
from worker.media.ordering import clip_of
from worker.media.pages import OnProgress, PicturePage
from worker.media.process import Limits, run_child
from worker.media.progress import fractions_of
from worker.media.timeline import TICKS_PER_SECOND, start_tick
from worker.media.verify import ClipFacts, verify_clip


class PageJoiner:
    """Joins with one child under one set of limits."""

    def __init__(self, *, limits: Limits) -> None:
        self._limits = limits

    async def join(
        self,
        pages: Sequence[PicturePage],
        sound: Path | None,
        *,
        probe: Probe,
        clip: ClipRange,
        work_path: Path,
        on_progress: OnProgress | None = None,
    ) -> ClipFile:
        """Write `work_path` and vouch for it. Of `sound`, which may be a finished clip, only the sound is taken."""
        span = ClipRange(clip.start_seconds, min(clip.end_seconds, probe.duration_seconds))
        filled = [page for page in pages if page.path is not None]
        if not filled:
            raise OutputCorrupt(f"{work_path.name} would have no picture: none comes up in any page")
        report = fractions_of(on_progress, span.duration_seconds)
        order_path = work_path.with_name(f"{work_path.name}.pages.json")
        command = await asyncio.to_thread(join_argv, _order(filled, sound, span, work_path), order_path)
        try:
            result = await run_child(command, limits=self._limits, on_progress=report)
        finally:
            await asyncio.to_thread(order_path.unlink)
        told = joined(result, self._limits, work_path.name)
        facts = await _verified(work_path, probe if sound is not None else replace(probe, audio=None), span, told)
        wanted = sum(page.frames for page in filled)
        if not facts.frames == told.frames == wanted:
            raise OutputCorrupt(f"{work_path.name} has {facts.frames} frames instead of {wanted}")
        if report is not None:
            report(span.duration_seconds)
        reason = next((page.cpu_fallback for page in filled if page.cpu_fallback), "")
        return replace(clip_of(facts, work_path, mode=Mode.EXACT, span=span), cpu_fallback=reason)


async def _verified(path: Path, probe: Probe, span: ClipRange, told: Joined) -> ClipFacts:
    expected = expect_exact(probe, span, has_video=True)
    if expected.has_audio:
        return await verify_clip(path, expected)
    # libav does not count what lies before a file's first packet, and without sound that may be long
    first, past = told.first_ticks / TICKS_PER_SECOND, told.past_ticks / TICKS_PER_SECOND
    if past < expected.shortest_seconds:
        raise OutputCorrupt(f"{path.name} ends at {past:.3f} s instead of {expected.shortest_seconds:.3f} s")
    facts = await verify_clip(path, replace(expected, shortest_seconds=max(0.0, expected.shortest_seconds - first)))
    return replace(facts, duration_seconds=past)


def _order(pages: Sequence[PicturePage], sound: Path | None, span: ClipRange, output: Path) -> JoinOrder:
    return JoinOrder(
        output=f"file:{output}",
        pages=[JoinedPage(str(page.path), page.zero_ticks) for page in pages],
        sound=str(sound) if sound is not None else None,
        clip_ticks=start_tick(span.duration_seconds),
    )
