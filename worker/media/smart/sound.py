"""The sound of a clip: copied packet by packet where MP4 players know its codec, else encoded in one piece."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, Protocol

import av
from av.audio.codeccontext import AudioCodecContext
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.filter import Graph
from av.packet import Packet

from worker.media.fences import SAMPLE_RATES
from worker.media.smart.order import SmartOrder, Unfit
from worker.media.smart.timeline import StreamTimeline, sound_timeline, source_start

#: an AAC packet needs only the one before it; MP3 needs more, and browsers do not play the others
COPIED_CODEC: Final = "aac"
BIT_RATE: Final = 160_000
#: sound before the start that the decoder needs to sound right
PREROLL_SECONDS: Final = 0.2


class SoundTrack(Protocol):
    def add(self, packet: "Packet[Any]") -> bool:
        """False when the packet lies behind the clip: nothing more is needed."""

    def finish(self) -> None: ...


def sound_track(stream: AudioStream, order: SmartOrder, output: OutputContainer) -> SoundTrack:
    timeline = sound_timeline(order, _time_base(stream))
    is_copied = stream.codec_context.name == COPIED_CODEC
    return CopiedSound(stream, timeline, output) if is_copied else EncodedSound(stream, order, timeline, output)


class CopiedSound:
    """Whole packets that begin inside the range: both ends are right to one packet, 21 ms."""

    def __init__(self, stream: AudioStream, timeline: StreamTimeline, output: OutputContainer) -> None:
        self._timeline = timeline
        self._output = output
        self._track = output.add_stream_from_template(stream)

    def add(self, packet: "Packet[Any]") -> bool:
        pts, timeline = _shown_at(packet), self._timeline
        if pts >= timeline.past_pts:
            return False
        if pts >= timeline.first_pts:
            packet.stream = self._track
            packet.time_base = timeline.tick
            packet.pts = packet.dts = timeline.in_clip(pts)
            # the last one rings on behind the end, but the track is no longer than the clip
            packet.duration = min((packet.duration or 0) * timeline.factor, timeline.past_in_clip - packet.pts)
            self._output.mux(packet)
        return True

    def finish(self) -> None:
        """Nothing is held back."""


class EncodedSound:
    """Decoded, cut to the sample, and encoded as AAC from end to end."""

    def __init__(
        self, stream: AudioStream, order: SmartOrder, timeline: StreamTimeline, output: OutputContainer
    ) -> None:
        self._decoder = stream.codec_context
        self._output = output
        self._preroll_pts = round(PREROLL_SECONDS / timeline.time_base)
        self._timeline = timeline
        rate, layout = _played_as(self._decoder)
        self._track = output.add_stream("aac", rate=rate, layout=layout, bit_rate=BIT_RATE)
        self._graph = _cutting_graph(stream, order, rate, layout)

    def add(self, packet: "Packet[Any]") -> bool:
        pts = _shown_at(packet)
        if pts >= self._timeline.past_pts + self._preroll_pts:
            return False
        if pts >= self._timeline.first_pts - self._preroll_pts:
            for frame in self._decoder.decode(packet):
                self._cut(frame)
        return True

    def finish(self) -> None:
        for frame in self._decoder.decode(None):
            self._cut(frame)
        self._cut(None)
        self._output.mux(self._track.encode(None))

    def _cut(self, frame: AudioFrame | None) -> None:
        with suppress(av.EOFError):
            # behind the end the filter takes nothing more
            self._graph.push(frame)
        for cut in _pulled(self._graph):
            self._output.mux(self._track.encode(cut))


def _cutting_graph(stream: AudioStream, order: SmartOrder, rate: int, layout: str) -> Graph:
    zero = float(source_start(order))
    start, end = f"{order.start_seconds + zero:.6f}", f"{order.end_seconds + zero:.6f}"
    graph = Graph()
    steps = [
        graph.add_abuffer(template=stream),
        graph.add("atrim", f"start={start}:end={end}"),
        graph.add("asetpts", f"PTS-{start}/TB"),
        # silence for what is missing at the start and in gaps; never stretches sound
        graph.add("aresample", "async=1:first_pts=0"),
        graph.add("aformat", f"sample_fmts=fltp:sample_rates={rate}:channel_layouts={layout}"),
        graph.add("abuffersink"),
    ]
    graph.link_nodes(*steps).configure()
    return graph


def _pulled(graph: Graph) -> Iterator[AudioFrame]:
    while True:
        try:
            frame = graph.pull()
        except (av.BlockingIOError, av.EOFError):
            return
        assert isinstance(frame, AudioFrame)
        yield frame


def _played_as(source: AudioCodecContext) -> tuple[int, str]:
    rate = source.sample_rate if source.sample_rate in SAMPLE_RATES else SAMPLE_RATES[-1]
    return rate, "mono" if source.channels == 1 else "stereo"


def _time_base(stream: AudioStream) -> Any:
    assert stream.time_base is not None, "a stream has a clock"
    return stream.time_base


def _shown_at(packet: "Packet[Any]") -> int:
    if packet.pts is None:
        raise Unfit("its sound has packets without timestamps")
    return packet.pts
