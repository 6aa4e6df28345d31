"""Reads back what tests need to know of a clip."""

import io

import av

from worker.media.frame_code import read_frame_number


def burnt_in_numbers(clip: bytes) -> list[int | None]:
    """The number in each frame, in the order a player shows them. Decoding errors raise."""
    with av.open(io.BytesIO(clip)) as container:
        container.streams.video[0].codec_context.options = {"err_detect": "explode"}
        return [read_frame_number(frame.to_ndarray(format="gray")) for frame in container.decode(video=0)]
