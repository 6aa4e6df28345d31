"""What fragmented MP4 files say of their fragments, and the index (sidx) that lets ffmpeg seek in them.

Without one, ffmpeg walks from fragment to fragment through the whole file each time it opens it.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

_CONTAINERS: Final = frozenset({b"moov", b"trak", b"mdia", b"minf", b"stbl", b"mvex", b"moof", b"traf", b"mfra"})
#: moov, trak, mdia, minf, stbl, and room for one more
_MOST_DEPTH: Final = 6
#: a sidx counts its entries with 16 bits
_MOST_ENTRIES: Final = 65_535


class NotIndexableError(ValueError):
    """The file is not what this room understands; ffmpeg gets it as it is."""


@dataclass(frozen=True, slots=True)
class Box:
    kind: bytes
    start: int
    #: with its header
    size: int

    @property
    def end(self) -> int:
        return self.start + self.size


@dataclass(frozen=True, slots=True)
class Movie:
    """What the moov says of each track: its ticks per second, and how many of them a sample lasts by default."""

    timescales: dict[int, int]
    default_durations: dict[int, int]


@dataclass(frozen=True, slots=True)
class Fragment:
    """Where one begins; by track, when its first sample is shown and, where that is known, its last one ends."""

    offset: int
    shown: dict[int, int]
    ends: dict[int, int]


@dataclass(slots=True)
class _Track:
    number: int = 0
    timescale: int = 0
    samples: int = 0


def box_at(position: int, content: bytes) -> Box:
    """The box at `position` of the file; `content` starts with its header."""
    if len(content) < 16:
        raise NotIndexableError
    size, kind = struct.unpack_from(">I4s", content)
    header = 8
    if size == 1:
        (size,), header = struct.unpack_from(">Q", content, 8), 16
    if size < header or not kind.isalnum():
        raise NotIndexableError
    return Box(kind, position, size)


def parse_movie(moov: bytes) -> Movie:
    """The tracks of a film whose samples all lie in fragments."""
    tracks = [_parse_track(body) for kind, body in _walk(moov) if kind == b"trak"]
    defaults = {_u32(body, 4): _u32(body, 12) for kind, body in _walk(moov) if kind == b"trex"}
    if not defaults or not tracks or any(track.samples or not track.timescale for track in tracks):
        raise NotIndexableError
    return Movie({track.number: track.timescale for track in tracks}, defaults)


def _parse_track(trak: bytes) -> _Track:
    track = _Track()
    for kind, body in _walk(trak):
        match kind:
            case b"tkhd":
                track.number = _u32(body, 20 if body[0] else 12)
            case b"mdhd":
                track.timescale = _u32(body, 20 if body[0] else 12)
            case b"stco" | b"co64":
                track.samples += _u32(body, 4)
    return track


def parse_fragment(moof: bytes, offset: int, movie: Movie) -> Fragment:
    """Its samples must be found relative to itself, because it will be moved."""
    runs = list[_TrackRun]()
    for kind, body in _walk(moof):
        match kind:
            case b"tfhd":
                if _u32(body, 0) & 0x01:
                    raise NotIndexableError
                track = _u32(body, 4)
                runs.append(_TrackRun(track, _tfhd_duration(body) or movie.default_durations.get(track, 0)))
            case b"tfdt" if runs:
                runs[-1].decoded = int.from_bytes(body[4 : 12 if body[0] else 8], "big")
            case b"trun" if runs:
                runs[-1].add(body)
    if any(run.decoded is None for run in runs):
        raise NotIndexableError
    full = [run for run in runs if run.count]
    return Fragment(
        offset,
        {run.track: max(0, (run.decoded or 0) + run.first_offset) for run in full},
        {run.track: (run.decoded or 0) + run.duration for run in full},
    )


def parse_random_access(mfra: bytes, movie: Movie) -> list[Fragment]:
    """The fragments that an mfra lists, in the file's order; none unless it lists them for every track."""
    listed = dict[int, dict[int, int]]()
    for kind, body in _walk(mfra):
        if kind == b"tfra":
            for shown, offset in _entries(body):
                listed.setdefault(offset, {}).setdefault(_u32(body, 4), shown)
    if any(shown.keys() != movie.timescales.keys() for shown in listed.values()):
        return []
    return [Fragment(offset, shown, {}) for offset, shown in sorted(listed.items())]


