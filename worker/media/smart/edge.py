"""The few frames at a clip's edges, decoded and encoded so that they fit to the copied ones between them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any

import av
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import PictureType, VideoFrame

from worker.media.smart.coding import Coding
from worker.media.smart.order import Unfit


@dataclass(frozen=True, slots=True)
class Encoded:
    pts: int
    is_keyframe: bool
    content: bytes


class EdgeEncoder:
    """One run of frames, from a keyframe on, with parameter sets of its own."""

    def __init__(self, source: VideoCodecContext, coding: Coding, tick: Fraction, rate: Fraction) -> None:
        encoder = av.CodecContext.create(coding.encoder, "w")
        assert isinstance(encoder, VideoCodecContext)
        encoder.width, encoder.height, encoder.pix_fmt = source.width, source.height, source.pix_fmt
        encoder.time_base, encoder.framerate = tick, rate
        encoder.sample_aspect_ratio = source.sample_aspect_ratio or Fraction(0, 1)
        encoder.color_range, encoder.colorspace = source.color_range, source.colorspace
        encoder.color_primaries, encoder.color_trc = source.color_primaries, source.color_trc
        # slices for each thread would cost bits
        encoder.thread_type = "FRAME"
        encoder.options = {"flags": "+global_header", **coding.options}
        encoder.open()
        self._encoder = encoder
        self._coding = coding
        self.extradata = bytes(encoder.extradata or b"")

    def encode(self, frames: Iterable[VideoFrame]) -> Iterator[Encoded]:
        for frame in frames:
            # the encoder would take over the type that the source had chosen
            frame.pict_type = PictureType.NONE
            yield from self._packed(self._encoder.encode(frame))
        yield from self._packed(self._encoder.encode(None))

    def _packed(self, packets: "Sequence[Packet[Any]]") -> Iterator[Encoded]:
        for packet in packets:
            assert packet.pts is not None, "an encoder tells when a frame is shown"
            yield Encoded(packet.pts, packet.is_keyframe, self._coding.edge(bytes(packet)))


def decode(
    source: VideoCodecContext,
    packets: "Iterable[Packet[Any]]",
    wanted: Sequence[int],
    *,
    threads: int,
    extradata: bytes | None = None,
) -> Iterator[VideoFrame]:
    """The frames with the timestamps `wanted` (rising), or Unfit as soon as one of them is not whole."""
    decoder = av.CodecContext.create(source.name, "r")
    assert isinstance(decoder, VideoCodecContext)
    decoder.extradata = source.extradata if extradata is None else extradata
    decoder.thread_type, decoder.thread_count = "AUTO", threads
    missing = list(reversed(wanted))
    for packet in chain(packets, [None]):
        for frame in decoder.decode(packet):
            if not missing or frame.pts is None or frame.pts < missing[-1]:
                continue
            if frame.pts != missing.pop() or frame.is_corrupt:
                raise Unfit("it has frames at the clip's edge that do not decode")
            yield frame
    if missing:
        raise Unfit("it has frames at the clip's edge that do not decode")
