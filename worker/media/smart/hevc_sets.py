"""HEVC parameter sets: read as far as a cut must know them, and numbered anew, which x265 cannot be told to do."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from worker.media.smart.bits import Bits, ended, escaped, plain, unsigned_code
from worker.media.smart.order import Unfit

VPS: Final = 32
SPS: Final = 33
PPS: Final = 34
KINDS: Final = (VPS, SPS, PPS)
HEADER_BYTES: Final = 2
_RECORD_BYTES: Final = 23
#: x265 writes id 0, one bit; these ids have nine, so that a slice's header grows by a byte and nothing else shifts
_PPS_IDS: Final = range(15, 31)
_OTHER_IDS: Final = range(1, 16)
#: where a sequence set of one layer has its id: behind the other set's id, the profile and the level
_SPS_ID_AT: Final = 104


@dataclass(frozen=True, slots=True)
class SequenceSet:
    set_id: int
    profile: int
    is_interlaced: bool
    chroma: int
    bit_depths: tuple[int, int]
    #: frames a decoder holds back to show them in order
    reorder_frames: int
    temporal_layers: int
    #: as the decoder configuration repeats it: profile, tier and constraints, then the level
    profile_fields: bytes
    level: int
    is_nested: bool


@dataclass(frozen=True, slots=True)
class Ids:
    vps: int
    sps: int
    pps: int


@dataclass(frozen=True, slots=True)
class ParameterSets:
    vps: tuple[bytes, ...]
    sps: tuple[bytes, ...]
    pps: tuple[bytes, ...]

    @classmethod
    def among(cls, units: Iterable[bytes]) -> "ParameterSets":
        found = [bytes(unit) for unit in units if len(unit) > HEADER_BYTES]
        vps, sps, pps = (tuple(dict.fromkeys(unit for unit in found if kind_of(unit) == kind)) for kind in KINDS)
        return cls(vps, sps, pps)

    def holds(self, unit: bytes) -> bool:
        return unit in (*self.vps, *self.sps, *self.pps)

    def joined(self, other: "ParameterSets") -> "ParameterSets":
        return ParameterSets(self.vps + other.vps, self.sps + other.sps, self.pps + other.pps)

    def free_ids(self) -> Ids:
        used_pps = {Bits(plain(unit[HEADER_BYTES:])).unsigned() for unit in self.pps}
        return Ids(
            vps=_free(_OTHER_IDS, {unit[HEADER_BYTES] >> 4 for unit in self.vps}),
            sps=_free(_OTHER_IDS, {read_sps(unit).set_id for unit in self.sps}),
            pps=_free(_PPS_IDS, used_pps),
        )

    def numbered(self, ids: Ids) -> "ParameterSets":
        """The sets of one encoder, which have id 0 each, with other ids."""
        return ParameterSets(
            tuple(_renumbered(unit, f"{ids.vps:04b}", skip=4) for unit in self.vps),
            tuple(_renumbered_sps(unit, ids) for unit in self.sps),
            tuple(_renumbered(unit, unsigned_code(ids.pps) + unsigned_code(ids.sps), skip=2) for unit in self.pps),
        )

    def record(self, length_bytes: int, said: bytes) -> bytes:
        """The decoder configuration that an MP4 file carries (hvcC), for a track that repeats no set.

        `said` is a unit that tells what is true of every frame, if there is one.
        """
        told = read_sps(self.sps[0])
        luma, chroma = told.bit_depths
        level = max(read_sps(unit).level for unit in self.sps)
        layers = told.temporal_layers << 3 | told.is_nested << 2 | (length_bytes - 1)
        arrays = [*zip(KINDS, (self.vps, self.sps, self.pps), strict=True)]
        arrays += [(kind_of(said), (said,))] if said else []
        parts = [
            bytes([1]) + told.profile_fields + bytes([level]) + b"\xf0\x00\xfc",
            bytes([0xFC | told.chroma, 0xF8 | (luma - 8), 0xF8 | (chroma - 8), 0, 0, layers, len(arrays)]),
        ]
        for kind, units in arrays:
            parts.append(bytes([0x80 * (kind in KINDS) | kind]) + len(units).to_bytes(2, "big"))
            parts += [len(unit).to_bytes(2, "big") + unit for unit in units]
        return b"".join(parts)


def kind_of(unit: bytes) -> int:
    return unit[0] >> 1 & 63


def read_record(record: bytes) -> tuple[int, list[bytes]]:
    """Bytes per unit length and all units of an hvcC record."""
    units, at = list[bytes](), _RECORD_BYTES
    for _ in range(record[_RECORD_BYTES - 1]):
        count, at = int.from_bytes(record[at + 1 : at + 3], "big"), at + 3
        for _ in range(count):
            size = int.from_bytes(record[at : at + 2], "big")
            units.append(record[at + 2 : at + 2 + size])
            at += 2 + size
    return (record[21] & 3) + 1, units


def read_sps(raw: bytes) -> SequenceSet:
    try:
        return _read_sps(raw)
    except IndexError as exc:
        raise Unfit("its sequence parameter set is damaged") from exc


def _read_sps(raw: bytes) -> SequenceSet:
    payload = plain(raw[HEADER_BYTES:])
    bits = Bits(payload)
    bits.take(4)
    more_layers, is_nested = bits.take(3), bool(bits.take(1))
    bits.take(96)
    _skip_layers(bits, more_layers)
    set_id = bits.unsigned()
    chroma = bits.unsigned()
    if chroma == 3:
        bits.take(1)
    bits.unsigned()  # width
    bits.unsigned()  # height
    if bits.take(1):
        for _ in range(4):
            bits.unsigned()  # cropping
    depths = bits.unsigned() + 8, bits.unsigned() + 8
    bits.unsigned()  # order count bits
    reorder = 0
    for _ in range(more_layers + 1 if bits.take(1) else 1):
        bits.unsigned()
        reorder = bits.unsigned()
        bits.unsigned()
    return SequenceSet(
        set_id=set_id,
        profile=payload[1] & 31,
        is_interlaced=bool(payload[6] & 0x40),
        chroma=chroma,
        bit_depths=depths,
        reorder_frames=reorder,
        temporal_layers=more_layers + 1,
        profile_fields=payload[1:12],
        level=payload[12],
        is_nested=is_nested,
    )


def _skip_layers(bits: Bits, more_layers: int) -> None:
    if not more_layers:
        return
    told = [(bits.take(1), bits.take(1)) for _ in range(8)][:more_layers]
    for has_profile, has_level in told:
        bits.take(88 * has_profile + 8 * has_level)


def _free(ids: range, used: set[int]) -> int:
    free = next((number for number in ids if number not in used), None)
    if free is None:
        raise Unfit("every parameter set id is taken")
    return free


def _renumbered(unit: bytes, code: str, *, skip: int) -> bytes:
    content = Bits(plain(unit[HEADER_BYTES:])).content(skip)
    return unit[:HEADER_BYTES] + escaped(ended(code + content))


def _renumbered_sps(unit: bytes, ids: Ids) -> bytes:
    bits = Bits(plain(unit[HEADER_BYTES:]))
    bits.take(_SPS_ID_AT)
    fixed = bits.since(4)
    if bits.unsigned() != 0 or read_sps(unit).temporal_layers != 1:
        raise Unfit("the encoder numbers its sets in an unknown way")
    code = f"{ids.vps:04b}" + fixed + unsigned_code(ids.sps)
    return unit[:HEADER_BYTES] + escaped(ended(code + bits.content(bits.at)))
