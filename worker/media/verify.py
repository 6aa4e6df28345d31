"""Is the output what was asked for? Exit code 0 does not say so: a source that breaks off gives 0 too."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import av
from av.container import InputContainer
from av.frame import Frame
from av.stream import Stream

from worker.errors import OutputCorrupt
from worker.media.boxes import walk_boxes
from worker.media.packets import StreamScan, scan_packets

#: how much of the end is decoded; from the keyframe before it
TAIL_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class ExpectedClip:
    """What a right output looks like; seconds from the clip's start."""

    has_video: bool
    has_audio: bool
    shortest_seconds: float
    longest_seconds: float
    #: no frame may be shown at or after this
    frames_before_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ClipFacts:
    """What is true of a verified output."""

    size_bytes: int
    duration_seconds: float
    has_video: bool
    has_audio: bool
    frames: int
    first_frame_seconds: float | None
    last_frame_seconds: float | None


async def verify_clip(path: Path, expected: ExpectedClip) -> ClipFacts:
    """Raises OutputCorrupt with what is wrong; reads every packet but decodes only both ends."""
    return await asyncio.to_thread(_verify, path, expected)


def _verify(path: Path, expected: ExpectedClip) -> ClipFacts:
    try:
        _check_boxes(path)
        with av.open(f"file:{path}", options={"protocol_whitelist": "file", "format_whitelist": "mov"}) as container:
            facts = _check_packets(container, path, expected)
            _check_ends(container, path)
            return facts
    except FileNotFoundError as exc:
        raise OutputCorrupt(f"{path.name} was not written") from exc
    except av.FFmpegError as exc:
        raise OutputCorrupt(f"{path.name} cannot be read back: {exc.strerror}") from exc


def _check_boxes(path: Path) -> None:
    with path.open("rb") as file:
        layout = walk_boxes(file)
    if layout.file_bytes == 0:
        raise OutputCorrupt(f"{path.name} has 0 bytes")
    if layout.cut_box is not None:
        raise OutputCorrupt(f"{path.name} is cut off at byte {layout.file_bytes} of {layout.promised_bytes}")
    for kind in ("moov", "mdat"):
        if not layout.has(kind):
            raise OutputCorrupt(f"{path.name} has no {kind} box")


def _check_packets(container: InputContainer, path: Path, expected: ExpectedClip) -> ClipFacts:
    scans = scan_packets(container)
    video = next((scan for scan in scans if scan.kind == "video"), None)
    audio = next((scan for scan in scans if scan.kind == "audio"), None)
    for name, is_there, is_expected in (
        ("picture", video is not None, expected.has_video),
        ("sound", audio is not None, expected.has_audio),
    ):
        if is_there != is_expected:
            raise OutputCorrupt(f"{path.name} has {'unexpected' if is_there else 'no'} {name}")
    for scan in scans:
        if scan.damage:
            raise OutputCorrupt(f"{path.name} has a damaged {scan.kind} track: {scan.damage}")
    duration = (container.duration or 0) / av.time_base
    _check_times(path, expected, duration, video)
    return ClipFacts(
        size_bytes=path.stat().st_size,
        duration_seconds=duration,
        has_video=video is not None,
        has_audio=audio is not None,
        frames=video.packets if video else 0,
        first_frame_seconds=video.first_seconds if video else None,
        last_frame_seconds=video.last_seconds if video else None,
    )


def _check_times(path: Path, expected: ExpectedClip, duration: float, video: StreamScan | None) -> None:
    if not expected.shortest_seconds <= duration <= expected.longest_seconds:
        raise OutputCorrupt(
            f"{path.name} is {duration:.3f} s long instead of "
            f"{expected.shortest_seconds:.3f} to {expected.longest_seconds:.3f} s"
        )
    if video is None:
        return
    before = expected.frames_before_seconds
    if before is not None and video.last_seconds >= before:
        raise OutputCorrupt(f"{path.name} shows a frame at {video.last_seconds:.3f} s, behind its end")


def _check_ends(container: InputContainer, path: Path) -> None:
    for stream in (*container.streams.video, *container.streams.audio):
        start = _decode_from(container, stream, 0.0, path, first_only=True)
        tail = (container.duration or 0) / av.time_base - TAIL_SECONDS
        _decode_from(container, stream, max(0.0, tail), path, first_only=False)
        if start == 0:
            raise OutputCorrupt(f"{path.name} has a {stream.type} track that does not decode")


def _decode_from(
    container: InputContainer,
    stream: Stream,
    seconds: float,
    path: Path,
    *,
    first_only: bool,
) -> int:
    container.seek(round(seconds * av.time_base), backward=True)
    frames = 0
    for frame in container.decode(stream):
        frames += 1
        if isinstance(frame, Frame) and frame.is_corrupt:
            raise OutputCorrupt(f"{path.name} has a damaged {stream.type} frame near {seconds:.3f} s")
        if first_only:
            break
    return frames
