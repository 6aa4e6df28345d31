"""A source is where the media comes from; whatever it is, children see one readable input."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class OpenedSource:
    """A source that ffmpeg and PyAV can read for as long as it is open."""

    #: what the user wrote, without credentials or query: safe in messages, events and logs
    label: str
    #: what goes after `-i`: `file:/…`, or an address of the loopback gateway
    input: str
    #: ffmpeg protocols that reading it needs; everything else stays forbidden
    protocols: tuple[str, ...]
    size_bytes: int | None = None
    etag: str | None = None


class Source(Protocol):
    """Opens the URLs of one kind. Problems surface as JobErrors from `open`."""

    #: URL schemes this source answers for
    schemes: frozenset[str]

    def open(self, url: str) -> AbstractAsyncContextManager[OpenedSource]: ...
