"""Cuts by re-encoding, and looks closer at the source only where a first try did not show the start."""

from collections.abc import Callable
from pathlib import Path

from worker.domain.media import Mode
from worker.errors import OutputCorrupt
from worker.media import argv
from worker.media.encoding import VideoEncoder, with_fallback
from worker.media.keyframes import frame_shown_at, keyframe_before
from worker.media.ordering import Order, opens_late, verified
from worker.media.process import Limits, run_child
from worker.media.verify import ClipFacts

OnSeconds = Callable[[float], None]


class Reencoder:
    """What a clip and a page of one have in common; the facts come with why the processor had to encode, if it had."""

    def __init__(self, ffmpeg: Path, *, limits: Limits) -> None:
        self._ffmpeg = ffmpeg
        self._limits = limits

    async def cut(self, order: Order, report: OnSeconds | None) -> tuple[ClipFacts, str]:
        facts, reason = await self._first_try(order, report)
        if facts is None and order.probe.format == "mpegts":
            # without an index a seek may land far behind the keyframe
            order = await from_keyframe(order, order.span.start_seconds)
            facts, reason = await self._first_try(order, report)
        if facts is None:
            facts, reason = await self.hold(order, report)
        return facts, reason

    async def hold(self, order: Order, report: OnSeconds | None) -> tuple[ClipFacts, str]:
        """Nothing moves at the start, as in a screen recording: open with the frame that is still on display."""
        held = await frame_shown_at(order.source, order.probe, order.span.start_seconds)
        if held is not None and order.probe.format == "mpegts":
            order = await from_keyframe(order, held)
        order = order.cooked(held_seconds=held)
        facts, reason = await self.attempt(order, report)
        if opens_late(order, facts):
            raise OutputCorrupt(f"{order.path.name} shows no picture before {facts.first_frame_seconds:.3f} s")
        return facts, reason

    async def attempt(self, order: Order, report: OnSeconds | None) -> tuple[ClipFacts, str]:
        async def encode(encoder: VideoEncoder) -> ClipFacts:
            limits = encoder.limits(self._limits)
            command = self._command(order.cooked(encoder=encoder))
            result = await run_child(command, limits=limits, on_progress=report)
            # the source knows best why it could not be read
            if failure := order.source.failure() or encoder.failure(result, limits):
                raise failure
            return await verified(order, order.expected, result)

        return await with_fallback(order.recipe.encoder, encode)

    async def _first_try(self, order: Order, report: OnSeconds | None) -> tuple[ClipFacts | None, str]:
        """None when the clip does not show what it begins with."""
        try:
            facts, reason = await self.attempt(order, report)
        except OutputCorrupt:
            if order.probe.format != "mpegts" or order.recipe.keyframe_seconds is not None:
                raise
            return None, ""
        return (None if opens_late(order, facts) else facts), reason

    def _command(self, order: Order) -> list[str]:
        build = argv.audio_clip if order.mode is Mode.AUDIO else argv.exact_clip
        return build(self._ffmpeg, order.input, order.span, order.path, order.recipe)


async def from_keyframe(order: Order, seconds: float) -> Order:
    """Decoding starts there, wherever an index or its absence would lead a seek."""
    return order.cooked(keyframe_seconds=await keyframe_before(order.source, order.probe, seconds))
