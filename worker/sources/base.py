"""A source is where the media comes from; whatever it is, children see one readable input."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

from worker.errors import JobError
from worker.media.source import PLAIN_FORMATS


@dataclass(slots=True)
class Traffic:
    """What reading a source came to so far; kept up to date while it is open."""

    #: given to readers, counted again when read again
    bytes_served: int = 0
    #: taken from the origin over the network
    bytes_fetched: int = 0
    #: why a reader was cut off; it stays, because ffmpeg ends with 0 after a cut
    failure: JobError | None = None


@dataclass(frozen=True, slots=True)
class OpenedSource:
    """A source that ffmpeg and PyAV can read for as long as it is open."""

    #: what the user wrote, without credentials or query: safe in messages, events and logs
    label: str
    #: what goes after `-i`: `file:/…`, or an address of the loopback gateway
    input: str
    #: ffmpeg protocols that reading it needs; everything else stays forbidden
    protocols: tuple[str, ...]
    #: 0 where nobody knows, as for playlists
    size_bytes: int
    etag: str | None = None
    #: ffmpeg formats that it may turn out to be; only the worker's own playlists may name other things
    formats: tuple[str, ...] = PLAIN_FORMATS
    #: how far behind its target a seek may land
    late_seek_seconds: float = 0.0
    traffic: Traffic = field(default_factory=Traffic)

    def failure(self) -> JobError | None:
        """Why reading broke off, if it did. Ask after every child: to ffmpeg a cut can look like the end."""
        return self.traffic.failure


class Source(Protocol):
    """Opens the URLs of one kind. Problems surface as JobErrors from `open`."""

    #: URL schemes this source answers for
    schemes: frozenset[str]

    def open(self, url: str) -> AbstractAsyncContextManager[OpenedSource]: ...


def public_label(url: str) -> str:
    """The URL without what may be secret: user, password, query and fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"
