"""HEVC: what its packets are, and x265 told to fit beside them."""

from collections.abc import Iterable
from typing import Final

from av.video.codeccontext import VideoCodecContext

from worker.media.smart.bits import escaped, packed, plain, unsigned_code
from worker.media.smart.coding import Copier, Described, edge_preset
from worker.media.smart.hevc_sets import (
    HEADER_BYTES,
    KINDS,
    ParameterSets,
    SequenceSet,
    kind_of,
    read_record,
    read_sps,
)
from worker.media.smart.order import SmartOrder, Unfit
from worker.media.smart.units import LENGTH_BYTES, by_start_code, joined, messages, trimmed, units_of

#: Main and Main 10; what x265 is told by bit depth
PROFILES: Final = frozenset({1, 2})
X265_PROFILES: Final = {(8, 8): "main", (10, 10): "main10"}

_PICTURES: Final = range(32)
#: pictures that decoding can start at: broken links 16 to 18, IDR 19 and 20, clean random access 21
_STARTS: Final = range(16, 24)
_BROKEN_LINK: Final = 18
_IDR_WITHOUT_LEADING: Final = 20
_CLEAN_RANDOM_ACCESS: Final = 21
_DELIMITER: Final = 35
_PREFIX_SEI: Final = 39
_SUFFIX_SEI: Final = 40
#: what the file tells once
_REPEATED: Final = frozenset({*KINDS, _DELIMITER})
#: mastering display, light level, alternative transfer: said once, true of every frame
_LASTING: Final = frozenset({137, 144, 147})


class Hevc:
    encoder = "libx265"
    #: Apple players know HEVC in MP4 only by this name, which means that no packet repeats a set
    tag: str | None = "hvc1"

    def __init__(self, source: VideoCodecContext, order: SmartOrder) -> None:
        self._source_length_bytes, units = _read_sets(bytes(source.extradata or b""))
        self._sets = ParameterSets.among(units)
        if len(self._sets.sps) != 1 or not self._sets.pps or not self._sets.vps:
            raise Unfit("it has not exactly one sequence parameter set")
        sps = _fitting(read_sps(self._sets.sps[0]))
        self._ids = self._sets.free_ids()
        self._top_layer = sps.temporal_layers - 1
        self._lasting = _lasting_messages(units)
        self.reorder_frames = sps.reorder_frames
        self.options = _x265_options(order, sps)

    @property
    def _length_bytes(self) -> int:
        return self._source_length_bytes or LENGTH_BYTES

    def describe(self, packet: bytes) -> Described:
        units = units_of(packet, self._source_length_bytes)
        if any(len(unit) <= HEADER_BYTES for unit in units if kind_of(unit) in _PICTURES):
            raise Unfit("it has a damaged picture")
        self._refuse_unknown(units)
        kinds = {kind_of(unit) for unit in units}
        pictures = kinds & set(_PICTURES)
        if len(pictures) != 1:
            raise Unfit("it has packets that are no whole pictures")
        picture = pictures.pop()
        if is_start := picture in _STARTS:
            self._lasting = _lasting_messages(units) or self._lasting
        is_plain = self._source_length_bytes and not kinds & _REPEATED
        return Described(
            is_start=is_start,
            is_open=is_start and picture != _IDR_WITHOUT_LEADING,
            is_reference=any(self._is_reference(unit) for unit in units),
            rewritten=None if is_plain else self._packed(units),
        )

    def copier(self, start: bytes) -> Copier:  # noqa: ARG002  the first packet tells
        return CutOffCopier(self._length_bytes)

    def edge(self, packet: bytes) -> bytes:
        units = [unit for unit in by_start_code(packet) if kind_of(unit) not in {_PREFIX_SEI, _SUFFIX_SEI}]
        numbered = [self._numbered(unit) if kind_of(unit) in _PICTURES else unit for unit in units]
        is_start = any(kind_of(unit) in _STARTS for unit in units)
        return self._packed([*([self._lasting] if is_start and self._lasting else []), *numbered])

    def record(self, edge_extradata: bytes) -> bytes:
        edge = ParameterSets.among(by_start_code(edge_extradata)).numbered(self._ids)
        return self._sets.joined(edge).record(self._length_bytes, self._lasting)

    def _packed(self, units: Iterable[bytes]) -> bytes:
        return joined((unit for unit in units if kind_of(unit) not in _REPEATED), self._length_bytes)

    def _refuse_unknown(self, units: Iterable[bytes]) -> None:
        for unit in units:
            if kind_of(unit) > _SUFFIX_SEI or _layer_of(unit):
                raise Unfit("it has more than pictures in its picture track, as Dolby Vision and 3D films do")
            # sets that change on the way would have to change in the clip too
            if kind_of(unit) in KINDS and not self._sets.holds(trimmed(unit)):
                raise Unfit("its parameter sets change on the way")

    def _is_reference(self, unit: bytes) -> bool:
        kind = kind_of(unit)
        # even kinds are no references inside their own layer, which says all only of the top one
        is_disposable = kind < 16 and kind % 2 == 0 and (unit[1] & 7) - 1 == self._top_layer
        return kind in _PICTURES and not is_disposable

    def _numbered(self, unit: bytes) -> bytes:
        payload = plain(unit[HEADER_BYTES:])
        before = 2 if kind_of(unit) in _STARTS else 1
        first = f"{payload[0]:08b}"
        if first[before] != "1":
            raise Unfit("the encoder numbers its sets in an unknown way")
        grown = first[:before] + unsigned_code(self._ids.pps) + first[before + 1 :]
        return unit[:HEADER_BYTES] + escaped(packed(grown) + payload[1:])


