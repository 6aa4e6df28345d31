"""An H.264 recovery point at which a clip's copied part starts, although the source goes on there in mid-sequence.

The clip needs an IDR picture there: only that may follow frames with another parameter set. So the picture becomes one,
and everything behind it, up to the source's next IDR picture, is numbered as if the sequence had begun there.
"""

from typing import Final

from worker.media.smart.bits import escaped
from worker.media.smart.h264_sets import SequenceSet
from worker.media.smart.h264_slices import INTRA, Numbers, Slice, SliceReader
from worker.media.smart.order import Unfit
from worker.media.smart.units import joined, units_of

SLICE: Final = 1
IDR_SLICE: Final = 5
#: a picture in a decoder's memory that the clip does not have
_FOREIGN: Final = -1


class RenumberingCopier:
    """Takes the packets from a recovery point on, without those that are shown before it."""

    def __init__(self, sps: SequenceSet, reader: SliceReader, length_bytes: int) -> None:
        if sps.order_kind == 1:
            raise Unfit("it has open groups of pictures that tell their order in a rare way")
        self._sps, self._reader, self._length_bytes = sps, reader, length_bytes
        self._size = 1 << sps.frame_number_bits
        self._first_order: int | None = None
        self._is_renumbering = True
        #: the clip's numbers by the source's
        self._new = dict[int, int]()
        self._last = self._last_new = 0
        self._has_lead = False
        self._memory = Memory(sps.reference_frames, 0)
        self._source_memories = [Memory(sps.reference_frames, old) for old in {0, max(0, sps.reference_frames - 1)}]

    @property
    def is_settled(self) -> bool:
        """A decoder of the clip holds what a decoder of the source does, whatever that held before."""
        return not self._is_renumbering or all(each.held == self._memory.held for each in self._source_memories)

    def copy(self, packet: bytes) -> bytes:
        units = units_of(packet, self._length_bytes)
        kinds = {unit[0] & 31 for unit in units}
        if IDR_SLICE in kinds:
            self._is_renumbering = False
        if not self._is_renumbering:
            return packet
        slices = {at: self._reader.read(unit) for at, unit in enumerate(units) if unit[0] & 31 == SLICE}
        first = next(iter(slices.values()))
        is_idr = self._first_order is None
        if is_idr:
            self._begin(list(slices.values()))
        else:
            self._count(first)
        for at, each in slices.items():
            header = units[at][0] & 0xE0 | (IDR_SLICE if is_idr else SLICE)
            units[at] = bytes([header]) + escaped(each.written(self._renumbered(each), self._sps, is_idr=is_idr))
        if first.is_reference:
            self._remember(first)
        return joined(units, self._length_bytes)

    def _begin(self, slices: list[Slice]) -> None:
        if not all(each.kind == INTRA and each.is_reference for each in slices):
            raise Unfit("it has a recovery point that is predicted from other pictures")
        self._first_order = slices[0].numbers.order
        self._last_new = -1

    def _count(self, first: Slice) -> None:
        """Numbers rise by one behind each reference; those that were left out make the only gap."""
        left_out = (first.numbers.number - self._last - 1) % self._size
        if left_out and self._has_lead:
            raise Unfit("it has gaps in its numbering")
        for memory in self._source_memories:
            for _ in range(left_out):
                memory.add(_FOREIGN, None)
        self._has_lead = True

    def _renumbered(self, each: Slice) -> Numbers:
        old = each.numbers
        assert self._first_order is not None, "a copy begins with its first picture"
        if any(number not in self._new for moved in old.moved for number in moved or ()):
            raise Unfit("it has pictures that refer to what lies before their group")
        unmarked = None if old.unmarked is None else [self._new[one] for one in old.unmarked if one in self._new]
        return Numbers(
            number=(self._last_new + 1) % self._size,
            order=(old.order - self._first_order) % (1 << self._sps.order_bits),
            moved=tuple(None if moved is None else [self._new[number] for number in moved] for moved in old.moved),
            unmarked=unmarked,
        )

    def _remember(self, first: Slice) -> None:
        number = first.numbers.number
        is_first = not self._new
        for memory in (self._memory, *self._source_memories):
            memory.add(number, None if is_first else first.numbers.unmarked)
        self._last, self._last_new = number, (self._last_new + 1) % self._size
        self._new = {old: new for old, new in self._new.items() if old in self._memory.held}
        self._new[number] = self._last_new


class Memory:
    """The references that a decoder holds, oldest first."""

    def __init__(self, room: int, foreign: int) -> None:
        self._room = max(1, room)
        self.held = [_FOREIGN] * foreign

    def add(self, number: int, unmarked: list[int] | None) -> None:
        for gone in unmarked or ():
            target = gone if gone in self.held else _FOREIGN
            if target in self.held:
                self.held.remove(target)
        if unmarked is None and len(self.held) >= self._room:
            self.held.pop(0)
        self.held.append(number)
