"""`python -m worker.media.copy_child`: writes the packets of a range into an MP4 file as they are.

It starts on the keyframe at or before the start, and ends where pictures are complete: pictures are stored in another
order than they are shown, and who stops at a time leaves holes before it.
"""

import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import asdict
from fractions import Fraction
from itertools import chain
from math import ceil
from typing import Any, Final

import av
from av.container import InputContainer, OutputContainer
from av.packet import Packet

from worker.media.copying import Copied, CopyOrder, parse_copy_order
from worker.media.fences import seeking
from worker.media.smart.child import Reports
from worker.media.smart.plan import covering

OPEN_SECONDS: Final = 30.0
READ_SECONDS: Final = 30.0
#: how far back a seek is repeated until it lands on a keyframe before the start; the last is the beginning
BACK_SECONDS: Final = (0, 4, 16, 64, None)
#: people write milliseconds
MARGIN: Final = Fraction(1, 1000)
#: no picture is shown later than this after it is stored
REORDERING: Final = Fraction(1)
#: Apple players know HEVC in MP4 only by this name
TAGS: Final = {"hevc": "hvc1"}


class Unfit(Exception):
    """It cannot be copied; the message says why, for people."""


def main(arguments: list[str]) -> int:
    logging.getLogger("libav").setLevel(logging.CRITICAL)
    try:
        result = copy(parse_copy_order(arguments[0]))
    except Unfit as exc:
        result = Copied(unfit=str(exc))
    except (av.FFmpegError, OSError) as exc:
        sys.stderr.write(f"{exc.strerror or type(exc).__name__}\n")
        return 1
    sys.stdout.write(json.dumps(asdict(result)) + "\n")
    return 0


def copy(order: CopyOrder) -> Copied:
    with (
        av.open(
            order.input, options=seeking(order.protocols, order.formats), timeout=(OPEN_SECONDS, READ_SECONDS)
        ) as source,
        av.open(order.output, "w", format="mp4", options={"movflags": "+faststart"}) as output,
    ):
        return _Copy(source, output, order).run()


class _Copy:
    """Times are seconds on the container's own clock, as fractions."""

    def __init__(self, source: InputContainer, output: OutputContainer, order: CopyOrder) -> None:
        self._zero = _fraction(order.source_start_seconds)
        self._start = self._zero + _fraction(order.start_seconds)
        self._end = self._zero + _fraction(order.end_seconds)
        self._source, self._order = source, order
        self._has_read = False
        wanted = [index for index in (order.video_index, order.audio_index) if index is not None]
        self._streams = [source.streams[index] for index in wanted]
        self._lead, *self._others = (_Track(output, stream) for stream in self._streams)
        _start_file(output, self._streams)

    def run(self) -> Copied:
        keyframe, packets = self._from_keyframe()
        begin = _shown(keyframe)
        # pictures that start late have nothing before them that could be hidden
        zero = self._start if self._order.is_lead_hidden else min(begin, self._start)
        tracks = {track.index: track for track in (self._lead, *self._others)}
        reports = Reports()
        for packet in packets:
            if _stored(packet) >= self._end + REORDERING:
                break
            reports.tell(float(max(Fraction(0), _stored(packet) - zero)))
            # what is shown before the keyframe that it follows was predicted from pictures that are not here
            if _shown(packet) >= (begin if packet.stream_index == self._lead.index else min(begin, zero)):
                tracks[packet.stream_index].take(packet, until=self._end - MARGIN, zero=zero)
        end = self._lead.finish(self._end - MARGIN, zero=zero)
        for track in self._others:
            track.finish_at(end, zero=zero)
        return Copied(
            start_seconds=float(zero - self._zero),
            end_seconds=float(end - self._zero),
            frames=self._lead.packets if self._order.video_index is not None else 0,
        )

    def _from_keyframe(self) -> "tuple[Packet[Any], Iterator[Packet[Any]]]":
        """The last keyframe at or before the start, and everything from it on; a seek alone may miss it."""
        first = self._streams[0]
        limit = max(self._start, (first.start_time or 0) * (first.time_base or Fraction(1))) + MARGIN
        for back in BACK_SECONDS:
            packets = self._packets_from(back)
            keyframe, arrived = None, list[Any]()
            for packet in packets:
                if packet.stream_index == self._lead.index:
                    if _stored(packet) > limit:
                        arrived.append(packet)
                        break
                    if packet.is_keyframe and _shown(packet) <= limit:
                        # sound is stored before or behind the pictures it belongs to
                        keyframe, arrived = packet, [each for each in arrived if each.stream_index != self._lead.index]
                arrived.append(packet)
            if keyframe is not None:
                return keyframe, chain(arrived, packets)
        raise Unfit("it has no keyframe to start from")

    def _packets_from(self, back: int | None) -> "Iterator[Packet[Any]]":
        stream = self._streams[0]
        # the very beginning is decoded before it is shown
        base = stream.time_base or Fraction(1, 1000)
        earliest = (stream.start_time or 0) - round(1 / base)
        target = round((self._start + MARGIN - (back or 0)) / base)
        wanted = earliest if back is None else max(earliest, target)
        # who has read nothing yet stands at the beginning; a playlist cannot be sought to before its first packet
        if self._has_read or wanted > (stream.start_time or 0):
            try:
                self._source.seek(wanted, stream=stream, backward=True)
            except av.FFmpegError as exc:
                raise Unfit("it cannot be read again from its beginning") from exc
        self._has_read = True
        return (packet for packet in self._source.demux(self._streams) if packet.size and _is_timed(packet))


