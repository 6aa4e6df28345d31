"""The language of HLS playlists (RFC 8216): read from others, written for our own children."""

import io
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from worker.errors import SourceUnsupported
from worker.sources.base import public_label
from worker.sources.presentation import Init, Key, Part, Segment, Track, TrackBuilder, child_url

_IS_MASTER: Final = re.compile(r"^[ \t]*#EXT-X-STREAM-INF", re.MULTILINE)
# begins only where an attribute may: a playlist is one line of megabytes if its author likes
_ATTRIBUTE: Final = re.compile(r'(?:^|,)\s*([A-Z0-9-]+)=("[^"]*"|[^",]*)')
_BYTE_RANGE: Final = re.compile(r"(\d{1,18})(?:@(\d{1,18}))?", re.ASCII)
_RESOLUTION: Final = re.compile(r"\d{1,6}x(\d{1,6})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Variant:
    """One of several versions of the same film."""

    url: str
    bandwidth: int
    height: int
    audio_group: str
    #: in colours that a clip would show wrongly
    is_hdr: bool = False


@dataclass(frozen=True, slots=True)
class Rendition:
    """A sound track beside the variants; without a URL it lies in the variant itself."""

    group: str
    url: str | None
    is_default: bool


@dataclass(frozen=True, slots=True)
class MasterPlaylist:
    variants: tuple[Variant, ...]
    renditions: tuple[Rendition, ...]


def parse_m3u8(text: str, base_url: str) -> MasterPlaylist | Track:
    text = text.removeprefix("\ufeff").lstrip()
    if not text.startswith("#EXTM3U"):
        raise SourceUnsupported(f"{public_label(base_url)} is no HLS playlist")
    # one after the other: a list of all of them would take more memory than what is in them
    lines = (line.strip() for line in io.StringIO(text))
    if _IS_MASTER.search(text):
        return _parse_master(lines, base_url)
    reader = _TrackReader(base_url, TrackBuilder(public_label(base_url)))
    for line in lines:
        reader.read(line)
    return reader.track()


def _parse_master(lines: Iterator[str], base_url: str) -> MasterPlaylist:
    variants, renditions = list[Variant](), list[Rendition]()
    told: dict[str, str] | None = None
    for line in lines:
        tag, _, value = line.partition(":")
        if tag == "#EXT-X-STREAM-INF":
            told = _attributes(value)
        elif tag == "#EXT-X-MEDIA" and (attributes := _attributes(value)).get("TYPE") == "AUDIO":
            url = child_url(base_url, attributes["URI"]) if "URI" in attributes else None
            renditions.append(Rendition(attributes.get("GROUP-ID", ""), url, attributes.get("DEFAULT") == "YES"))
        elif line and not line.startswith("#") and told is not None:
            variants.append(_variant(child_url(base_url, line), told))
            told = None
    if not variants:
        raise SourceUnsupported(f"{public_label(base_url)} names no variants")
    return MasterPlaylist(tuple(variants), tuple(renditions))


def _variant(url: str, told: dict[str, str]) -> Variant:
    bandwidth, size = told.get("BANDWIDTH", ""), _RESOLUTION.fullmatch(told.get("RESOLUTION", ""))
    return Variant(
        url,
        bandwidth=int(bandwidth[:18]) if bandwidth.isascii() and bandwidth.isdigit() else 0,
        height=int(size.group(1)) if size else 0,
        audio_group=told.get("AUDIO", ""),
        is_hdr=told.get("VIDEO-RANGE", "SDR") != "SDR",
    )


@dataclass(slots=True)
class _TrackReader:
    """Collects segments line by line; tags count for the segments that follow."""

    base_url: str
    found: TrackBuilder
    key: Key | None = None
    #: keys without an IV of their own use the segment's number
    key_counts: bool = False
    init: Init | None = None
    seconds: float | None = None
    byte_range: str | None = None
    is_discontinuous: bool = False
    number: int = 0
    is_rounded: bool = True
    has_ended: bool = False

    def read(self, line: str) -> None:
        tag, _, value = line.partition(":")
        if handle := _TAGS.get(tag):
            handle(self, value)
        elif line and not line.startswith("#"):
            self._add(line)

    def track(self) -> Track:
        if not self.has_ended:
            raise self.wrong("is a live stream; only one that has ended (#EXT-X-ENDLIST) can be cut")
        return self.found.track(is_rounded=self.is_rounded)

    def wrong(self, what: str) -> SourceUnsupported:
        return SourceUnsupported(f"{public_label(self.base_url)} {what}")

    def refuse(self, _: str) -> None:
        raise self.wrong("is no list of whole segments")

    def read_seconds(self, value: str) -> None:
        length = value.partition(",")[0]
        self.is_rounded = self.is_rounded and "." not in length
        try:
            self.seconds = float(length)
        except ValueError as exc:
            raise self.wrong("has a segment without a length") from exc

    def read_range(self, value: str) -> None:
        self.byte_range = value

    def read_discontinuity(self, _: str) -> None:
        self.is_discontinuous = True

    def read_number(self, value: str) -> None:
        if not value.isascii() or not value.isdigit() or len(value) > 18:
            raise self.wrong("counts its segments from something that is no number")
        self.number = int(value)

    def read_key(self, value: str) -> None:
        told = _attributes(value)
        method = told.get("METHOD", "no method")
        if method == "NONE":
            self.key = None
        elif method != "AES-128" or told.get("KEYFORMAT", "identity") != "identity" or "URI" not in told:
            raise self.wrong(f"is protected ({method[:20]}): only AES-128 with a plain key can be read")
        else:
            self.key_counts = "IV" not in told
            self.key = Key(child_url(self.base_url, told["URI"]), self._iv(told["IV"]) if "IV" in told else 0)

    def read_init(self, value: str) -> None:
        told = _attributes(value)
        if "URI" not in told:
            raise self.wrong("has an init section without a URL")
        part = Part(child_url(self.base_url, told["URI"]))
        if "BYTERANGE" in told:
            part = self._stretch(part.url, told["BYTERANGE"], follows=0)
        self.init = Init(part, self._current_key())

    def read_end(self, _: str) -> None:
        self.has_ended = True

    def _add(self, line: str) -> None:
        if self.seconds is None:
            raise self.wrong("has a segment without a length")
        part = Part(child_url(self.base_url, line))
        if self.byte_range is not None:
            before = self.found.segments[-1].part if self.found.segments else None
            follows = before.start + before.length if before and before.length and before.url == part.url else None
            part = self._stretch(part.url, self.byte_range, follows=follows)
        self.found.add(Segment(part, self.seconds, self.init, self._current_key(), self.is_discontinuous))
        self.number += 1
        self.seconds, self.byte_range, self.is_discontinuous = None, None, False

    def _current_key(self) -> Key | None:
        return Key(self.key.url, self.number) if self.key is not None and self.key_counts else self.key

    def _stretch(self, url: str, text: str, *, follows: int | None) -> Part:
        match = _BYTE_RANGE.fullmatch(text.strip())
        if match is None or int(match.group(1)) == 0:
            raise self.wrong("has a byte range that is none")
        start = int(match.group(2)) if match.group(2) else follows
        if start is None:
            raise self.wrong("has a byte range without a beginning")
        return Part(url, start, int(match.group(1)))

    def _iv(self, text: str) -> int:
        try:
            iv = int(text, 16)
        except ValueError:
            iv = -1
        if not 0 <= iv < 1 << 128:
            raise self.wrong("has a key whose IV is no 128-bit number")
        return iv


_TAGS: Final[dict[str, Callable[[_TrackReader, str], None]]] = {
    "#EXTINF": _TrackReader.read_seconds,
    "#EXT-X-BYTERANGE": _TrackReader.read_range,
    "#EXT-X-DISCONTINUITY": _TrackReader.read_discontinuity,
    "#EXT-X-MEDIA-SEQUENCE": _TrackReader.read_number,
    "#EXT-X-KEY": _TrackReader.read_key,
    "#EXT-X-MAP": _TrackReader.read_init,
    "#EXT-X-ENDLIST": _TrackReader.read_end,
    # variables, updates of a list that is not here, and lists of single pictures
    "#EXT-X-DEFINE": _TrackReader.refuse,
    "#EXT-X-SKIP": _TrackReader.refuse,
    "#EXT-X-I-FRAMES-ONLY": _TrackReader.refuse,
}


def write_track(track: Track, name_of: Callable[[Part], str]) -> str:
    """The track as a playlist in which every part has the name that `name_of` gives it."""
    return "\n".join(_track_lines(track, name_of)) + "\n"


def _track_lines(track: Track, name_of: Callable[[Part], str]) -> Iterator[str]:
    yield "#EXTM3U"
    yield "#EXT-X-VERSION:7"
    yield f"#EXT-X-TARGETDURATION:{max(1, math.ceil(track.longest_segment_seconds))}"
    yield "#EXT-X-PLAYLIST-TYPE:VOD"
    init, key = None, None
    for segment in track.segments:
        if segment.is_discontinuous:
            yield "#EXT-X-DISCONTINUITY"
        if segment.init is not None and segment.init != init:
            init = segment.init
            if init.key != key:
                key = init.key
                yield _key_line(key, name_of)
            yield f'#EXT-X-MAP:URI="{name_of(init.part)}"'
        if segment.key != key:
            key = segment.key
            yield _key_line(key, name_of)
        yield f"#EXTINF:{segment.seconds:.6f},"
        yield name_of(segment.part)
    yield "#EXT-X-ENDLIST"


def write_master(main: str, audio: str) -> str:
    """A playlist of one variant whose sound is a track of its own."""
    # the picture first: ffmpeg counts its seeks from the first packet of the first list
    return (
        "#EXTM3U\n#EXT-X-VERSION:7\n"
        f'#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="sound"\n{main}\n'
        f'#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="sound",NAME="sound",DEFAULT=YES,AUTOSELECT=YES,URI="{audio}"\n'
    )


def _key_line(key: Key | None, name_of: Callable[[Part], str]) -> str:
    if key is None:
        return "#EXT-X-KEY:METHOD=NONE"
    return f'#EXT-X-KEY:METHOD=AES-128,URI="{name_of(Part(key.url))}",IV=0x{key.iv:032x}'


def _attributes(value: str) -> dict[str, str]:
    return {name: text.strip('"') for name, text in _ATTRIBUTE.findall(value)}
