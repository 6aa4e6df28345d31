"""Tells by their content which sources are no media themselves but name where media is."""

from contextlib import aclosing
from enum import StrEnum
from typing import Final

from worker.sources.ranges import RangeReader

#: no media begins like text; a look at one byte spares all others a second request
_TEXT_BEGINS: Final = b"#<\xef \t\r\n"
_HEAD_BYTES: Final = 4096
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class PlaylistKind(StrEnum):
    HLS = "HLS"
    DASH = "DASH"


async def playlist_kind(reader: RangeReader, first_byte: bytes) -> PlaylistKind | None:
    """What kind of playlist begins with `first_byte`, if any; empty when reading it again costs nothing."""
    if first_byte not in _TEXT_BEGINS:
        return None
    head = b""
    async with aclosing(reader.read(0, min(reader.size_bytes, _HEAD_BYTES))) as chunks:
        async for chunk in chunks:
            head += chunk
    return kind_of(head)


def kind_of(head: bytes) -> PlaylistKind | None:
    text = head.removeprefix(_BYTE_ORDER_MARK).lstrip()
    if text.startswith(b"#EXTM3U"):
        return PlaylistKind.HLS
    return PlaylistKind.DASH if text.startswith(b"<") and b"<MPD" in text else None
