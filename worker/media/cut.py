"""The room's front door: a range of a source becomes a verified clip file."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from worker.domain.media import ClipFile, ClipRange, Mode, Probe, Quality
from worker.errors import SourceUnsupported
from worker.media import argv
from worker.media.copying import copied, copy_argv, copy_order
from worker.media.encoding import CPU, QUALITIES, VideoEncoder
from worker.media.expectation import TOLERANCE_SECONDS, expect_copy
from worker.media.failure import failure_of
from worker.media.loudness import gain_for, read_report
from worker.media.ordering import Order, checked_smart, clip_file, refuse_early_end, verified
from worker.media.process import Limits, run_child
from worker.media.progress import fractions_of
from worker.media.reencoding import Reencoder
from worker.media.smart.asking import child_argv, order_for
from worker.media.smart.order import SmartResult, Unfit
from worker.media.smart.outcome import smart_result
from worker.media.source import ReadableSource
from worker.media.speech import refuse_lost_sound
from worker.media.verify import ClipFacts

#: gets the fraction of the work that is done, 0 to 1
OnProgress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Style:
    """What is made of the range, besides cutting it."""

    max_height: int | None = None
    quality: Quality = Quality.GOOD
    #: LUFS to bring the sound to; None leaves it as it is
    loudness: float | None = None
    #: of a copy: pictures before the start stay in the file, and players skip them
    is_lead_hidden: bool = False


AS_IT_IS: Final = Style()


class Cutter:
    """Cuts with one ffmpeg under one set of limits."""

    def __init__(self, ffmpeg: Path, *, limits: Limits, encoder: VideoEncoder = CPU) -> None:
        self._ffmpeg = ffmpeg
        self._limits = limits
        self._encoder = encoder
        self._reencoder = Reencoder(ffmpeg, limits=limits)

    async def cut(
        self,
        source: ReadableSource,
        probe: Probe,
        wanted: ClipRange,
        *,
        mode: Mode,
        work_path: Path,
        style: Style = AS_IT_IS,
        may_fall_back: bool = True,
        on_progress: OnProgress | None = None,
    ) -> ClipFile:
        """Write `work_path` and vouch for it; the caller renames it, or removes it after an error.

        `may_fall_back`: a smart cut that would not be right becomes an exact one; else it is Unfit.
        """
        used = effective_mode(mode, probe, label=source.label)
        span = ClipRange(wanted.start_seconds, min(wanted.end_seconds, probe.duration_seconds))
        encoder = self._encoder if used is not Mode.AUDIO else CPU
        recipe = argv.Recipe(QUALITIES[style.quality], encoder, style.max_height)
        order = Order(source, probe, span, used, work_path, recipe)
        report = fractions_of(on_progress, span.duration_seconds)
        if used is Mode.COPY:
            clip = await self._copy(order, report, is_lead_hidden=style.is_lead_hidden)
        else:
            if style.loudness is not None and probe.audio is not None:
                order = await self._with_mastered_sound(order, style.loudness)
            clip = await (
                self._cut_smart(order, report, may_fall_back) if used is Mode.SMART else self._cut(order, report)
            )
        if order.recipe.sound is not None:
            order.recipe.sound.path.unlink()
        if report is not None:
            # the last report comes before the last packets
            report(span.duration_seconds)
        return clip

    async def _copy(self, order: Order, report: OnProgress | None, *, is_lead_hidden: bool) -> ClipFile:
        asked = copy_order(order.source, order.probe, order.span, order.path, is_lead_hidden=is_lead_hidden)
        result = await run_child(copy_argv(asked), limits=self._limits, on_progress=report)
        if failure := order.source.failure():
            raise failure
        told = copied(result, self._limits, order.source.label)
        span = ClipRange(told.start_seconds, told.end_seconds)
        facts = await verified(order, expect_copy(order.probe, span), result)
        return clip_file(replace(order, span=span), facts)

    async def _with_mastered_sound(self, order: Order, target_lufs: float) -> Order:
        """The sound is read once, measured, and kept without loss until it is encoded, once."""
        path, report = order.beside("sound.flac"), order.beside("loudness.txt")
        command = argv.sound_master(self._ffmpeg, order.input, order.span, path, report=report)
        result = await run_child(command, limits=self._limits)
        if failure := order.source.failure() or failure_of(result, self._limits):
            raise failure
        return order.cooked(sound=argv.MasteredSound(path, gain_for(read_report(report), target_lufs)))

    async def _cut_smart(self, order: Order, report: OnProgress | None, may_fall_back: bool) -> ClipFile:  # noqa: FBT001 - handed on
        """Falls back to an exact cut whenever the quick one would not be provably right."""
        try:
            facts, told = await self._attempt_smart(order, report)
        except Unfit as exc:
            if not may_fall_back:
                raise
            clip = await self._cut(replace(order, mode=Mode.EXACT), report)
            return replace(clip, fallback=str(exc))
        return replace(clip_file(order, facts), frames_reencoded=told.frames_reencoded)

    async def _attempt_smart(self, order: Order, report: OnProgress | None) -> tuple[ClipFacts, SmartResult]:
        if order.recipe.max_height is not None:
            raise Unfit("max_height changes every frame")
        if order.recipe.sound is None:
            return await self._cut_edges(order, report)
        silent = replace(order, probe=replace(order.probe, audio=None), path=order.beside("picture.mp4"))
        _, told = await self._cut_edges(silent, report)
        recipe = replace(order.recipe, pictures=silent.path)
        command = argv.joined(self._ffmpeg, order.input, order.span, order.path, recipe)
        result = await run_child(command, limits=self._limits)
        if failure := failure_of(result, self._limits):
            raise failure
        silent.path.unlink()
        return await checked_smart(order, told, result), told

    async def _cut_edges(self, order: Order, report: OnProgress | None) -> tuple[ClipFacts, SmartResult]:
        """Only frames around the range's ends are encoded; the rest is copied."""
        edges = order.recipe.encoding
        asked = order_for(
            order.source,
            order.probe,
            order.span,
            order.path,
            preset=edges.preset,
            crf=edges.edge_crf,
            threads=edges.threads,
        )
        result = await run_child(child_argv(asked), limits=self._limits, on_progress=report)
        if failure := order.source.failure():
            raise failure
        told = smart_result(result, self._limits)
        return await checked_smart(order, told, result), told

    async def _cut(self, order: Order, report: OnProgress | None) -> ClipFile:
        facts, reason = await self._reencoder.cut(order, report)
        if order.mode is Mode.AUDIO:
            ends = order.span.start_seconds + facts.duration_seconds
            if ends < order.span.end_seconds - TOLERANCE_SECONDS:
                await refuse_lost_sound(order.source, order.probe, ClipRange(ends, order.span.end_seconds))
        await refuse_early_end(order, facts)
        return replace(clip_file(order, facts), cpu_fallback=reason)


def effective_mode(mode: Mode, probe: Probe, *, label: str) -> Mode:
    """What is done for what was asked: without a picture only sound is cut."""
    if mode is Mode.AUDIO and probe.audio is None:
        raise SourceUnsupported(f"{label} has no sound: use mode exact")
    return Mode.AUDIO if probe.video is None and mode is not Mode.COPY else mode