class _Track:
    """One track of the clip; packets keep their order and their distances."""

    def __init__(self, output: OutputContainer, stream: Any) -> None:
        self.index: int = stream.index
        self.packets = 0
        self._output = output
        self._track = _add_track(output, stream)
        self._held: list[Any] = []
        self._untimed: list[Any] = []
        self._last_dts: int | None = None
        self._end = Fraction(0)

    def take(self, packet: "Packet[Any]", *, until: Fraction, zero: Fraction) -> None:
        """Written, or from the first one behind the end on held until it is known where the clip ends."""
        if self._held or _shown(packet) >= until:
            self._held.append(packet)
        else:
            self._write(packet, zero)

    def finish(self, until: Fraction, *, zero: Fraction) -> Fraction:
        """Write what is needed to have every picture before `until` and no hole; returns when the clip is over."""
        times = [_shown(packet) for packet in self._held]
        is_complete = all(time >= until for time in times)
        ticks = [int(time / self._held[0].time_base) for time in times]
        count = 0 if is_complete else covering(ticks, ceil(until / self._held[0].time_base))
        for packet in self._held[:count]:
            self._write(packet, zero)
        if not self.packets:
            raise Unfit("it has nothing to see or hear in the range")
        self._put_untimed(before=None)
        return min(times[count:], default=self._end)

    def finish_at(self, end: Fraction, *, zero: Fraction) -> None:
        for packet in self._held:
            if _shown(packet) < end:
                self._write(packet, zero)
        self._put_untimed(before=None)

    def _write(self, packet: "Packet[Any]", zero: Fraction) -> None:
        base = packet.time_base
        self._end = max(self._end, _shown(packet) + (packet.duration or 0) * base)
        self.packets += 1
        shift = round(zero / base)
        dts = None if packet.dts is None else packet.dts - shift
        packet.pts = int(_shown(packet) / base) - shift
        if dts is None and self._last_dts is None:
            # some containers tell it only from the first picture on that is shown when it is stored
            self._untimed.append(packet)
            return
        self._put_untimed(before=dts)
        self._put(packet, dts)

    def _put_untimed(self, *, before: int | None) -> None:
        """In equal steps up to the first that tells."""
        waiting, self._untimed = self._untimed, []
        for number, packet in enumerate(waiting):
            step = packet.duration or 1
            past = before if before is not None else min(each.pts for each in waiting) + step
            self._put(packet, past - (len(waiting) - number) * step)

    def _put(self, packet: "Packet[Any]", dts: int | None) -> None:
        if self._last_dts is not None and (dts is None or dts <= self._last_dts):
            dts = self._last_dts + 1
        assert packet.pts is not None, "it was set before"
        assert dts is not None, "the first one tells, or was given one"
        if dts > packet.pts:
            raise Unfit("its pictures are stored in no order that can be kept")
        packet.dts = self._last_dts = dts
        packet.stream = self._track
        self._output.mux(packet)


def _add_track(output: OutputContainer, stream: Any) -> Any:
    codec = stream.codec_context.name
    try:
        track = output.add_stream_from_template(stream)
    except (ValueError, av.FFmpegError) as exc:
        raise Unfit(f"MP4 does not hold the codec {codec}") from exc
    if codec in TAGS:
        track.codec_context.codec_tag = TAGS[codec]
    return track


def _start_file(output: OutputContainer, streams: list[Any]) -> None:
    try:
        output.start_encoding()
    except (ValueError, av.FFmpegError) as exc:
        codecs = " with ".join(stream.codec_context.name for stream in streams)
        raise Unfit(f"MP4 does not hold the codec {codecs}") from exc


def _is_timed(packet: "Packet[Any]") -> bool:
    return packet.pts is not None or packet.dts is not None


def _shown(packet: "Packet[Any]") -> Fraction:
    time = packet.pts if packet.pts is not None else packet.dts
    assert time is not None, "packets without any time are left out"
    return time * packet.time_base


def _stored(packet: "Packet[Any]") -> Fraction:
    time = packet.dts if packet.dts is not None else packet.pts
    assert time is not None, "packets without any time are left out"
    return time * packet.time_base


def _fraction(seconds: float) -> Fraction:
    return Fraction(round(seconds * 1_000_000), 1_000_000)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
