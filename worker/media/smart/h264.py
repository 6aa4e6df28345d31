"""H.264: what its packets are, and x264 told to fit beside them."""

from typing import Final

from av.video.codeccontext import VideoCodecContext

from worker.media.smart.bits import Bits
from worker.media.smart.coding import Copier, Described, PlainCopier, edge_preset
from worker.media.smart.h264_sets import PPS, SPS, ParameterSets, SequenceSet, read_pps, read_record, read_sps
from worker.media.smart.h264_slices import SliceReader
from worker.media.smart.h264_start import IDR_SLICE, SLICE, RenumberingCopier
from worker.media.smart.order import SmartOrder, Unfit
from worker.media.smart.units import LENGTH_BYTES, by_start_code, joined, messages, trimmed, units_of

#: what x264 can be told to stay within, by the source's profile
PROFILES: Final = {66: "baseline", 77: "main", 100: "high", 110: "high10", 122: "high422"}
#: what x264 writes and players tell apart
BIT_DEPTHS: Final = frozenset({(8, 8), (10, 10)})
#: 4:2:0 and 4:2:2
CHROMAS: Final = frozenset({1, 2})
#: x264 reorders no deeper than its pyramid
MAX_REORDER_FRAMES: Final = 2

SEI: Final = 6
RECOVERY_POINT: Final = 6
DELIMITER: Final = 9
_PARTITIONS: Final = frozenset({2, 3, 4})
#: what the file tells once
_REPEATED: Final = frozenset({SPS, PPS, DELIMITER})


class H264:
    encoder = "libx264"
    tag: str | None = None

    def __init__(self, source: VideoCodecContext, order: SmartOrder) -> None:
        self._source_length_bytes, self._sets = _read_sets(bytes(source.extradata or b""))
        self._sps = sps = _fitting(read_sps(self._sets.sps[0]))
        self._slices = SliceReader(sps, {pps.set_id: pps for pps in map(read_pps, self._sets.pps)})
        depth = source.reorder_depth if sps.reorder_frames is None else sps.reorder_frames
        if depth > MAX_REORDER_FRAMES:
            raise Unfit(f"it reorders {depth} frames, more than can be matched")
        self.reorder_frames = depth
        self.options = _x264_options(order, self._sets, sps, depth)

    @property
    def _length_bytes(self) -> int:
        return self._source_length_bytes or LENGTH_BYTES

    def describe(self, packet: bytes) -> Described:
        units = units_of(packet, self._source_length_bytes)
        kinds = {kind_of(unit) for unit in units}
        if kinds & _PARTITIONS or not kinds & {SLICE, IDR_SLICE}:
            raise Unfit("it has packets that are no whole pictures")
        for unit in units:
            # sets that change on the way would have to change in the clip too
            if kind_of(unit) in {SPS, PPS} and not self._sets.holds(trimmed(unit)):
                raise Unfit("its parameter sets change on the way")
        is_idr = IDR_SLICE in kinds
        is_open = not is_idr and any(_is_recovery_point(unit) for unit in units if kind_of(unit) == SEI)
        is_plain = self._source_length_bytes and not kinds & _REPEATED
        return Described(
            is_start=is_idr or is_open,
            is_open=is_open,
            is_reference=any(kind_of(unit) in {SLICE, IDR_SLICE} and unit[0] & 0x60 for unit in units),
            rewritten=None if is_plain else self._packed(units),
        )

    def copier(self, start: bytes) -> Copier:
        if any(kind_of(unit) == IDR_SLICE for unit in units_of(start, self._length_bytes)):
            return PlainCopier()
        return RenumberingCopier(self._sps, self._slices, self._length_bytes)

    def edge(self, packet: bytes) -> bytes:
        return self._packed([unit for unit in by_start_code(packet) if kind_of(unit) != SEI])

    def record(self, edge_extradata: bytes) -> bytes:
        edge = ParameterSets.among(by_start_code(edge_extradata))
        room = read_sps(edge.sps[0]).reference_frames
        if self.reorder_frames and room != self._sps.reference_frames:
            raise Unfit(f"it has room for another number of reference frames than {room}")
        return self._sets.joined(edge).record(self._length_bytes)

    def _packed(self, units: list[bytes]) -> bytes:
        return joined((unit for unit in units if kind_of(unit) not in _REPEATED), self._length_bytes)


def kind_of(unit: bytes) -> int:
    return unit[0] & 31


def _is_recovery_point(unit: bytes) -> bool:
    """Frames from here on are right at once, and exactly, if decoding starts here."""
    for kind, message in messages(unit[1:]):
        bits = Bits(message)
        if kind == RECOVERY_POINT and not bits.unsigned() and bits.take(1) and not bits.take(1):
            return True
    return False


def _read_sets(extradata: bytes) -> tuple[int, ParameterSets]:
    if len(extradata) > 6 and extradata[0] == 1:
        length_bytes, sets = read_record(extradata)
    else:
        length_bytes, sets = 0, ParameterSets.among(by_start_code(extradata))
    if len(sets.sps) != 1 or not sets.pps:
        raise Unfit("it has not exactly one sequence parameter set")
    return length_bytes, ParameterSets(tuple(map(trimmed, sets.sps)), tuple(map(trimmed, sets.pps)))


def _fitting(sps: SequenceSet) -> SequenceSet:
    if sps.profile not in PROFILES or sps.is_intra_only:
        raise Unfit(f"it has h264 profile {sps.profile}{' intra' if sps.is_intra_only else ''}")
    if sps.chroma not in CHROMAS or sps.bit_depths not in BIT_DEPTHS:
        raise Unfit("its pictures are neither 4:2:0 nor 4:2:2 with 8 or 10 bits")
    if not sps.is_progressive:
        raise Unfit("it is interlaced")
    return sps


def _pyramid(sps: SequenceSet, depth: int) -> str:
    """What x264 calls a normal pyramid takes room for four references."""
    if depth < MAX_REORDER_FRAMES:
        return "none"
    return "normal" if sps.reference_frames > 3 else "strict"


def _x264_options(order: SmartOrder, sets: ParameterSets, sps: SequenceSet, depth: int) -> dict[str, str]:
    parameters = {
        "sps-id": sets.free_id(),
        "keyint": "infinite",
        "scenecut": 0,
        # a decoder may drop frames it still holds when the depth changes where the edge meets the copy
        "bframes": 3 if depth else 0,
        "b-pyramid": _pyramid(sps, depth),
    }
    if sps.reference_frames:
        # a decoder may also drop them when the room for references changes
        parameters |= {"ref": 1, "dpb-size": sps.reference_frames}
    return {
        "preset": edge_preset(order.preset),
        "crf": str(order.crf),
        "profile": PROFILES[sps.profile],
        "threads": str(order.threads),
        "x264-params": ":".join(f"{name}={value}" for name, value in parameters.items()),
    }
