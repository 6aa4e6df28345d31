"""Is the output what was asked for? Exit code 0 does not say so: a source that breaks off gives 0 too."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

import av
from av.container import InputContainer
from av.frame import Frame
from av.stream import Stream
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from worker.errors import OutputCorrupt
from worker.media.boxes import walk_boxes
from worker.media.packets import StreamScan, scan_packets

T = TypeVar("T")

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
    #: sound must have begun by then
    sound_by_seconds: float | None = None


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
    #: when the last frame is over
    picture_end_seconds: float | None = None
    keyframe_gap_seconds: float = 0.0
    #: as shown: upright, with square pixels
    width: int = 0
    height: int = 0


async def verify_clip(path: Path, expected: ExpectedClip) -> ClipFacts:
    """Raises OutputCorrupt with what is wrong; reads every packet but decodes only both ends."""
    await asyncio.to_thread(_reading, path, lambda: _check_boxes(path))
    # side by side: one works in Python, the other in the decoder
    ends = asyncio.gather(asyncio.to_thread(_reading, path, lambda: _check_ends(path)), return_exceptions=True)
    try:
        facts = await asyncio.to_thread(_reading, path, lambda: _check_packets(path, expected))
    finally:
        (size,) = await ends
    if isinstance(size, BaseException):
        raise size
    return replace(facts, width=size[0], height=size[1])


def _reading(path: Path, check: Callable[[], T]) -> T:
    try:
        return check()
    except FileNotFoundError as exc:
        raise OutputCorrupt(f"{path.name} was not written") from exc
    except av.FFmpegError as exc:
        raise OutputCorrupt(f"{path.name} cannot be read back: {exc.strerror}") from exc


def _open(path: Path) -> InputContainer:
    return av.open(f"file:{path}", options={"protocol_whitelist": "file", "format_whitelist": "mov"})


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
    kinds = [box.kind for box in layout.boxes]
    if kinds.index("moov") > kinds.index("mdat"):
        raise OutputCorrupt(f"{path.name} has its index last, so that players wait for all of it")


def _check_packets(path: Path, expected: ExpectedClip) -> ClipFacts:
    with _open(path) as container:
        scans, duration = scan_packets(container), (container.duration or 0) / av.time_base
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
    _check_times(path, expected, duration, video)
    by = expected.sound_by_seconds
    if audio is not None and by is not None and audio.first_seconds > by:
        raise OutputCorrupt(f"{path.name} has no sound before {audio.first_seconds:.3f} s")
    return ClipFacts(
        size_bytes=path.stat().st_size,
        duration_seconds=duration,
        has_video=video is not None,
        has_audio=audio is not None,
        frames=video.packets - video.hidden if video else 0,
        first_frame_seconds=video.first_seconds if video else None,
        last_frame_seconds=video.last_seconds if video else None,
        picture_end_seconds=video.end_seconds if video else None,
        keyframe_gap_seconds=video.keyframe_gap_seconds if video else 0.0,
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


def _check_ends(path: Path) -> tuple[int, int]:
    """Width and height as shown, 0 without pictures."""
    with _open(path) as container:
        shown = _decode_ends(container, path)
        return (0, 0) if shown is None else _size(shown, container.streams.video[0])


def _decode_ends(container: InputContainer, path: Path) -> VideoFrame | None:
    """The first picture, if there are any."""
    shown = None
    for picture in container.streams.video:
        # what the others are predicted from proves the chain to the end; the rest takes as long again
        picture.codec_context.skip_frame = "BIDIR"
    for stream in (*container.streams.video, *container.streams.audio):
        first = _decode_from(container, stream, 0.0, path, first_only=True)
        tail = (container.duration or 0) / av.time_base - TAIL_SECONDS
        _decode_from(container, stream, max(0.0, tail), path, first_only=False)
        if first is None:
            raise OutputCorrupt(f"{path.name} has a {stream.type} track that does not decode")
        shown = first if isinstance(first, VideoFrame) else shown
    return shown


def _decode_from(
    container: InputContainer, stream: Stream, seconds: float, path: Path, *, first_only: bool
) -> Frame | None:
    container.seek(round(seconds * av.time_base), backward=True)
    first = None
    for frame in container.decode(stream):
        if isinstance(frame, Frame) and frame.is_corrupt:
            raise OutputCorrupt(f"{path.name} has a damaged {stream.type} frame near {seconds:.3f} s")
        if first is None and isinstance(frame, Frame):
            first = frame
        if first_only:
            break
    return first


def _size(shown: VideoFrame, stream: VideoStream) -> tuple[int, int]:
    aspect = stream.sample_aspect_ratio or 1
    width, height = round(shown.width * aspect), shown.height
    is_turned = round(shown.rotation) % 180 != 0
    return (height, width) if is_turned else (width, height)
