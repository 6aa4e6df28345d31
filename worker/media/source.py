"""What this room must know of a source to read it, whoever opened it."""

from typing import Protocol

from worker.errors import JobError


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
    def size_bytes(self) -> int: ...

    def failure(self) -> JobError | None:
        """Why reading broke off, if it did; ffmpeg takes a short read for the end of the media."""
