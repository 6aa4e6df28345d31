"""The room's front door: a range of a source becomes a verified clip file, with its poster and its speech."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from worker.domain.media import ClipFile, ClipRange, Mode, Probe
from worker.errors import OutputCorrupt, SourceUnsupported
from worker.media import argv
from worker.media.expectation import expect_copy, expect_exact, first_frame_by
from worker.media.failure import complaint_of, failure_of
from worker.media.keyframes import frame_shown_at, keyframe_before
from worker.media.process import ChildResult, Limits, run_child
from worker.media.progress import ProgressThrottle
from worker.media.source import ReadableSource
from worker.media.verify import ClipFacts, verify_clip

#: gets the fraction of the work that is done, 0 to 1
OnProgress = Callable[[float], None]

JPEG_END: Final = b"\xff\xd9"
WAV_HEADER_BYTES: Final = 44


class Cutter:
    """Cuts with one ffmpeg under one set of limits."""

    def __init__(self, ffmpeg: Path, *, limits: Limits, encoding: argv.Encoding | None = None) -> None:
        self._ffmpeg = ffmpeg
        self._limits = limits
        self._encoding = encoding or argv.Encoding()

    async def cut(
        self,
        source: ReadableSource,
        probe: Probe,
        wanted: ClipRange,
        *,
        mode: Mode,
        work_path: Path,
        max_height: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> ClipFile:
        """Write `work_path` and vouch for it; the caller renames it, or removes it after an error."""
        used = effective_mode(mode, probe, label=source.label)
        span = ClipRange(wanted.start_seconds, min(wanted.end_seconds, probe.duration_seconds))
        if used is Mode.COPY:
            span = ClipRange(await keyframe_before(source, probe, span.start_seconds), span.end_seconds)
        order = _Order(source, probe, span, used, max_height, work_path)
        report = _throttled(on_progress, span.duration_seconds)
        facts = await self._attempt(order, report)
        if _opens_late(order, facts):
            # nothing moves at the start, as in a screen recording: open with the frame that is still on display
            held = await frame_shown_at(source, probe, span.start_seconds)
            facts = await self._attempt(replace(order, held_seconds=held), report)
            if _opens_late(order, facts):
                raise OutputCorrupt(f"{work_path.name} shows no picture before {facts.first_frame_seconds:.3f} s")
        if report is not None:
            # ffmpeg's last report comes before its last packets
            report(span.duration_seconds)
        return _clip_file(order, facts)

    async def make_poster(self, clip: ClipFile, path: Path, *, at_seconds: float) -> bool:
        """Write a JPEG of the picture at `at_seconds`; False when the clip has none to show."""
        if not clip.has_video:
            return False
        await self._run(argv.poster(self._ffmpeg, clip.path, path, at_seconds=at_seconds))
        if not await asyncio.to_thread(_ends_with, path, JPEG_END):
            raise OutputCorrupt(f"{path.name} is no whole picture of {at_seconds:.3f} s")
        return True

    async def extract_speech_wav(self, clip: ClipFile, path: Path) -> bool:
        """Write 16 kHz mono for a recognizer; False when the clip has no sound."""
        if not clip.has_audio:
            return False
        await self._run(argv.speech_wav(self._ffmpeg, clip.path, path, duration_seconds=clip.duration_seconds))
        if not await asyncio.to_thread(_is_longer_than, path, WAV_HEADER_BYTES):
            raise OutputCorrupt(f"{path.name} holds no sound though the clip does")
        return True

    async def _run(self, command: Sequence[str]) -> None:
        result = await run_child(command, limits=self._limits)
        if failure := failure_of(result, self._limits):
            raise failure

    async def _attempt(self, order: "_Order", report: OnProgress | None) -> ClipFacts:
        result = await run_child(self._command(order), limits=self._limits, on_progress=report)
        # the source knows best why it could not be read
        if failure := order.source.failure() or failure_of(result, self._limits):
            raise failure
        return await _verified(order, result)

    def _command(self, order: "_Order") -> list[str]:
        given = argv.ClipInput(order.source.input, order.source.protocols, order.probe)
        match order.mode:
            case Mode.COPY:
                return argv.copy_clip(self._ffmpeg, given, order.span, order.path)
            case Mode.AUDIO:
                return argv.audio_clip(self._ffmpeg, given, order.span, order.path, encoding=self._encoding)
            case _:
                return argv.exact_clip(
                    self._ffmpeg,
                    given,
                    order.span,
                    order.path,
                    max_height=order.max_height,
                    encoding=self._encoding,
                    held_seconds=order.held_seconds,
                )


@dataclass(frozen=True, slots=True)
class _Order:
    """One clip to cut, with everything decided."""

    source: ReadableSource
    probe: Probe
    span: ClipRange
    mode: Mode
    max_height: int | None
    path: Path
    held_seconds: float | None = None


def effective_mode(mode: Mode, probe: Probe, *, label: str) -> Mode:
    """What is done for what was asked: without a picture only sound is cut, and smart still means exact."""
    if mode is Mode.AUDIO and probe.audio is None:
        raise SourceUnsupported(f"{label} has no sound: use mode exact")
    if mode is Mode.COPY:
        return Mode.COPY
    return Mode.AUDIO if mode is Mode.AUDIO or probe.video is None else Mode.EXACT


async def _verified(order: _Order, result: ChildResult) -> ClipFacts:
    expected = (
        expect_copy(order.probe, order.span)
        if order.mode is Mode.COPY
        else expect_exact(order.probe, order.span, has_video=order.mode is Mode.EXACT)
    )
    try:
        return await verify_clip(order.path, expected)
    except OutputCorrupt as exc:
        # exit code 0 after a broken source: name the cause, not what it led to
        if complaint := complaint_of(result):
            raise complaint from exc
        raise


def _opens_late(order: _Order, facts: ClipFacts) -> bool:
    if order.mode is not Mode.EXACT or facts.first_frame_seconds is None:
        return False
    return facts.first_frame_seconds > first_frame_by(order.probe, order.span)


def _clip_file(order: _Order, facts: ClipFacts) -> ClipFile:
    copied_end = order.span.start_seconds + facts.duration_seconds
    return ClipFile(
        path=order.path,
        mode=order.mode,
        duration_seconds=facts.duration_seconds,
        start_seconds=order.span.start_seconds,
        end_seconds=copied_end if order.mode is Mode.COPY else order.span.end_seconds,
        has_video=facts.has_video,
        has_audio=facts.has_audio,
        frames=facts.frames,
        frames_reencoded=facts.frames if order.mode is Mode.EXACT else 0,
    )


def _ends_with(path: Path, ending: bytes) -> bool:
    return path.is_file() and path.read_bytes().endswith(ending)


def _is_longer_than(path: Path, size_bytes: int) -> bool:
    return path.is_file() and path.stat().st_size > size_bytes


def _throttled(on_progress: OnProgress | None, total_seconds: float) -> Callable[[float], None] | None:
    if on_progress is None:
        return None
    throttle = ProgressThrottle()

    def report(seconds: float) -> None:
        fraction = min(1.0, seconds / total_seconds)
        if throttle.admits(fraction, now=time.monotonic()):
            on_progress(fraction)

    return report
