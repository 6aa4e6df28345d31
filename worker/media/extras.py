"""What is made beside a clip, and of it: smaller versions, pictures, the sound as others need it, its loudness."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import av

from worker.domain.media import ClipFile, Loudness, Quality
from worker.errors import OutputCorrupt
from worker.media.encoding import CPU, QUALITIES, VideoEncoder, with_fallback
from worker.media.expectation import expect_same
from worker.media.extras_argv import Extras, Rendition, make_extras
from worker.media.keyframes import picture_of
from worker.media.loudness import read_report
from worker.media.process import Limits, run_child
from worker.media.progress import fractions_of
from worker.media.verify import verify_clip

JPEG_END: Final = b"\xff\xd9"
WAV_HEADER_BYTES: Final = 44


@dataclass(frozen=True, slots=True)
class Made:
    #: None when nobody asked for it
    loudness: Loudness | None = None
    #: why the configured encoder was replaced by the processor; empty when it was not
    cpu_fallback: str = ""


class ExtrasMaker:
    """Makes everything in one run of ffmpeg, and vouches for each file."""

    def __init__(self, ffmpeg: Path, *, limits: Limits, encoder: VideoEncoder = CPU) -> None:
        self._ffmpeg = ffmpeg
        self._limits = limits
        self._encoder = encoder

    async def make(
        self,
        clip: ClipFile,
        extras: Extras,
        *,
        quality: Quality = Quality.GOOD,
        on_progress: Callable[[float], None] | None = None,
    ) -> Made:
        if not extras:
            return Made()
        if extras.poster is not None:
            at = await asyncio.to_thread(picture_of, clip.path, extras.poster.at_seconds)
            extras = replace(extras, poster=replace(extras.poster, at_seconds=at))

        async def run(encoder: VideoEncoder) -> Made:
            command = make_extras(self._ffmpeg, clip, extras, encoding=QUALITIES[quality], encoder=encoder)
            limits = encoder.limits(self._limits)
            result = await run_child(
                command, limits=limits, on_progress=fractions_of(on_progress, clip.duration_seconds)
            )
            if failure := encoder.failure(result, limits):
                raise failure
            return await _verified(clip, extras)

        made, reason = await with_fallback(self._encoder if extras.renditions else CPU, run)
        return replace(made, cpu_fallback=reason)


async def _verified(clip: ClipFile, extras: Extras) -> Made:
    for rendition in extras.renditions:
        await _verify_rendition(clip, rendition)
    return await asyncio.to_thread(_verify_files, extras)


async def _verify_rendition(clip: ClipFile, rendition: Rendition) -> None:
    facts = await verify_clip(rendition.path, expect_same(clip))
    if (facts.frames, facts.height) != (clip.frames, rendition.height):
        raise OutputCorrupt(
            f"{rendition.path.name} has {facts.frames} frames of height {facts.height} "
            f"instead of {clip.frames} of {rendition.height}"
        )


def _verify_files(extras: Extras) -> Made:
    if extras.poster is not None:
        verify_jpeg(extras.poster.path)
    if extras.sprite is not None:
        verify_jpeg(extras.sprite.path, size=extras.sprite.sheet.size)
    if extras.speech is not None:
        _verify_wav(extras.speech)
    return Made(read_report(extras.loudness) if extras.loudness is not None else None)


def verify_jpeg(path: Path, *, size: tuple[int, int] | None = None) -> None:
    """Whole, decodable, and as large as it should be."""
    try:
        if not path.read_bytes().endswith(JPEG_END):
            raise OutputCorrupt(f"{path.name} is no whole picture")
        with av.open(f"file:{path}", options={"protocol_whitelist": "file"}) as container:
            frame = next(container.decode(video=0))
    except (OSError, av.FFmpegError, StopIteration) as exc:
        raise OutputCorrupt(f"{path.name} is no picture") from exc
    if size is not None and (frame.width, frame.height) != size:
        raise OutputCorrupt(f"{path.name} is {frame.width} x {frame.height} instead of {size[0]} x {size[1]}")


def _verify_wav(path: Path) -> None:
    if not path.is_file() or path.stat().st_size <= WAV_HEADER_BYTES:
        raise OutputCorrupt(f"{path.name} holds no sound though the clip does")
