"""Which of the formats that yt-dlp found is read: the largest picture that comes with sound."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from worker.errors import SourceUnsupported
from worker.sources.http_client import Guise

_DIRECT: Final = frozenset({"http", "https"})
_STREAMING: Final = frozenset({"m3u8", "m3u8_native", "http_dash_segments"})
#: what a player needs to say who it is; anything else is between yt-dlp and the site
_HEADERS: Final = frozenset({"user-agent", "referer", "origin"})
_MP4: Final = frozenset({"mp4", "m4a"})

Format = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    #: a file or a playlist
    url: str
    guise: Guise
    #: set when `url` is a fragmented MP4 file without sound, and this one is its sound
    audio_url: str | None = None


def choose(info: Format, label: str) -> Choice:
    """The choice among what `yt-dlp -J` prints."""
    if info.get("_type") == "playlist":
        info = next((entry for entry in info.get("entries") or [] if isinstance(entry, Mapping)), {})
    if info.get("is_live") or info.get("live_status") in {"is_live", "is_upcoming"}:
        raise SourceUnsupported(f"{label} is a live stream; only one that has ended can be cut")
    given = info.get("formats") or [info]
    formats = [each for each in given if isinstance(each, Mapping) and _is_readable(each)]
    whole = max((each for each in formats if _is_whole(each)), key=_rank, default=None)
    picture = max((each for each in formats if _is_half(each, "vcodec")), key=_rank, default=None)
    sound = max((each for each in formats if _is_half(each, "acodec")), key=_rank, default=None)
    if picture and sound and (whole is None or _rank(picture)[0] > _rank(whole)[0]):
        return Choice(picture["url"], _guise(picture), sound["url"])
    best = whole or max((each for each in formats if _has(each, "acodec")), key=_rank, default=None)
    if best is None:
        raise SourceUnsupported(f"{label} has no format that can be read: {_reason(given)}")
    return Choice(_address(best), _guise(best))


def _is_readable(each: Format) -> bool:
    known = each.get("protocol") in _DIRECT | _STREAMING
    return known and not each.get("has_drm") and _is_web(each.get("url")) and _is_web(_address(each))


def _is_web(url: object) -> bool:
    try:
        return isinstance(url, str) and urlsplit(url).scheme in _DIRECT
    except ValueError:
        return False


def _address(each: Format) -> str:
    """Of a stream the playlist with all its tracks, which we choose from ourselves."""
    streams = each.get("protocol") in _STREAMING
    return str(each.get("manifest_url") or each["url"]) if streams else str(each["url"])


def _is_whole(each: Format) -> bool:
    if each.get("protocol") == "http_dash_segments" and not each.get("manifest_url"):
        return False
    has_sound = _has(each, "acodec") or (each.get("protocol") in _STREAMING and bool(each.get("manifest_url")))
    return _has(each, "vcodec") and has_sound


def _is_half(each: Format, codec: str) -> bool:
    other = "acodec" if codec == "vcodec" else "vcodec"
    is_file = each.get("protocol") in _DIRECT and each.get("ext") in _MP4
    return is_file and _has(each, codec) and not _has(each, other)


def _has(each: Format, codec: str) -> bool:
    # what yt-dlp does not know it leaves out; "none" means that there is none
    return each.get(codec) != "none"


def _rank(each: Format) -> tuple[float, bool, float]:
    is_plain = each.get("dynamic_range") in {None, "SDR"}
    return _number(each.get("height")), is_plain, _number(each.get("tbr") or each.get("abr"))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _guise(each: Format) -> Guise:
    told = each.get("http_headers")
    headers = {str(name): str(value) for name, value in told.items()} if isinstance(told, Mapping) else {}
    sent = [value for name, value in headers.items() if name.lower() == "cookie"]
    cookies = [*sent, *([each["cookies"]] if isinstance(each.get("cookies"), str) else [])]
    return Guise(
        headers={name: value for name, value in headers.items() if name.lower() in _HEADERS and value.isprintable()},
        cookies="; ".join(cookies),
        cookie_url=str(each["url"]),
    )


def _reason(given: Sequence[Any]) -> str:
    formats = [each for each in given if isinstance(each, Mapping)]
    if formats and all(each.get("has_drm") for each in formats):
        return "it is protected (DRM)"
    return "neither a file nor HLS nor DASH with picture and sound"
