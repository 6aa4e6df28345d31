"""HLS playlists: what is understood, what is refused, and what children get to see of it."""

import time
from typing import Any

import pytest

from worker.errors import SourceForbidden, SourceUnsupported
from worker.sources.hls import best_variant, sound_of
from worker.sources.m3u8 import MasterPlaylist, Rendition, Variant, parse_m3u8, write_track
from worker.sources.presentation import (
    MAX_CHARS_OF_ALL_URLS,
    MAX_URL_CHARS,
    Init,
    Key,
    Part,
    Segment,
    Track,
    TrackBuilder,
)

BASE = "https://cdn.example/films/one/list.m3u8?token=secret"


def parse(*lines: str, end: bool = True) -> Track:
    found = parse_m3u8("\n".join(["#EXTM3U", *lines, *(["#EXT-X-ENDLIST"] if end else [])]), BASE)
    assert isinstance(found, Track)
    return found


def refusal(*lines: str, end: bool = True) -> str:
    with pytest.raises(SourceUnsupported) as refused:
        parse(*lines, end=end)
    assert "secret" not in str(refused.value)
    return str(refused.value)


def test_segments_and_their_lengths() -> None:
    track = parse(
        "#EXTINF:2.5,title", "a.ts", "#EXTINF:1.25", "/b.ts", "#EXT-X-DISCONTINUITY", "#EXTINF:3.0,", "http://x/c"
    )
    assert track.segments == (
        Segment(Part("https://cdn.example/films/one/a.ts"), 2.5),
        Segment(Part("https://cdn.example/b.ts"), 1.25),
        Segment(Part("http://x/c"), 3.0, is_discontinuous=True),
    )


def test_byte_ranges_follow_each_other_unless_they_say_where_they_begin() -> None:
    track = parse(
        '#EXT-X-MAP:URI="all.mp4",BYTERANGE="700@0"',
        "#EXTINF:1.0,", "#EXT-X-BYTERANGE:100@700", "all.mp4",
        "#EXTINF:1.0,", "#EXT-X-BYTERANGE:50", "all.mp4",
    )  # fmt: skip
    url = "https://cdn.example/films/one/all.mp4"
    init = Init(Part(url, 0, 700))
    assert track.segments == (
        Segment(Part(url, 700, 100), 1.0, init),
        Segment(Part(url, 800, 50), 1.0, init),
    )


def test_keys_hold_until_the_next_one_and_count_segments_when_they_have_no_iv() -> None:
    track = parse(
        "#EXT-X-MEDIA-SEQUENCE:7",
        '#EXT-X-KEY:METHOD=AES-128,URI="k1"', "#EXTINF:1.0,", "a", "#EXTINF:1.0,", "b",
        '#EXT-X-KEY:METHOD=AES-128,URI="k2",IV=0xFF', "#EXTINF:1.0,", "c",
        "#EXT-X-KEY:METHOD=NONE", "#EXTINF:1.0,", "d",
    )  # fmt: skip
    folder = "https://cdn.example/films/one"
    keys = [segment.key for segment in track.segments]
    assert keys == [Key(f"{folder}/k1", 7), Key(f"{folder}/k1", 8), Key(f"{folder}/k2", 255), None]
    assert track.is_encrypted


def test_whole_seconds_are_taken_for_rounded_ones() -> None:
    rounded, told = parse("#EXTINF:2,", "a", "#EXTINF:2,", "b"), parse("#EXTINF:2,", "a", "#EXTINF:2.0,", "b")
    assert (rounded.is_rounded, told.is_rounded) == (True, False)


def test_a_master_playlist_names_variants_and_sound() -> None:
    found = parse_m3u8(
        "\ufeff#EXTM3U\n"
        '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="g",NAME="x, y",DEFAULT=YES,URI="en.m3u8"\n'
        '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="t",URI="file:///etc/passwd"\n'
        '#EXT-X-STREAM-INF:BANDWIDTH=1280000,CODECS="avc1,mp4a",RESOLUTION=1280x720,AUDIO="g"\r\n'
        "hd.m3u8\r\n",
        BASE,
    )
    assert isinstance(found, MasterPlaylist)
    (variant,), (rendition,) = found.variants, found.renditions
    assert (variant.height, variant.bandwidth, variant.audio_group) == (720, 1280000, "g")
    assert variant.url == "https://cdn.example/films/one/hd.m3u8"
    assert (rendition.group, rendition.url, rendition.is_default) == (
        "g",
        "https://cdn.example/films/one/en.m3u8",
        True,
    )


def test_the_largest_picture_is_best_and_of_two_as_large_the_one_in_plain_colours() -> None:
    def variant(height: int, **more: Any) -> Variant:
        return Variant("https://x/", **{"bandwidth": 1, "audio_group": "", "height": height, **more})

    small, large, vivid = variant(360, bandwidth=9), variant(720), variant(720, bandwidth=9, is_hdr=True)
    assert best_variant(MasterPlaylist((small, vivid, large), ())) == large
    assert best_variant(MasterPlaylist((small, variant(0, bandwidth=99)), ())) == small


