"""What a cut must know of a way to code pictures; each that can be cut is a file beside this one."""

from dataclasses import dataclass
from typing import Final, Protocol

#: of x264 and x265, the quickest first
PRESETS: Final = (
    "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow", "placebo",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Described:
    """One packet, seen from outside."""

    #: decoding can start here: pictures shown later refer to nothing before it
    is_start: bool
    #: pictures that are shown before it may follow it, and refer to what lies before it
    is_open: bool
    #: other pictures may be predicted from it
    is_reference: bool
    #: the packet as an MP4 file holds it; None when it is that already
    rewritten: bytes | None = None


class Copier(Protocol):
    """Gets packets in decode order, from where copying starts, and gives them as the clip needs them."""

    @property
    def is_settled(self) -> bool:
        """What lies before the first packet can no longer matter."""

    def copy(self, packet: bytes) -> bytes: ...


class Coding(Protocol):
    """How one source codes its pictures, and how frames are encoded that stand beside them."""

    #: libav's name of the encoder for the edges, and what it is told
    encoder: str
    options: dict[str, str]
    #: how many frames later than in decode order a frame may be shown
    reorder_frames: int
    #: the name players know the track by; None leaves it to the muxer
    tag: str | None

    def describe(self, packet: bytes) -> Described: ...

    def copier(self, start: bytes) -> Copier:
        """For a copy that starts with that packet."""

    def edge(self, packet: bytes) -> bytes:
        """What the encoder made, as it stands in the clip."""

    def record(self, edge_extradata: bytes) -> bytes:
        """What a decoder is told first: everything that the copied packets and the edges refer to."""


def edge_preset(preset: str) -> str:
    """One step quicker than whole clips are encoded: so few frames may take a few more bits."""
    return PRESETS[max(1, PRESETS.index(preset) - 1)] if preset in PRESETS else preset


class PlainCopier:
    """For pictures that stand alone already."""

    is_settled = True

    def copy(self, packet: bytes) -> bytes:
        return packet
