"""`python -m worker.media.join_child`: writes the packets of pages, one behind the other, into one MP4 file with sound.

Nothing is decoded or encoded, and no more than a few packets are held at a time.
"""

import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import asdict
from fractions import Fraction
from heapq import merge
from pathlib import Path
from typing import Any, Final

import av
from av.container import InputContainer, OutputContainer
from av.packet import Packet

from worker.media.join_order import Joined, JoinedPage, JoinOrder, parse_join_order
from worker.media.join_sets import PageSets, Unlike, read_sets, refuse_unlike
from worker.media.join_times import Disorder, TrackTimes, track_times
from worker.media.smart.child import Reports
from worker.media.smart.order import Unfit
from worker.media.timeline import TICKS_PER_SECOND

TICK: Final = Fraction(1, TICKS_PER_SECOND)
OWN_FILE: Final = {"protocol_whitelist": "file", "format_whitelist": "mov"}
#: in milliseconds, as it is by default, the file could not tell exactly when the first picture comes up
MP4: Final = {
    "movflags": "+faststart",
    "movie_timescale": str(TICKS_PER_SECOND),
    "video_track_timescale": str(TICKS_PER_SECOND),
}


def main(arguments: list[str]) -> int:
    logging.getLogger("libav").setLevel(logging.CRITICAL)
    try:
        result = _Join(parse_join_order(Path(arguments[0]).read_text())).run()
    except (Disorder, Unfit, Unlike) as exc:
        result = Joined(unfit=str(exc))
    except (av.FFmpegError, OSError) as exc:
        sys.stderr.write(f"{exc.strerror or type(exc).__name__}\n")
        return 1
    sys.stdout.write(json.dumps(asdict(result)) + "\n")
    return 0


class _Join:
    def __init__(self, order: JoinOrder) -> None:
        self._order = order
        self._reports = Reports()
        self._sets_told = 0

    def run(self) -> Joined:
        sets = [_sets_of(page) for page in self._order.pages]
        refuse_unlike(sets)
        is_mixed = any(each != sets[0] for each in sets)
        times = self._times()
        with av.open(self._order.output, "w", format="mp4", options=MP4) as output:
            tracks = [self._pictures(_picture_track(output, self._order.pages[0]), times, sets if is_mixed else [])]
            if self._order.sound is not None:
                tracks.append(self._sound(output, self._order.sound))
            for stored_seconds, packet in merge(*tracks, key=lambda each: each[0]):
                self._reports.tell(max(0.0, stored_seconds))
                output.mux(packet)
        return Joined(len(times.shown), times.shown[0], times.past, self._sets_told)

    def _times(self) -> TrackTimes:
        depths, ends = [0], [0]

        def shown(page: JoinedPage) -> list[int]:
            with _open(page.path) as container:
                stream = container.streams.video[0]
                depths.append(stream.codec_context.reorder_depth)
                ticks = [page.zero_ticks + _ticks(packet) for packet in self._told(container, stream)]
                # an MP4 file is as long as its pictures, without what may lie before the first one
                ends.append(min(ticks, default=0) + round((container.duration or 0) * TICKS_PER_SECOND / av.time_base))
                return ticks

        pages = list(map(shown, self._order.pages))
        return track_times(pages, depth=max(depths), past=min(ends[-1], self._order.clip_ticks))

    def _told(self, container: InputContainer, stream: Any) -> "Iterator[Packet[Any]]":
        for packet in container.demux(stream):
            if packet.size:
                self._reports.tell()
                yield packet

    def _pictures(self, track: Any, times: TrackTimes, sets: list[PageSets]) -> "Iterator[tuple[float, Packet[Any]]]":
        """`sets` are given where pages differ: then each keyframe has to bring those that it needs."""
        number = 0
        for at, page in enumerate(self._order.pages):
            with _open(page.path) as container:
                for original in container.demux(container.streams.video[0]):
                    if not original.size:
                        continue
                    packet: Packet[Any] = original
                    shown = page.zero_ticks + _ticks(original)
                    if sets and original.is_keyframe:
                        packet = Packet(sets[at].before(bytes(original)))
                        packet.is_keyframe = True
                        self._sets_told += 1
                    packet.stream, packet.time_base = track, TICK
                    packet.pts, packet.dts = shown, times.stored(number)
                    packet.duration = times.lasting(shown)
                    number += 1
                    yield float(packet.dts * TICK), packet

    def _sound(self, output: OutputContainer, path: str) -> "Iterator[tuple[float, Packet[Any]]]":
        container = _open(path)
        stream = container.streams.audio[0]
        track = output.add_stream_from_template(stream)

        def packets() -> "Iterator[tuple[float, Packet[Any]]]":
            with container:
                for packet in container.demux(stream):
                    if packet.size and packet.dts is not None:
                        stored = float(packet.dts * packet.time_base)
                        packet.stream = track
                        yield stored, packet

        return packets()


def _picture_track(output: OutputContainer, page: JoinedPage) -> Any:
    with _open(page.path) as container:
        track = output.add_stream_from_template(container.streams.video[0])
    track.time_base = TICK
    return track


def _sets_of(page: JoinedPage) -> PageSets:
    with _open(page.path) as container:
        codec = container.streams.video[0].codec_context
        return read_sets(bytes(codec.extradata or b""), codec.name, (codec.width, codec.height))


def _open(path: str) -> InputContainer:
    return av.open(f"file:{path}", options=OWN_FILE)


def _ticks(packet: "Packet[Any]") -> int:
    assert packet.pts is not None, "MP4 tells when each picture is shown"
    return round(packet.pts * packet.time_base / TICK)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
