"""Media in many parts, as HLS and DASH name them: one model, whatever the playlist looked like."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin, urlsplit

from worker.errors import SourceForbidden, SourceUnsupported
from worker.sources.base import public_label

#: two days in pieces of four seconds; ffmpeg keeps them all in memory
MAX_SEGMENTS: Final = 50_000
#: longer ones are a mistake, or an attempt to make numbers overflow
MAX_SEGMENT_SECONDS: Final = 86_400.0
#: of all segments of a playlist in whole seconds together
MAX_SHIFT_SECONDS: Final = 600.0
MAX_URL_CHARS: Final = 8192
MAX_CHARS_OF_ALL_URLS: Final = 32 * 2**20


@dataclass(frozen=True, slots=True)
class Part:
    """A resource, or a stretch of it."""

    url: str
    start: int = 0
    #: None = all of it
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """AES-128 in CBC mode, the only encryption that is no copy protection."""

    url: str
    iv: int


@dataclass(frozen=True, slots=True)
class Init:
    """What a decoder must know before it can read the segments that follow."""

    part: Part
    key: Key | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    part: Part
    seconds: float
    init: Init | None = None
    key: Key | None = None
    #: timestamps start anew here
    is_discontinuous: bool = False


@dataclass(frozen=True, slots=True)
class Track:
    segments: tuple[Segment, ...]
    #: lengths are told in whole seconds, as the first versions of HLS had it
    is_rounded: bool = False

    @property
    def longest_segment_seconds(self) -> float:
        return max(segment.seconds for segment in self.segments)

    @property
    def late_seek_seconds(self) -> float:
        """How far behind its target a seek may land: a segment, and what rounding shifted all of them by."""
        shift = min(0.5 * len(self.segments), MAX_SHIFT_SECONDS) if self.is_rounded else 1.0
        return self.longest_segment_seconds + shift

    @property
    def is_encrypted(self) -> bool:
        return any(segment.key is not None for segment in self.segments)


@dataclass(frozen=True, slots=True)
class Presentation:
    """The picture, with its sound unless that is a track of its own."""

    main: Track
    audio: Track | None = None

    @property
    def tracks(self) -> tuple[Track, ...]:
        return (self.main,) if self.audio is None else (self.main, self.audio)


class TrackBuilder:
    """Collects segments, no more of them than can be kept without harm."""

    def __init__(self, label: str) -> None:
        self.segments: list[Segment] = []
        self._label = label
        self._url_chars = 0

    def add(self, segment: Segment) -> None:
        if not 0 <= segment.seconds <= MAX_SEGMENT_SECONDS:
            raise SourceUnsupported(f"{self._label} has a segment of impossible length")
        self._url_chars += len(segment.part.url)
        if len(self.segments) >= MAX_SEGMENTS or self._url_chars > MAX_CHARS_OF_ALL_URLS:
            raise SourceUnsupported(f"{self._label} names too many segments: {MAX_SEGMENTS} are the most")
        self.segments.append(segment)

    def track(self, *, is_rounded: bool = False) -> Track:
        if not self.segments:
            raise SourceUnsupported(f"{self._label} names no segments")
        return Track(tuple(self.segments), is_rounded)


def child_url(base: str, reference: str) -> str:
    """What a playlist at `base` means by `reference`; nothing but the web may be meant."""
    label = public_label(base)
    try:
        url = urljoin(base, reference.strip())
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as exc:
        raise SourceUnsupported(f"{label} names something that is no URL") from exc
    if parts.scheme not in {"http", "https"} or not host:
        raise SourceForbidden(f"{label} names something that is not http or https")
    if len(url) > MAX_URL_CHARS or not url.isprintable():
        raise SourceUnsupported(f"{label} names something that is no URL")
    return url
