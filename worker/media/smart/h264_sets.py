"""H.264 parameter sets: read far enough to tell what a decoder will do with them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from worker.media.smart.bits import Bits, plain
from worker.media.smart.order import Unfit

SPS: Final = 7
PPS: Final = 8
#: profiles whose sets tell chroma format and bit depth; all others have 4:2:0 with 8 bits
_HIGH_PROFILES: Final = frozenset({100, 110, 122, 244, 44, 83, 86, 118, 128})
_EXTENDED_SAR: Final = 255
_MAX_ID: Final = 31


@dataclass(frozen=True, slots=True)
class SequenceSet:
    """What of a sequence parameter set decides whether two of them can follow each other in one file."""

    raw: bytes
    set_id: int
    #: 1 is 4:2:0, 2 is 4:2:2
    chroma: int
    #: of brightness and colour
    bit_depths: tuple[int, int]
    is_progressive: bool
    frame_number_bits: int
    #: how pictures tell when they are shown, and with how many bits if they tell it themselves
    order_kind: int
    order_bits: int
    reference_frames: int
    #: frames a decoder holds back to show them in order; None when the set does not tell
    reorder_frames: int | None
    decoder_frames: int | None

    @property
    def profile(self) -> int:
        return self.raw[1]

    @property
    def is_intra_only(self) -> bool:
        return self.profile in _HIGH_PROFILES - {100} and bool(self.raw[2] & 0x10)


@dataclass(frozen=True, slots=True)
class PictureSet:
    """What of a picture parameter set decides how slices are read."""

    set_id: int
    is_arithmetic: bool
    has_bottom_order: bool
    reference_counts: tuple[int, int]
    #: for slices predicted from one side, and from both
    has_weights: tuple[bool, bool]
    has_deblocking: bool
    has_redundant: bool

    def is_weighted(self, slice_kind: int) -> bool:
        return slice_kind < len(self.has_weights) and self.has_weights[slice_kind]


@dataclass(frozen=True, slots=True)
class ParameterSets:
    sps: tuple[bytes, ...]
    pps: tuple[bytes, ...]

    @classmethod
    def among(cls, units: Iterable[bytes]) -> "ParameterSets":
        found = [bytes(unit) for unit in units if unit]
        return cls(
            tuple(dict.fromkeys(unit for unit in found if unit[0] & 31 == SPS)),
            tuple(dict.fromkeys(unit for unit in found if unit[0] & 31 == PPS)),
        )

    def holds(self, unit: bytes) -> bool:
        return unit in self.sps or unit in self.pps

    def free_id(self) -> int:
        """An id that neither kind of set uses: x264 numbers both alike."""
        used = {read_sps(unit).set_id for unit in self.sps} | {Bits(plain(unit[1:])).unsigned() for unit in self.pps}
        free = next((number for number in range(1, _MAX_ID + 1) if number not in used), None)
        if free is None:
            raise Unfit("every parameter set id is taken")
        return free

    def joined(self, other: "ParameterSets") -> "ParameterSets":
        return ParameterSets(self.sps + other.sps, self.pps + other.pps)

    def record(self, length_bytes: int) -> bytes:
        """The decoder configuration that an MP4 file carries (avcC)."""
        first = self.sps[0]
        level = max(unit[3] for unit in self.sps)
        parts = [bytes([1, first[1], first[2], level, 0xFC | (length_bytes - 1), 0xE0 | len(self.sps)])]
        parts += [len(unit).to_bytes(2, "big") + unit for unit in self.sps]
        parts.append(bytes([len(self.pps)]))
        parts += [len(unit).to_bytes(2, "big") + unit for unit in self.pps]
        if first[1] in _HIGH_PROFILES:
            told = read_sps(first)
            luma, chroma = told.bit_depths
            # no extensions: nothing that needs one gets this far
            parts.append(bytes([0xFC | told.chroma, 0xF8 | (luma - 8), 0xF8 | (chroma - 8), 0]))
        return b"".join(parts)


def read_record(record: bytes) -> tuple[int, ParameterSets]:
    """Bytes per unit length and the sets of an avcC record."""
    units, at = list[bytes](), 5
    for mask in (0x1F, 0xFF):
        count, at = record[at] & mask, at + 1
        for _ in range(count):
            size = int.from_bytes(record[at : at + 2], "big")
            units.append(record[at + 2 : at + 2 + size])
            at += 2 + size
    return (record[4] & 3) + 1, ParameterSets.among(units)


def read_sps(raw: bytes) -> SequenceSet:
    try:
        return _read_sps(raw)
    except IndexError as exc:
        raise Unfit("its sequence parameter set is damaged") from exc


def read_pps(raw: bytes) -> PictureSet:
    bits = Bits(plain(raw[1:]))
    try:
        set_id = bits.unsigned()
        bits.unsigned()
        is_arithmetic, has_bottom_order = bool(bits.take(1)), bool(bits.take(1))
        if bits.unsigned():
            raise Unfit("it has groups of slices")
        counts = bits.unsigned() + 1, bits.unsigned() + 1
        has_weights = bool(bits.take(1)), bits.take(2) == 1
        for _ in range(3):
            bits.signed()  # quantisers
        has_deblocking = bool(bits.take(1))
        bits.take(1)
        return PictureSet(
            set_id, is_arithmetic, has_bottom_order, counts, has_weights, has_deblocking, bool(bits.take(1))
        )
    except IndexError as exc:
        raise Unfit("its picture parameter set is damaged") from exc


def _read_sps(raw: bytes) -> SequenceSet:
    profile, bits = raw[1], Bits(plain(raw[4:]))
    set_id = bits.unsigned()
    chroma, depths = _read_high_fields(bits) if profile in _HIGH_PROFILES else (1, (8, 8))
    frame_number_bits = bits.unsigned() + 4
    order_kind, order_bits = _read_order_count(bits)
    reference_frames = bits.unsigned()
    bits.take(1)
    bits.unsigned()  # width
    bits.unsigned()  # height
    is_progressive = bool(bits.take(1))
    bits.take(1 if is_progressive else 2)
    if bits.take(1):
        for _ in range(4):
            bits.unsigned()  # cropping
    reorder, buffered = _read_usability(bits) if bits.take(1) else (None, None)
    return SequenceSet(
        raw=raw,
        set_id=set_id,
        chroma=chroma,
        bit_depths=depths,
        is_progressive=is_progressive,
        frame_number_bits=frame_number_bits,
        order_kind=order_kind,
        order_bits=order_bits,
        reference_frames=reference_frames,
        reorder_frames=reorder,
        decoder_frames=buffered,
    )


def _read_high_fields(bits: Bits) -> tuple[int, tuple[int, int]]:
    chroma = bits.unsigned()
    if chroma == 3:
        bits.take(1)
    depths = bits.unsigned() + 8, bits.unsigned() + 8
    bits.take(1)
    if bits.take(1):
        for number in range(12 if chroma == 3 else 8):
            if bits.take(1):
                _skip_scaling_list(bits, 16 if number < 6 else 64)
    return chroma, depths


def _skip_scaling_list(bits: Bits, size: int) -> None:
    last = following = 8
    for _ in range(size):
        if following:
            following = (last + bits.signed()) % 256
        last = following or last


def _read_order_count(bits: Bits) -> tuple[int, int]:
    kind = bits.unsigned()
    if kind == 0:
        return kind, bits.unsigned() + 4
    if kind == 1:
        bits.take(1)
        bits.signed()
        bits.signed()
        for _ in range(bits.unsigned()):
            bits.signed()
    return kind, 0


def _read_usability(bits: Bits) -> tuple[int | None, int | None]:
    """The two numbers near the end of the usability information."""
    if bits.take(1) and bits.take(8) == _EXTENDED_SAR:
        bits.take(32)
    if bits.take(1):
        bits.take(1)  # overscan
    if bits.take(1):
        bits.take(4)
        if bits.take(1):
            bits.take(24)  # colours
    if bits.take(1):
        bits.unsigned()  # chroma location
        bits.unsigned()
    if bits.take(1):
        bits.take(65)  # timing
    has_buffering = [_skip_buffering(bits), _skip_buffering(bits)]
    if any(has_buffering):
        bits.take(1)
    bits.take(1)
    if not bits.take(1):
        return None, None
    bits.take(1)
    for _ in range(4):
        bits.unsigned()
    return bits.unsigned(), bits.unsigned()


def _skip_buffering(bits: Bits) -> bool:
    if not bits.take(1):
        return False
    count = bits.unsigned() + 1
    bits.take(8)
    for _ in range(count):
        bits.unsigned()
        bits.unsigned()
        bits.take(1)
    bits.take(20)
    return True
