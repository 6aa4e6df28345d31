"""Which format is read, of those that yt-dlp reports."""

from typing import Any

import pytest

from worker.errors import SourceUnsupported
from worker.sources.ytdlp_choice import Choice, choose


def form(name: str, *, protocol: str = "https", **more: Any) -> dict[str, Any]:
    return {"url": f"https://cdn.example/{name}", "protocol": protocol, "ext": "mp4", **more}


def chosen(*formats: dict[str, Any], **info: Any) -> Choice:
    return choose({"formats": list(formats), **info}, "page")


SMALL = form("360.mp4", height=360, vcodec="avc1", acodec="mp4a")
PICTURE = form("1080.mp4", height=1080, vcodec="avc1", acodec="none", tbr=4000)
WEBM = form("1440.webm", height=1440, vcodec="vp9", acodec="none", ext="webm")
SOUND = form("sound.m4a", vcodec="none", acodec="mp4a", ext="m4a", abr=128)
LESS_SOUND = form("less.m4a", vcodec="none", acodec="mp4a", ext="m4a", abr=48)
STORYBOARD = form("board", protocol="mhtml", vcodec="none", acodec="none")


def stream(name: str, protocol: str = "m3u8_native", **more: Any) -> dict[str, Any]:
    return form(name, protocol=protocol, manifest_url=f"https://cdn.example/all-{name}", **more)


def test_a_larger_picture_is_worth_a_second_file() -> None:
    choice = chosen(SMALL, PICTURE, WEBM, LESS_SOUND, SOUND, STORYBOARD)
    assert (choice.url, choice.audio_url) == ("https://cdn.example/1080.mp4", "https://cdn.example/sound.m4a")


def test_a_file_with_both_is_preferred_when_it_is_as_large() -> None:
    full = {**SMALL, "url": "https://cdn.example/full.mp4", "height": 1080}
    assert chosen(SMALL, PICTURE, SOUND, full) == chosen(full)
    assert chosen(full).audio_url is None


@pytest.mark.parametrize("protocol", ["m3u8_native", "m3u8", "http_dash_segments"])
def test_of_a_stream_the_list_of_all_its_tracks_is_read(protocol: str) -> None:
    choice = chosen(SMALL, stream("hd", protocol, height=2160, vcodec="avc1", acodec="none"), PICTURE, SOUND)
    assert (choice.url, choice.audio_url) == ("https://cdn.example/all-hd", None)


def test_formats_of_unknown_codecs_are_taken_for_complete() -> None:
    assert chosen(form("film.mp4")).url == "https://cdn.example/film.mp4"


def test_of_two_as_large_the_one_in_plain_colours_is_taken() -> None:
    vivid = {**SMALL, "url": "https://cdn.example/hdr.mp4", "dynamic_range": "HDR10", "tbr": 9999}
    assert chosen(vivid, SMALL).url == SMALL["url"]


def test_sound_alone_is_better_than_nothing() -> None:
    assert chosen(SOUND, LESS_SOUND, STORYBOARD).url == "https://cdn.example/sound.m4a"


def test_of_several_films_the_first_is_meant() -> None:
    info = {"_type": "playlist", "entries": [None, {"formats": [SMALL]}, {"formats": [PICTURE]}]}
    assert choose(info, "page").url == SMALL["url"]


def test_a_single_format_may_stand_by_itself() -> None:
    assert choose(SMALL, "page").url == SMALL["url"]


def test_only_what_tells_who_asks_is_sent_along() -> None:
    headers = {"User-Agent": "Mozilla", "Referer": "https://page/", "X-Secret": "1", "Cookie": "a=b", "Accept": "*/*"}
    guise = chosen({**SMALL, "http_headers": headers, "cookies": "c=d; Domain=.cdn.example; Path=/"}).guise
    assert guise.headers == {"User-Agent": "Mozilla", "Referer": "https://page/"}
    assert guise.cookies == "a=b; c=d; Domain=.cdn.example; Path=/"
    assert guise.cookie_url == SMALL["url"]


@pytest.mark.parametrize(
    ("formats", "info", "reason"),
    [
        ([{**SMALL, "has_drm": True}], {}, "protected"),
        ([STORYBOARD], {}, "neither a file"),
        ([PICTURE], {}, "neither a file"),
        ([{**SMALL, "url": "file:///etc/passwd"}], {}, "neither a file"),
        ([{**SMALL, "url": None}], {}, "neither a file"),
        ([{**stream("x"), "manifest_url": "file:///etc/passwd"}], {}, "neither a file"),
        (["nonsense"], {}, "neither a file"),
        ([SMALL], {"is_live": True}, "live"),
        ([SMALL], {"live_status": "is_upcoming"}, "live"),
    ],
)
def test_what_cannot_be_read_is_told(formats: list[Any], info: dict[str, Any], reason: str) -> None:
    with pytest.raises(SourceUnsupported, match=reason):
        chosen(*formats, **info)
