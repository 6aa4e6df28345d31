"""The NAL units that H.264 and HEVC packets are made of, in both ways of telling where one ends."""

from collections.abc import Iterable, Iterator
from typing import Final

from worker.media.smart.bits import plain
from worker.media.smart.order import Unfit

_START: Final = b"\x00\x00\x01"
#: for units that had start codes
LENGTH_BYTES: Final = 4


def units_of(packet: bytes, length_bytes: int) -> list[bytes]:
    """`length_bytes` is 0 where units have start codes."""
    return list(by_length(packet, length_bytes) if length_bytes else by_start_code(packet))


def joined(units: Iterable[bytes], length_bytes: int) -> bytes:
    return b"".join(len(unit).to_bytes(length_bytes, "big") + unit for unit in units)


def by_length(packet: bytes, length_bytes: int) -> Iterator[bytes]:
    at = 0
    while at + length_bytes < len(packet):
        size = int.from_bytes(packet[at : at + length_bytes], "big")
        at += length_bytes
        if not 0 < size <= len(packet) - at:
            raise Unfit("it has a damaged picture")
        yield packet[at : at + size]
        at += size


def by_start_code(packet: bytes) -> Iterator[bytes]:
    start = packet.find(_START)
    while start >= 0:
        following = packet.find(_START, start + 3)
        # zeros before a start code belong to it, or are padding
        unit = packet[start + 3 : following if following >= 0 else len(packet)].rstrip(b"\x00")
        if unit:
            yield unit
        start = following


def trimmed(unit: bytes) -> bytes:
    return bytes(unit).rstrip(b"\x00")


def messages(payload: bytes) -> Iterator[tuple[int, bytes]]:
    """What a unit of supplemental information says: kinds and contents."""
    content, at = plain(payload), 0
    while at + 2 < len(content):
        kind, at = _number(content, at)
        size, at = _number(content, at)
        yield kind, content[at : at + size]
        at += size


def _number(content: bytes, at: int) -> tuple[int, int]:
    number = 0
    while at < len(content) and content[at] == 0xFF:
        number, at = number + 0xFF, at + 1
    return number + (content[at] if at < len(content) else 0), at + 1