def test_the_default_sound_of_the_variants_group_is_heard() -> None:
    variant = Variant("https://x/", bandwidth=1, height=1, audio_group="a")
    other, first, default = Rendition("b", "u", True), Rendition("a", "v", False), Rendition("a", "w", True)
    assert sound_of(MasterPlaylist((variant,), (other, first, default)), variant) == default
    assert sound_of(MasterPlaylist((variant,), (other, first)), variant) == first
    assert sound_of(MasterPlaylist((variant,), (other,)), variant) is None


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["a.ts"], "without a length"),
        (["#EXTINF:x,", "a.ts"], "without a length"),
        (["#EXTINF:-1,", "a.ts"], "impossible length"),
        (["#EXTINF:nan,", "a.ts"], "impossible length"),
        (["#EXTINF:1e300,", "a.ts"], "impossible length"),
        (["#EXT-X-BYTERANGE:5", "#EXTINF:1,", "a.ts"], "without a beginning"),
        (["#EXT-X-BYTERANGE:0@0", "#EXTINF:1,", "a.ts"], "byte range that is none"),
        (["#EXT-X-BYTERANGE:-5@0", "#EXTINF:1,", "a.ts"], "byte range that is none"),
        (['#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://x"', "#EXTINF:1,", "a.ts"], "protected (SAMPLE-AES)"),
        (['#EXT-X-KEY:METHOD=AES-128,URI="k",KEYFORMAT="com.apple"', "#EXTINF:1,", "a.ts"], "protected"),
        (['#EXT-X-KEY:METHOD=AES-128,URI="k",IV=0xZZ', "#EXTINF:1,", "a.ts"], "no 128-bit number"),
        (["#EXT-X-MEDIA-SEQUENCE:many"], "no number"),
        (["#EXT-X-I-FRAMES-ONLY"], "whole segments"),
        (['#EXT-X-DEFINE:NAME="a",VALUE="b"'], "whole segments"),
        (["#EXTINF:1,", "x" * MAX_URL_CHARS], "no URL"),
        (["#EXTINF:1,", "http://[::1/a"], "no URL"),
        ([], "names no segments"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_a_reason(lines: list[str], reason: str) -> None:
    assert reason in refusal(*lines)


def test_a_playlist_without_an_end_is_live() -> None:
    assert "is a live stream" in refusal("#EXTINF:1.0,", "a.ts", end=False)


@pytest.mark.parametrize(
    "uri", ["file:///etc/passwd", "data:,x", "ftp://x/y", "concat:a|b", "crypto:http://x", "http:///x"]
)
@pytest.mark.parametrize("line", ["{}", '#EXT-X-MAP:URI="{}"', '#EXT-X-KEY:METHOD=AES-128,URI="{}"'])
def test_nothing_but_the_web_may_be_named(uri: str, line: str) -> None:
    with pytest.raises(SourceForbidden):
        parse("#EXTINF:1.0,", line.format(uri), "a.ts")


def test_long_names_cannot_fill_the_memory() -> None:
    builder = TrackBuilder("list")
    long = Segment(Part("https://x/" + "y" * 8000), 1.0)
    for _ in range(MAX_CHARS_OF_ALL_URLS // len(long.part.url)):
        builder.add(long)
    with pytest.raises(SourceUnsupported, match="too many segments"):
        builder.add(long)


def test_what_is_written_names_only_what_it_is_told_to() -> None:
    key = Key("https://x/key", 3)
    init = Init(Part("https://x/init"), key)
    track = Track(
        (
            Segment(Part("https://x/a"), 2.0, init, key),
            Segment(Part("https://x/all", 5, 7), 3.2, init, None, is_discontinuous=True),
        )
    )
    names = {
        Part("https://x/key"): "k",
        Part("https://x/init"): "i",
        Part("https://x/a"): "a",
        Part("https://x/all", 5, 7): "b",
    }
    assert write_track(track, names.__getitem__).splitlines() == [
        "#EXTM3U", "#EXT-X-VERSION:7", "#EXT-X-TARGETDURATION:4", "#EXT-X-PLAYLIST-TYPE:VOD",
        '#EXT-X-KEY:METHOD=AES-128,URI="k",IV=0x00000000000000000000000000000003', '#EXT-X-MAP:URI="i"',
        "#EXTINF:2.000000,", "a",
        "#EXT-X-DISCONTINUITY", "#EXT-X-KEY:METHOD=NONE", "#EXTINF:3.200000,", "b",
        "#EXT-X-ENDLIST",
    ]  # fmt: skip


@pytest.mark.parametrize("filler", ["A", "\n", " ", "A=", ',A="', ",", "#EXT-X-KEY:", '"'])
def test_megabytes_of_nonsense_are_read_in_no_time(filler: str) -> None:
    text = "#EXTM3U\n#EXT-X-KEY:METHOD=" + filler * (2_000_000 // len(filler))
    began = time.process_time()
    with pytest.raises((SourceUnsupported, SourceForbidden)):
        parse_m3u8(text, BASE)
    assert time.process_time() - began < 5