class CutOffCopier:
    """A start in the middle becomes one behind a cut, which is what broken links are there for."""

    #: frames that are shown later never refer to what lies before
    is_settled = True

    def __init__(self, length_bytes: int) -> None:
        self._length_bytes = length_bytes
        self._is_first = True

    def copy(self, packet: bytes) -> bytes:
        if not self._is_first:
            return packet
        self._is_first = False
        return joined(map(_cut_off, units_of(packet, self._length_bytes)), self._length_bytes)


def _read_sets(extradata: bytes) -> tuple[int, list[bytes]]:
    if len(extradata) > 23 and extradata[0] == 1:
        length_bytes, units = read_record(extradata)
    else:
        length_bytes, units = 0, list(by_start_code(extradata))
    return length_bytes, [trimmed(unit) for unit in units]


def _fitting(sps: SequenceSet) -> SequenceSet:
    if sps.profile not in PROFILES:
        raise Unfit(f"it has hevc profile {sps.profile}")
    if sps.chroma != 1 or sps.bit_depths not in X265_PROFILES:
        raise Unfit("its pictures are not 4:2:0 with 8 or 10 bits")
    if sps.is_interlaced:
        raise Unfit("it is interlaced")
    return sps


def _layer_of(unit: bytes) -> int:
    return (unit[0] & 1) << 5 | unit[1] >> 3


def _cut_off(unit: bytes) -> bytes:
    """What was shown before it and is not in the clip, it now says, cannot be decoded."""
    if kind_of(unit) not in _STARTS:
        return unit
    if unit[HEADER_BYTES] & 0x40:
        raise Unfit("it forbids showing the frames before a keyframe")
    is_inside = kind_of(unit) == _CLEAN_RANDOM_ACCESS
    return bytes([_BROKEN_LINK << 1 | unit[0] & 0x81]) + unit[1:] if is_inside else unit


def _lasting_messages(units: Iterable[bytes]) -> bytes:
    """A unit with what is said at a keyframe about all that follow; empty when nothing is."""
    prefixes = [unit for unit in units if kind_of(unit) == _PREFIX_SEI]
    found = [each for unit in prefixes for each in messages(unit[HEADER_BYTES:]) if each[0] in _LASTING]
    said = b"".join(bytes([kind, len(message)]) + message for kind, message in found)
    return bytes([_PREFIX_SEI << 1, 1]) + escaped(said + b"\x80") if found else b""


def _x265_options(order: SmartOrder, sps: SequenceSet) -> dict[str, str]:
    parameters = {
        "keyint": -1,
        "scenecut": 0,
        "open-gop": 0,
        "bframes": 3 if sps.reorder_frames else 0,
        "b-pyramid": int(sps.reorder_frames > 1),
        "repeat-headers": 0,
        "info": 0,
        "high-tier": 0,
        "log-level": "none",
        "pools": order.threads,
        "frame-threads": 1,
    }
    return {
        "preset": edge_preset(order.preset),
        "crf": str(order.crf),
        "profile": X265_PROFILES[sps.bit_depths],
        "x265-params": ":".join(f"{name}={value}" for name, value in parameters.items()),
    }
