"""The language of DASH manifests (ISO/IEC 23009-1), as far as finished films without copy protection speak it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from worker.errors import SourceUnsupported
from worker.sources.base import public_label
from worker.sources.mpd_xml import Element, UnsafeXmlError, parse_xml
from worker.sources.presentation import Init, Part, Segment, Track, TrackBuilder, child_url
from worker.sources.segment_template import ManifestError, fill, number_of, timings

_DURATION: Final = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)
_RANGE: Final = re.compile(r"(\d{1,18})-(\d{1,18})", re.ASCII)
#: picture and sound that start further apart than this would be out of step
_OFFSET_SECONDS: Final = 0.001


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A track in one file, whose index must be read before its segments are known."""

    url: str
    #: where the index lies; None = somewhere near the beginning
    index: Part | None


@dataclass(frozen=True, slots=True)
class Manifest:
    main: Track | IndexedFile
    audio: Track | IndexedFile | None


@dataclass(frozen=True, slots=True)
class _Representation:
    """One version of the picture or the sound, with what its parents say about it."""

    kind: str
    attributes: Mapping[str, str]
    #: from the outermost to the innermost element
    chain: tuple[Element, ...]

    def merged(self, tag: str) -> Element | None:
        """Attributes and children of all elements called `tag`; inner ones win."""
        found = [element for parent in self.chain if (element := parent.first(tag)) is not None]
        if not found:
            return None
        merged = Element(tag, {})
        for element in found:
            merged.attributes |= element.attributes
            merged.children = [*element.children, *merged.children]
        return merged

    @property
    def rank(self) -> tuple[int, int]:
        return number_of(self.attributes, "height", 0), number_of(self.attributes, "bandwidth", 0)


def parse_mpd(content: bytes, base_url: str) -> Manifest:
    label = public_label(base_url)
    try:
        return _manifest(parse_xml(content), base_url)
    except (UnsafeXmlError, ManifestError) as exc:
        raise SourceUnsupported(f"{label} {exc}") from exc


def _manifest(mpd: Element, base_url: str) -> Manifest:
    if mpd.tag != "MPD":
        raise ManifestError("is no DASH manifest")
    if mpd.attributes.get("type", "static") != "static":
        raise ManifestError("is a live stream; only one that has ended can be cut")
    periods = mpd.all("Period")
    if len(periods) != 1:
        raise ManifestError(f"has {len(periods)} periods; only films of one can be cut")
    if mpd.has("ContentProtection"):
        raise ManifestError("is protected (DRM) and cannot be cut")
    seconds = _seconds(periods[0].attributes.get("duration") or mpd.attributes.get("mediaPresentationDuration"))
    best = _best(mpd, periods[0])
    chosen = [best[kind] for kind in ("video", "audio") if kind in best]
    if not chosen:
        raise ManifestError("has neither picture nor sound in MP4")
    if len({round(_offset_seconds(each) / _OFFSET_SECONDS) for each in chosen}) > 1:
        raise ManifestError("has picture and sound that start at different times")
    tracks = [_track(each, base_url, seconds) for each in chosen]
    return Manifest(tracks[0], tracks[1] if len(tracks) > 1 else None)


def _best(mpd: Element, period: Element) -> dict[str, _Representation]:
    """The best picture and, of the first sound there is, the best version."""
    best: dict[str, _Representation] = {}
    sound: Element | None = None
    for group in period.all("AdaptationSet"):
        for element in group.all("Representation"):
            attributes = {**group.attributes, **element.attributes}
            kind = attributes.get("mimeType", "")
            # something essential that we do not know, such as a version for fast forward, is not for us
            if kind not in {"video/mp4", "audio/mp4"} or group.first("EssentialProperty"):
                continue
            if kind == "audio/mp4" and (sound := sound or group) is not group:
                continue
            found = _Representation(kind[:5], attributes, (mpd, period, group, element))
            if kind[:5] not in best or found.rank > best[kind[:5]].rank:
                best[kind[:5]] = found
    return best


def _offset_seconds(representation: _Representation) -> float:
    for tag in ("SegmentTemplate", "SegmentList", "SegmentBase"):
        if (told := representation.merged(tag)) is not None:
            offset = number_of(told.attributes, "presentationTimeOffset", 0)
            return offset / _timescale(told)
    return 0.0


def _track(representation: _Representation, base_url: str, seconds: float | None) -> Track | IndexedFile:
    for parent in representation.chain:
        if (base := parent.first("BaseURL")) is not None:
            base_url = child_url(base_url, base.text)
    if (template := representation.merged("SegmentTemplate")) is not None:
        return _from_template(representation, template, base_url, seconds)
    if (listed := representation.merged("SegmentList")) is not None:
        return _from_list(listed, base_url, seconds)
    return _from_base(representation.merged("SegmentBase"), base_url)


def _from_template(representation: _Representation, template: Element, base_url: str, seconds: float | None) -> Track:
    told, timescale = template.attributes, _timescale(template)
    named = {
        "RepresentationID": representation.attributes.get("id", ""),
        "Bandwidth": representation.attributes.get("bandwidth", ""),
    }
    if "media" not in told:
        raise ManifestError("has a template without a name for segments")
    init = None
    if "initialization" in told:
        init = Init(Part(child_url(base_url, fill(told["initialization"], named))))
    found = TrackBuilder(public_label(base_url))
    for timing in timings(told, template.first("SegmentTimeline"), timescale, seconds):
        name = fill(told["media"], {**named, "Number": timing.number, "Time": timing.start})
        found.add(Segment(Part(child_url(base_url, name)), timing.duration / timescale, init))
    return found.track()


def _from_list(listed: Element, base_url: str, seconds: float | None) -> Track:
    timescale, urls = _timescale(listed), listed.all("SegmentURL")
    timed = timings(listed.attributes, listed.first("SegmentTimeline"), timescale, seconds, count=len(urls))
    first = listed.first("Initialization")
    init = None if first is None else Init(_part(base_url, first, "sourceURL", "range"))
    found = TrackBuilder(public_label(base_url))
    for url, timing in zip(urls, timed, strict=True):
        found.add(Segment(_part(base_url, url, "media", "mediaRange"), timing.duration / timescale, init))
    return found.track()


def _from_base(told: Element | None, base_url: str) -> IndexedFile:
    text = None if told is None else told.attributes.get("indexRange")
    return IndexedFile(base_url, None if text is None else _stretch(base_url, text))


def _part(base_url: str, element: Element, url_name: str, range_name: str) -> Part:
    url = child_url(base_url, element.attributes.get(url_name, ""))
    text = element.attributes.get(range_name)
    return Part(url) if text is None else _stretch(url, text)


def _stretch(url: str, text: str) -> Part:
    match = _RANGE.fullmatch(text.strip())
    if match is None or int(match.group(2)) < int(match.group(1)):
        raise ManifestError("has a byte range that is none")
    return Part(url, int(match.group(1)), int(match.group(2)) + 1 - int(match.group(1)))


def _timescale(told: Element) -> int:
    timescale = number_of(told.attributes, "timescale", 1)
    if timescale <= 0:
        raise ManifestError("has a clock that stands still")
    return timescale


def _seconds(text: str | None) -> float | None:
    """`PT1H2M3.5S` in seconds."""
    if text is None:
        return None
    match = _DURATION.fullmatch(text.strip())
    if match is None or len(text) > 64:
        raise ManifestError("has a length that is none")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + seconds
