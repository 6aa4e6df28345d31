"""What a source holds, asked of PyAV: no ffprobe is needed. Imports little, because a child starts for it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

import av
from av.container import InputContainer
from av.stream import Disposition

from worker.domain.media import AudioStream, Probe, VideoStream
from worker.errors import SourceForbidden, SourceNotFound, SourceUnsupported, UpstreamFailure
from worker.media.boxes import walk_boxes
from worker.media.fences import MAX_PIXELS, opening
from worker.media.source import ReadableSource

OPEN_SECONDS: Final = 30.0
READ_SECONDS: Final = 30.0
ROTATING_FORMATS: Final = frozenset({"mov", "matroska", "hls"})
#: more than any encoder's reordering holds back before its first frame comes out
ROTATION_PACKETS: Final = 100


@contextmanager
def open_source(source: ReadableSource) -> Iterator[InputContainer]:
    """Open for reading with the same fences that ffmpeg gets; failures say what is wrong with the source."""
    try:
        with av.open(
            source.input, options=opening(source.protocols, source.formats), timeout=(OPEN_SECONDS, READ_SECONDS)
        ) as container:
            yield container
    except (av.FFmpegError, OSError) as exc:
        raise source.failure() or _translated(exc, source) from exc


def look(source: ReadableSource) -> Probe:
    """Refuses what cannot be cut: no media, nothing to see or hear, or a file that was cut short."""
    _refuse_cut_file(source)
    with open_source(source) as container:
        _refuse_cut_index(container, source)
        start = (container.start_time or 0) / av.time_base
        video, audio = _video(container, start), _audio(container, start)
        if video is None and audio is None:
            raise SourceUnsupported(f"{source.label} has neither picture nor sound")
        if video is not None and video.width * video.height > MAX_PIXELS:
            raise SourceUnsupported(f"{source.label} is too large: {video.width} x {video.height} pixels")
        if not container.duration or container.duration <= 0:
            raise SourceUnsupported(f"{source.label} does not tell how long it is")
        return Probe(container.format.name, container.duration / av.time_base, start, video, audio)


def _refuse_cut_file(source: ReadableSource) -> None:
    if not source.input.startswith("file:"):
        return
    try:
        with Path(source.input.removeprefix("file:")).open("rb") as file:
            layout = walk_boxes(file)
    except OSError as exc:
        raise _translated(exc, source) from exc
    if layout.file_bytes == 0:
        raise SourceUnsupported(f"{source.label} is empty: 0 bytes")
    if layout.cut_box is not None:
        raise _cut_off(source, layout.file_bytes, layout.promised_bytes)
    if layout.is_mp4 and not layout.has("moov"):
        raise SourceUnsupported(f"{source.label} is an MP4 file without its index (moov): it was never finished")


def _refuse_cut_index(container: InputContainer, source: ReadableSource) -> None:
    """An MP4's index tells where its last packets lie, which shows a cut even in a file elsewhere."""
    if "mov" not in container.format.name.split(",") or not source.size_bytes:
        return
    entries = (stream.index_entries for stream in container.streams)
    ends = [entry[-1].pos + entry[-1].size for entry in entries if len(entry)]
    if ends and max(ends) > source.size_bytes:
        raise _cut_off(source, source.size_bytes, max(ends))


def _cut_off(source: ReadableSource, have: int, promised: int) -> SourceUnsupported:
    return SourceUnsupported(f"{source.label} is cut off at byte {have} of {promised}: upload it again")


def _video(container: InputContainer, container_start: float) -> VideoStream | None:
    for stream in container.streams.video:
        # cover art is a picture, not a video
        if stream.disposition & Disposition.attached_pic or not stream.codec_context.width:
            continue
        rate = stream.average_rate or stream.guessed_rate
        return VideoStream(
            codec=stream.codec_context.name,
            width=stream.codec_context.width,
            height=stream.codec_context.height,
            fps=float(rate) if rate else None,
            rotation=_rotation(container, stream),
            index=stream.index,
            start_seconds=_stream_start(stream, container_start),
        )
    return None


def _audio(container: InputContainer, container_start: float) -> AudioStream | None:
    for stream in container.streams.audio:
        return AudioStream(
            codec=stream.codec_context.name,
            sample_rate=stream.codec_context.sample_rate,
            channels=stream.codec_context.channels,
            index=stream.index,
            start_seconds=_stream_start(stream, container_start),
        )
    return None


def _stream_start(stream: Any, container_start: float) -> float:
    if stream.start_time is None:
        return 0.0
    return max(0.0, float(stream.start_time * stream.time_base) - container_start)


def _rotation(container: InputContainer, stream: av.VideoStream) -> int:
    """Only a decoded frame tells it; containers that cannot rotate are spared the reading."""
    if not ROTATING_FORMATS & set(container.format.name.split(",")):
        return 0
    for packet in islice(container.demux(stream), ROTATION_PACKETS):
        # a broken first frame is the cutter's business
        with suppress(av.InvalidDataError):
            for frame in packet.decode():
                return round(-frame.rotation) % 360
    return 0


def _translated(exc: Exception, source: ReadableSource) -> Exception:
    match exc:
        case FileNotFoundError() | av.HTTPNotFoundError():
            return SourceNotFound(f"{source.label} does not exist")
        case PermissionError() | av.HTTPForbiddenError() | av.HTTPUnauthorizedError():
            return SourceForbidden(f"{source.label} may not be read")
        case IsADirectoryError():
            return SourceUnsupported(f"{source.label} is a directory")
        case av.HTTPClientError():
            return SourceNotFound(f"{source.label} was refused by its server")
        case av.InvalidDataError() | av.DemuxerNotFoundError() | ValueError():
            return SourceUnsupported(f"{source.label} is no media that this worker reads")
        case _:
            return UpstreamFailure(f"{source.label} could not be read: {type(exc).__name__}")
