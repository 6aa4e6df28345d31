"""What this room must know of a source to read it, whoever opened it."""

from typing import Final, Protocol

from worker.errors import JobError

#: stands for a source's label in what a child says: it is nobody's business on a command line
LABEL: Final = "\N{REPLACEMENT CHARACTER}"
#: containers that name no other file; playlists, concat scripts and SDP would read whatever they name
PLAIN_FORMATS: Final = ("mov", "matroska", "mpegts", "mp3", "aac", "ogg", "wav", "flac", "avi", "flv")
#: a playlist that the worker wrote itself, and what its segments may be
PLAYLIST_FORMATS: Final = ("hls", "mpegts", "mov", "aac", "mp3", "ac3", "eac3")


class ReadableSource(Protocol):
    """An open source; those of `worker.sources` are."""

    @property
    def label(self) -> str:
        """Safe in messages: no credentials, no query."""

    @property
    def input(self) -> str:
        """`file:/…` or an address on loopback."""

    @property
    def protocols(self) -> tuple[str, ...]:
        """The ffmpeg protocols that reading it needs."""

    @property
    def formats(self) -> tuple[str, ...]:
        """The ffmpeg formats that it may turn out to be."""

    @property
    def late_seek_seconds(self) -> float:
        """How far behind its target a seek may land: segments have no index."""

    @property
    def size_bytes(self) -> int: ...

    def failure(self) -> JobError | None:
        """Why reading broke off, if it did; ffmpeg takes a short read for the end of the media."""
