"""One clip to cut, and whether what was cut is it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from worker.domain.media import ClipFile, ClipRange, Mode, Probe
from worker.errors import OutputCorrupt
from worker.media import argv
from worker.media.expectation import expect_exact, expect_page, first_frame_by, picture_lasts
from worker.media.failure import complaint_of, shown
from worker.media.keyframes import frame_shown_at
from worker.media.process import ChildResult
from worker.media.smart.order import SmartResult, Unfit
from worker.media.source import ReadableSource
from worker.media.verify import ClipFacts, ExpectedClip, verify_clip

#: frames up to this long before the end belong to the clip
BEFORE_END_SECONDS: Final = 0.002


@dataclass(frozen=True, slots=True)
class Order:
    """One clip to cut, with everything decided."""

    source: ReadableSource
    probe: Probe
    span: ClipRange
    mode: Mode
    path: Path
    recipe: argv.Recipe

    @property
    def input(self) -> argv.ClipInput:
        source = self.source
        return argv.ClipInput(source.input, source.protocols, self.probe, source.formats, source.late_seek_seconds)

    @property
    def expected(self) -> ExpectedClip:
        if self.recipe.page is not None:
            return expect_page(self.recipe.page)
        has_video, is_copied = self.mode is not Mode.AUDIO, self.mode is Mode.SMART
        expected = expect_exact(self.probe, self.span, has_video=has_video, is_copied=is_copied)
        # sound that ends before the pictures do is judged by the source
        return replace(expected, shortest_seconds=0.0) if self.mode is Mode.AUDIO else expected

    def beside(self, name: str) -> Path:
        return self.path.with_name(f"{self.path.stem}-{name}")

    def cooked(self, **changes: Any) -> "Order":
        return replace(self, recipe=replace(self.recipe, **changes))


async def verified(order: Order, expected: ExpectedClip, result: ChildResult) -> ClipFacts:
    try:
        return await verify_clip(order.path, expected)
    except OutputCorrupt as exc:
        # exit code 0 after a broken source: name the cause, not what it led to
        if complaint := complaint_of(result):
            raise complaint from exc
        if result.stderr_tail:
            raise OutputCorrupt(f"{exc} (ffmpeg: {shown(result)})") from exc
        raise


async def checked_smart(order: Order, told: SmartResult, result: ChildResult) -> ClipFacts:
    try:
        facts = await verified(order, order.expected, result)
        await refuse_early_end(order, facts)
    except OutputCorrupt as exc:
        raise Unfit(f"the quick cut was not right: {exc}") from exc
    if facts.frames != told.frames or opens_late(order, facts):
        raise Unfit(f"the quick cut was not right: {facts.frames} of {told.frames} frames arrived")
    return facts


def opens_late(order: Order, facts: ClipFacts) -> bool:
    if order.mode is Mode.AUDIO or facts.first_frame_seconds is None:
        return False
    return facts.first_frame_seconds > first_frame_by(order.probe, order.span)


async def refuse_early_end(order: Order, facts: ClipFacts) -> None:
    """Sound may last to the end where pictures do not; only the source tells whether there are more of them."""
    if facts.last_frame_seconds is None or picture_lasts(facts, order.probe, order.span):
        return
    until = order.span.end_seconds - BEFORE_END_SECONDS
    last = await frame_shown_at(order.source, order.probe, until)
    shown_last = order.span.start_seconds + facts.last_frame_seconds
    if last is not None and last > shown_last + BEFORE_END_SECONDS:
        raise OutputCorrupt(
            f"{order.path.name} shows its last picture at {facts.last_frame_seconds:.3f} s "
            f"instead of {last - order.span.start_seconds:.3f} s"
        )


def clip_file(order: Order, facts: ClipFacts) -> ClipFile:
    return clip_of(facts, order.path, mode=order.mode, span=order.span)


def clip_of(facts: ClipFacts, path: Path, *, mode: Mode, span: ClipRange) -> ClipFile:
    return ClipFile(
        path=path,
        mode=mode,
        duration_seconds=facts.duration_seconds,
        start_seconds=span.start_seconds,
        end_seconds=span.end_seconds,
        has_video=facts.has_video,
        has_audio=facts.has_audio,
        frames=facts.frames,
        frames_reencoded=facts.frames if mode is Mode.EXACT else 0,
        width=facts.width,
        height=facts.height,
        keyframe_gap_seconds=facts.keyframe_gap_seconds,
    )
