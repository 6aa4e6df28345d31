"""What reading media may touch, for ffmpeg and for PyAV alike; apart, because children import little."""

from collections.abc import Sequence
from typing import Any, Final

from worker.media.source import PLAIN_FORMATS

#: 8192 x 4320; a 390 KB file may claim a frame that takes gigabytes to decode
MAX_PIXELS: Final = 36_000_000
#: what browsers are sure to play
SAMPLE_RATES: Final = (44_100, 48_000)
#: what the kernel takes in before it is asked for is fetched in vain after a seek
RECEIVE_BUFFER_BYTES: Final = 65_536


def opening(protocols: Sequence[str], formats: Sequence[str]) -> dict[str, str]:
    """Options with which every input is opened."""
    options = {"protocol_whitelist": ",".join(protocols), "format_whitelist": ",".join(formats)}
    return options | {"recv_buffer_size": str(RECEIVE_BUFFER_BYTES)} if "tcp" in protocols else options


def seeking(protocols: Sequence[str], formats: Sequence[str]) -> dict[str, str]:
    """The same for PyAV, when not all of it will be read."""
    # without it a seek in a fragmented file reads every fragment before the target
    return {**opening(protocols, formats), "use_mfra_for": "pts"}


def guards(protocols: Sequence[str], formats: Sequence[str]) -> dict[str, Any]:
    """Options that stand before every input of ffmpeg."""
    return {**opening(protocols, formats), "max_pixels": MAX_PIXELS}


def own_file() -> dict[str, Any]:
    """The same for a file that we have written ourselves."""
    return guards(("file",), PLAIN_FORMATS)
