"""VP9: what its packets are, and libvpx told to fit beside them. A keyframe forgets everything before it."""

from typing import Final

from av.video.codeccontext import VideoCodecContext

from worker.media.smart.bits import Bits
from worker.media.smart.coding import Copier, Described, PlainCopier
from worker.media.smart.order import SmartOrder, Unfit

FORMAT: Final = "yuv420p"
#: libvpx's scale of quality goes further than x264's
CRF_MORE: Final = 6
#: libvpx calls its presets numbers
SPEEDS: Final = {"ultrafast": 8, "superfast": 7, "veryfast": 6, "faster": 5, "fast": 4, "medium": 3}
_HEADER_BYTES: Final = 16
_SYNC: Final = 0x498342
_RGB: Final = 7


class Vp9:
    encoder = "libvpx-vp9"
    tag: str | None = None
    #: packets lie in the order in which they are shown; frames that are only referred to are inside of them
    reorder_frames = 0

    def __init__(self, source: VideoCodecContext, order: SmartOrder) -> None:
        if source.pix_fmt != FORMAT:
            raise Unfit(f"its pictures are {source.pix_fmt}, which is not encoded as vp9 here")
        self._size = source.width, source.height
        self.options = {
            "deadline": "good",
            "cpu-used": str(SPEEDS.get(order.preset, 2)),
            "crf": str(order.crf + CRF_MORE),
            "b": "0",
            "auto-alt-ref": "0",
            "lag-in-frames": "0",
            "row-mt": "1",
            "threads": str(order.threads),
        }

    def describe(self, packet: bytes) -> Described:
        try:
            headers = [_Header(frame) for frame in _frames(packet)]
        except IndexError as exc:
            raise Unfit("it has a damaged picture") from exc
        if [header.is_shown for header in headers] != [False] * (len(headers) - 1) + [True]:
            raise Unfit("it has packets that are not one picture each")
        if any(header.size not in {None, self._size} for header in headers):
            raise Unfit("its pictures change their size")
        return Described(is_start=headers[0].is_keyframe, is_open=False, is_reference=True)

    def copier(self, start: bytes) -> Copier:  # noqa: ARG002  all starts are alike
        return PlainCopier()

    def edge(self, packet: bytes) -> bytes:
        return packet

    def record(self, edge_extradata: bytes) -> bytes:  # noqa: ARG002  no decoder is told anything first
        return b""


class _Header:
    """The uncompressed beginning of a frame."""

    def __init__(self, frame: bytes) -> None:
        bits = Bits(frame[:_HEADER_BYTES])
        if bits.take(2) != 2:
            raise IndexError("no frame")
        if bits.take(1) | bits.take(1) << 1:
            raise Unfit("it has a vp9 profile other than 0")
        is_existing = bool(bits.take(1))
        self.is_keyframe = not is_existing and not bits.take(1)
        self.is_shown = is_existing or bool(bits.take(1))
        self.size: tuple[int, int] | None = None
        if self.is_keyframe:
            self.size = _size(bits)


def _size(bits: Bits) -> tuple[int, int]:
    bits.take(1)
    if bits.take(24) != _SYNC or bits.take(3) == _RGB:
        raise IndexError("no keyframe")
    bits.take(1)
    return bits.take(16) + 1, bits.take(16) + 1


def _frames(packet: bytes) -> list[bytes]:
    """A packet may hold several frames, with an index behind them."""
    last = packet[-1]
    count, width = (last & 7) + 1, (last >> 3 & 3) + 1
    index = packet[-(2 + count * width) :]
    if last & 0xE0 != 0xC0 or len(index) != 2 + count * width or index[0] != last:
        return [packet]
    frames, at = list[bytes](), 0
    for number in range(count):
        size = int.from_bytes(index[1 + number * width : 1 + (number + 1) * width], "little")
        frames.append(packet[at : at + size])
        at += size
    return frames
