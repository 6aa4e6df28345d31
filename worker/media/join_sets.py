"""What a decoder must know of the encoder that made a page, where pages were not all made by the same one."""

from dataclasses import dataclass
from typing import Final

from worker.media.smart.h264 import DELIMITER, kind_of
from worker.media.smart.h264_sets import PPS, SPS, ParameterSets, read_record
from worker.media.smart.units import joined, units_of

_LONGEST_RECORD_HEAD: Final = 6


class Unlike(Exception):
    """Pages that cannot be one track; the message says why, for people."""


@dataclass(frozen=True, slots=True)
class PageSets:
    """Equal where one decoder can go on from one page to the next without being told anything."""

    sets: ParameterSets
    length_bytes: int
    size: tuple[int, int]

    def before(self, packet: bytes) -> bytes:
        """A keyframe that decodes whatever came before it: a player may have sought to it, or played another page.

        Sets come first in a picture, but for its delimiter.
        """
        units = units_of(packet, self.length_bytes)
        delimiters = [unit for unit in units if kind_of(unit) == DELIMITER]
        rest = [unit for unit in units if kind_of(unit) not in {DELIMITER, SPS, PPS}]
        return joined([*delimiters, *self.sets.sps, *self.sets.pps, *rest], self.length_bytes)


def read_sets(record: bytes, codec: str, size: tuple[int, int]) -> PageSets:
    if codec != "h264" or len(record) <= _LONGEST_RECORD_HEAD or record[0] != 1:
        raise Unlike(f"a page is coded as {codec}, and not as pages are")
    length_bytes, sets = read_record(record)
    return PageSets(sets, length_bytes, size)


def refuse_unlike(pages: list[PageSets]) -> None:
    """Sets can be told on the way; all else stands once in the file, for all of them."""
    first = pages[0]
    for number, page in enumerate(pages):
        if page.size != first.size:
            raise Unlike(
                f"page {number} is {page.size[0]} x {page.size[1]} instead of {first.size[0]} x {first.size[1]}"
            )
        if page.length_bytes != first.length_bytes:
            raise Unlike(f"page {number} tells the lengths of its units in {page.length_bytes} bytes")
