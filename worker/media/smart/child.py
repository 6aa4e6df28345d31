"""The process that cuts: one order as JSON in its arguments, progress and the result on its output."""

import json
import logging
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from fractions import Fraction
from itertools import chain
from typing import Any, Final

import av
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.packet import Packet
from av.video.stream import VideoStream

from worker.media.fences import seeking
from worker.media.smart.order import SmartOrder, SmartResult, Unfit, parse_order
from worker.media.smart.pictures import PictureTrack
from worker.media.smart.sound import SoundTrack, sound_track
from worker.media.smart.timeline import StreamTimeline

OPEN_SECONDS: Final = 30.0
READ_SECONDS: Final = 30.0
REPORT_SECONDS: Final = 0.2
#: how far back a seek is repeated until it lands on a keyframe before the start; the last is the beginning
BACK_SECONDS: Final = (0, 3, 12, 48, None)
#: sound and picture of one moment lie no further apart than this in a file; behind it nothing is waited for
INTERLEAVING_SECONDS: Final = 10


def main(arguments: list[str]) -> int:
    logging.getLogger("libav").setLevel(logging.CRITICAL)
    try:
        result = cut(parse_order(arguments[0]))
    except Unfit as exc:
        result = SmartResult(unfit=str(exc))
    except (av.FFmpegError, OSError) as exc:
        sys.stderr.write(f"{exc.strerror or type(exc).__name__}\n")
        return 1
    sys.stdout.write(json.dumps(asdict(result)) + "\n")
    return 0


def cut(order: SmartOrder) -> SmartResult:
    with (
        av.open(
            order.input, options=seeking(order.protocols, order.formats), timeout=(OPEN_SECONDS, READ_SECONDS)
        ) as source,
        av.open(order.output, "w", format="mp4", options={"movflags": "+faststart"}) as output,
    ):
        video = source.streams[order.video_index]
        assert isinstance(video, VideoStream), "the probe has told which stream is the picture"
        reports = Reports()
        pictures = PictureTrack(video, order, output, reports.tell)
        audio = source.streams[order.audio_index] if order.audio_index is not None else None
        sound = sound_track(audio, order, output) if isinstance(audio, AudioStream) else None
        _cut_streams(source, pictures, sound, [video] if audio is None else [video, audio], reports)
        if sound is not None:
            sound.finish()
    return SmartResult(pictures.frames, pictures.frames_reencoded)


def _cut_streams(
    source: InputContainer, pictures: PictureTrack, sound: SoundTrack | None, streams: list[Any], reports: "Reports"
) -> None:
    timeline = pictures.timeline
    past = (timeline.past_pts * timeline.time_base) + INTERLEAVING_SECONDS
    is_sounding = sound is not None
    for packet in _from_keyframe(source, streams, timeline):
        reports.tell()
        if packet.dts is not None and packet.dts * packet.time_base > past:
            break
        if packet.stream_index == streams[0].index:
            pictures.add(packet)
        elif sound is not None and is_sounding:
            is_sounding = sound.add(packet)
        if pictures.is_done and not is_sounding:
            break
    pictures.finish()


def _from_keyframe(source: InputContainer, streams: list[Any], timeline: StreamTimeline) -> "Iterator[Packet[Any]]":
    """Packets from the last keyframe before the start on; a seek alone may land behind it."""
    for back in BACK_SECONDS:
        _seek(source, streams[0], timeline, back)
        packets = (packet for packet in source.demux(streams) if packet.size)
        before = list[Any]()
        for packet in packets:
            if packet.stream_index != streams[0].index:
                before.append(packet)
            elif packet.is_keyframe and packet.pts is not None:
                if packet.pts <= timeline.first_pts or back is None:
                    yield from chain(before, [packet], packets)
                    return
                break
    raise Unfit("it has no keyframe to start from")


def _seek(source: InputContainer, video: VideoStream, timeline: StreamTimeline, back: int | None) -> None:
    target = timeline.first_pts - round(Fraction(back or 0) / timeline.time_base)
    # the very beginning is decoded before it is shown
    earliest = (video.start_time or 0) - round(1 / timeline.time_base)
    try:
        source.seek(earliest if back is None else max(earliest, target), stream=video, backward=True)
    except av.FFmpegError as exc:
        # a playlist cannot be sought to before its first packet
        raise Unfit("it cannot be read again from its beginning") from exc


class Reports:
    """Says in ffmpeg's words how far the clip is; every report differs, because a standstill is a hang."""

    def __init__(self) -> None:
        self._told_at = 0.0
        self._microseconds = -1

    def tell(self, seconds: float = 0.0) -> None:
        if (now := time.monotonic()) - self._told_at < REPORT_SECONDS:
            return
        self._told_at = now
        self._microseconds = max(round(seconds * 1_000_000), self._microseconds + 1)
        sys.stdout.write(f"out_time_us={self._microseconds}\nprogress=continue\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
