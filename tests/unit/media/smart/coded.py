"""Tiny streams by the real encoders, in process."""

from fractions import Fraction

import av
import numpy as np
from av.video.codeccontext import VideoCodecContext


def encoded(name: str, options: dict[str, str], *, frames: int = 30) -> tuple[VideoCodecContext, list[bytes]]:
    """The encoder, which tells its sets, and its packets."""
    encoder = av.CodecContext.create(name, "w")
    assert isinstance(encoder, VideoCodecContext)
    encoder.width, encoder.height, encoder.pix_fmt = 96, 64, "yuv420p"
    encoder.time_base, encoder.framerate = Fraction(1, 25), Fraction(25)
    encoder.options = {"flags": "+global_header", **options}
    encoder.open()
    packets = list[bytes]()
    for number in range(frames):
        rows = np.add.outer(np.arange(96), np.arange(96) * number % 251).astype(np.uint8)
        frame = av.VideoFrame.from_ndarray(rows, format="yuv420p")
        frame.pts = number
        packets += map(bytes, encoder.encode(frame))
    return encoder, [*packets, *map(bytes, encoder.encode(None))]