def _entries(tfra: bytes) -> Iterator[tuple[int, int]]:
    lengths, count = _u32(tfra, 8), _u32(tfra, 12)
    pair = struct.Struct(">QQ" if tfra[0] else ">II")
    step = pair.size + sum((lengths >> shift & 3) + 1 for shift in (0, 2, 4))
    if 16 + count * step > len(tfra):
        raise NotIndexableError
    for at in range(16, 16 + count * step, step):
        shown, offset = pair.unpack_from(tfra, at)
        yield shown, offset


def segment_index(fragments: Sequence[Fragment], *, movie: Movie, anchor: int, end: int) -> bytes:
    """A sidx for every track, to insert at `anchor`; the media ends at `end`."""
    kept = fragments[:: -(-len(fragments) // _MOST_ENTRIES)]
    offsets = [*(one.offset for one in kept), end]
    boxes = list[bytes]()
    # from the last to the first, because each counts from its own end and the others lie behind it
    for track, timescale in reversed(movie.timescales.items()):
        gap = offsets[0] - anchor + sum(map(len, boxes))
        if any(track in one.shown for one in fragments):
            boxes.insert(0, _sidx(track, timescale, _times(track, kept, fragments), gap_bytes=gap, offsets=offsets))
    return b"".join(boxes)


def _times(track: int, kept: Sequence[Fragment], fragments: Sequence[Fragment]) -> list[int]:
    """When each is first shown, and when the last ends. Too late only makes ffmpeg look one earlier; too early would
    make it miss samples. So where the track pauses, its next sample counts.
    """
    following = max(one.ends.get(track, one.shown.get(track, 0)) for one in fragments)
    times = [following]
    for one in reversed(kept):
        following = one.shown.get(track, following)
        times.append(following)
    return times[::-1]


def _sidx(track: int, timescale: int, ticks: Sequence[int], *, gap_bytes: int, offsets: Sequence[int]) -> bytes:
    body = struct.pack(">IIIQQHH", 1 << 24, track, timescale, ticks[0], gap_bytes, 0, len(offsets) - 1)
    # each starts with a keyframe, as far as anybody knows; ffmpeg looks for itself
    body += b"".join(
        struct.pack(">III", size, duration, 0x90000000)
        for size, duration in zip(_steps(offsets), _steps(ticks), strict=True)
    )
    return struct.pack(">I4s", len(body) + 8, b"sidx") + body


def _steps(values: Sequence[int]) -> list[int]:
    steps = [after - before for before, after in pairwise(values)]
    if not all(0 <= step < 1 << 31 for step in steps):
        raise NotIndexableError
    return steps


@dataclass(slots=True)
class _TrackRun:
    """A traf, while it is read."""

    track: int
    default: int
    decoded: int | None = None
    first_offset: int = 0
    duration: int = 0
    count: int = 0

    def add(self, trun: bytes) -> None:
        flags, count = _u32(trun, 0) & 0xFFFFFF, _u32(trun, 4)
        at = 8 + 4 * bool(flags & 0x1) + 4 * bool(flags & 0x4)
        step = 4 * (flags >> 8 & 0xF).bit_count()
        if at + count * step > len(trun):
            raise NotIndexableError
        if not self.count and count and flags & 0x800:
            (self.first_offset,) = struct.unpack_from(">i", trun, at + step - 4)
        lengths = (_u32(trun, at + index * step) for index in range(count)) if flags & 0x100 else [self.default * count]
        self.duration += sum(lengths)
        self.count += count


def _tfhd_duration(body: bytes) -> int:
    flags = _u32(body, 0)
    return _u32(body, 8 + 4 * bool(flags & 0x2)) if flags & 0x8 else 0


def _walk(content: bytes, depth: int = 0) -> Iterator[tuple[bytes, bytes]]:
    """Every box below `content` with its body, containers before what they hold."""
    start = 0
    while start + 8 <= len(content):
        size, kind = struct.unpack_from(">I4s", content, start)
        # the shortest body that anybody here looks at has a version and flags
        if size < 12 or start + size > len(content) or depth > _MOST_DEPTH:
            raise NotIndexableError
        body = content[start + 8 : start + size]
        yield kind, body
        if kind in _CONTAINERS:
            yield from _walk(body, depth + 1)
        start += size


def _u32(body: bytes, at: int) -> int:
    if at + 4 > len(body):
        raise NotIndexableError
    return int.from_bytes(body[at : at + 4], "big")
