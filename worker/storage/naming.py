"""What keys and metadata may look like, so that every storage takes and refuses the same ones."""

import re
from collections.abc import Mapping

from worker.errors import InvalidRequest

# S3's limit for a key, and that of file systems for one name, less what temporary names add.
_KEY_MAX_BYTES = 1024
_SEGMENT_MAX_BYTES = 200
_METADATA_NAME = re.compile(r"[a-z0-9-]{1,64}")
# S3's limit for all names and values together
_METADATA_MAX_BYTES = 2048


def require_key(key: str) -> str:
    """A relative path of plain names. No leading dots: `..` climbs, and hidden files are the storage's own."""
    segments = key.split("/")
    fits = len(key.encode("utf-8", "replace")) <= _KEY_MAX_BYTES
    if not fits or not all(_is_plain(segment) for segment in segments):
        raise InvalidRequest(f"the storage key {key[:200]!r} is not a plain relative path like prefix/id/clip.mp4")
    return key


def require_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    for name, value in metadata.items():
        printable = value.isascii() and value.isprintable() and value == value.strip()
        if not _METADATA_NAME.fullmatch(name) or not printable:
            raise InvalidRequest(f"object metadata {name[:80]!r} must be ASCII, with a lower-case name")
    if sum(len(name) + len(value) for name, value in metadata.items()) > _METADATA_MAX_BYTES:
        raise InvalidRequest(f"object metadata exceeds {_METADATA_MAX_BYTES} bytes")
    return dict(metadata)


def _is_plain(segment: str) -> bool:
    return (
        bool(segment)
        and not segment.startswith(".")
        and segment.isprintable()
        and "\\" not in segment
        and len(segment.encode("utf-8")) <= _SEGMENT_MAX_BYTES
    )
