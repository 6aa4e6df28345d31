"""The headers of H.264 slices, read and written anew around what is coded, which stays as it is to the last bit."""

from dataclasses import dataclass
from typing import Final

from worker.media.smart.bits import Bits, packed, plain, unsigned_code
from worker.media.smart.h264_sets import PictureSet, SequenceSet
from worker.media.smart.order import Unfit

#: kinds of slices: predicted from one side, from both, from nothing
P, B, INTRA = 0, 1, 2
#: far more than the fields before a slice's data take
_HEADER_BYTES: Final = 600
#: any id: it must only differ from that of an IDR picture right beside it
_IDR_ID: Final = 9
_END_OF_MOVES: Final = 3
_UNMARK: Final = 1


@dataclass(frozen=True, slots=True)
class Numbers:
    """What changes in a header when pictures are numbered anew."""

    number: int
    order: int
    #: numbers of pictures that move to the front of each list of references; None leaves a list as it is
    moved: tuple[list[int] | None, ...]
    #: numbers of pictures that are references no longer; None leaves that to their age
    unmarked: list[int] | None


@dataclass(frozen=True, slots=True)
class Slice:
    kind: int
    is_reference: bool
    numbers: Numbers
    #: the fields that do not change: before, between and behind the others
    begin: str
    middle: str
    weights: str
    end: str
    #: the payload, and the bit at which the header ends
    payload: bytes
    data_at: int
    is_arithmetic: bool

    def written(self, new: Numbers, sps: SequenceSet, *, is_idr: bool) -> bytes:
        parts = [self.begin, f"{new.number:0{sps.frame_number_bits}b}", unsigned_code(_IDR_ID) if is_idr else ""]
        parts += [f"{new.order:0{sps.order_bits}b}" if sps.order_bits else "", self.middle]
        parts += [_moves(moved, new.number, 1 << sps.frame_number_bits) for moved in new.moved]
        parts.append(self.weights)
        if self.is_reference:
            parts.append("00" if is_idr else _marks(new, 1 << sps.frame_number_bits))
        return self._with_data("".join([*parts, self.end]))

    def _with_data(self, header: str) -> bytes:
        """Arithmetic codes start on a byte; others follow on any bit."""
        if self.is_arithmetic:
            return packed(header, "1") + self.payload[-(-self.data_at // 8) :]
        rest = Bits(self.payload[self.data_at // 8 :])
        rest.take(self.data_at % 8)
        return packed(header + rest.content(rest.at) + "1")


class SliceReader:
    """Reads slices that refer to one sequence set."""

    def __init__(self, sps: SequenceSet, pps: dict[int, PictureSet]) -> None:
        self._sps, self._pps = sps, pps
        self._size = 1 << sps.frame_number_bits

    def read(self, unit: bytes) -> Slice:
        # zeros at the end only fill up a bit rate
        payload = plain(unit[1:]).rstrip(b"\x00")
        try:
            return self._read(payload, Bits(payload[:_HEADER_BYTES]), is_reference=bool(unit[0] & 0x60))
        except (IndexError, KeyError) as exc:
            raise Unfit("it has a damaged picture") from exc

    def _read(self, payload: bytes, bits: Bits, *, is_reference: bool) -> Slice:
        kind, pps = self._read_begin(bits)
        begin = bits.since(0)
        number, order = bits.take(self._sps.frame_number_bits), bits.take(self._sps.order_bits)
        at = bits.at
        counts = _read_counts(bits, pps, kind, has_order=self._sps.order_kind == 0)
        middle = bits.since(at)
        moved = tuple(_read_moves(bits, number, self._size) for _ in counts)
        at = bits.at
        if pps.is_weighted(kind):
            _skip_weights(bits, counts)
        weights = bits.since(at)
        unmarked = _read_marks(bits, number, self._size) if is_reference else None
        at = bits.at
        _skip_end(bits, pps, kind)
        return Slice(
            kind=kind,
            is_reference=is_reference,
            numbers=Numbers(number, order, moved, unmarked),
            begin=begin,
            middle=middle,
            weights=weights,
            end=bits.since(at),
            payload=payload,
            data_at=bits.at,
            is_arithmetic=pps.is_arithmetic,
        )

    def _read_begin(self, bits: Bits) -> tuple[int, PictureSet]:
        bits.unsigned()
        kind = bits.unsigned() % 5
        if kind > INTRA:
            raise Unfit("it has switching slices")
        return kind, self._pps[bits.unsigned()]


def _read_counts(bits: Bits, pps: PictureSet, kind: int, *, has_order: bool) -> tuple[int, ...]:
    """How many references each list has."""
    if has_order and pps.has_bottom_order and bits.signed() < 0:
        raise Unfit("it is interlaced")
    if pps.has_redundant:
        bits.unsigned()
    if kind == B:
        bits.take(1)
    if kind == INTRA:
        return ()
    lists = 2 if kind == B else 1
    if bits.take(1):
        return tuple(bits.unsigned() + 1 for _ in range(lists))
    return pps.reference_counts[:lists]


def _read_moves(bits: Bits, number: int, size: int) -> list[int] | None:
    if not bits.take(1):
        return None
    moved = list[int]()
    while (step := bits.unsigned()) != _END_OF_MOVES:
        if step > 1:
            raise Unfit("it has references that last")
        distance = bits.unsigned() + 1
        number = (number + (distance if step else -distance)) % size
        moved.append(number)
    return moved


def _moves(moved: list[int] | None, number: int, size: int) -> str:
    if moved is None:
        return "0"
    code = "1"
    for target in moved:
        step, distance = (1, target - number) if target > number else (0, number - target or size)
        code += unsigned_code(step) + unsigned_code(distance - 1)
        number = target
    return code + unsigned_code(_END_OF_MOVES)


def _skip_weights(bits: Bits, counts: tuple[int, ...]) -> None:
    bits.unsigned()
    bits.unsigned()
    for count in counts:
        for _ in range(count):
            for fields in (2, 4):
                if bits.take(1):
                    for _ in range(fields):
                        bits.signed()


def _read_marks(bits: Bits, number: int, size: int) -> list[int] | None:
    if not bits.take(1):
        return None
    unmarked = list[int]()
    while step := bits.unsigned():
        if step != _UNMARK:
            raise Unfit("it has references that last")
        unmarked.append((number - bits.unsigned() - 1) % size)
    return unmarked


def _marks(new: Numbers, size: int) -> str:
    if new.unmarked is None:
        return "0"
    steps = (unsigned_code(_UNMARK) + unsigned_code((new.number - each - 1) % size) for each in new.unmarked)
    return "1" + "".join(steps) + unsigned_code(0)


def _skip_end(bits: Bits, pps: PictureSet, kind: int) -> None:
    if pps.is_arithmetic and kind != INTRA:
        bits.unsigned()
    bits.signed()
    if pps.has_deblocking and bits.unsigned() != 1:
        bits.signed()
        bits.signed()
