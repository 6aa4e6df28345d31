"""DASH manifests: what is understood, and what is refused."""

import struct

import pytest

from tests.contract.playlists.streams import mpd
from worker.errors import SourceForbidden, SourceUnsupported
from worker.sources.mpd import IndexedFile, parse_mpd
from worker.sources.mpd_xml import MAX_DEPTH
from worker.sources.playlist import PlaylistKind, kind_of
from worker.sources.presentation import Init, Part, Track
from worker.sources.sidx import find_sidx, parse_sidx

BASE = "https://cdn.example/films/list.mpd"
FOLDER = "https://cdn.example/films"


def adaptation(inside: str, *, kind: str = "video", **attributes: str) -> str:
    told = {"id": "r1", "bandwidth": "5", **attributes}
    written = " ".join(f'{name}="{value}"' for name, value in told.items())
    return f'<AdaptationSet mimeType="{kind}/mp4"><Representation {written}>{inside}</Representation></AdaptationSet>'


def parse(body: str, **attributes: str) -> Track:
    main = parse_mpd(mpd(body, **attributes).encode(), BASE).main
    assert isinstance(main, Track)
    return main


def urls(track: Track) -> list[str]:
    return [segment.part.url for segment in track.segments]


def test_a_template_with_numbers_ends_with_the_film() -> None:
    names = 'media="$RepresentationID$-$Number%03d$-$Bandwidth$-$$" initialization="i"'
    template = f'<SegmentTemplate timescale="10" duration="80" startNumber="3" {names}/>'
    track = parse(adaptation(template))
    assert urls(track) == [f"{FOLDER}/r1-{n:03d}-5-$" for n in (3, 4, 5)]
    assert [segment.seconds for segment in track.segments] == [8, 8, 4]
    assert {segment.init for segment in track.segments} == {Init(Part(f"{FOLDER}/i"))}


def test_a_template_with_a_timeline_repeats_until_the_next_entry_and_until_the_end() -> None:
    timeline = '<SegmentTimeline><S t="100" d="10" r="1"/><S d="20" r="-1"/><S t="180" d="5" r="-1"/></SegmentTimeline>'
    template = f'<SegmentTemplate timescale="10" presentationTimeOffset="0" media="$Time$">{timeline}</SegmentTemplate>'
    track = parse(adaptation(template))
    assert urls(track) == [f"{FOLDER}/{t}" for t in (100, 110, 120, 140, 160, 180, 185, 190, 195)]


def test_what_outer_elements_say_counts_for_inner_ones() -> None:
    inner = '<Representation id="a" bandwidth="1"><SegmentTemplate media="$Number$.m4s"/></Representation>'
    outer = '<BaseURL>video/</BaseURL><SegmentTemplate timescale="2" duration="20" media="wrong"/>'
    body = f'<BaseURL>../other/</BaseURL><AdaptationSet mimeType="video/mp4">{outer}{inner}</AdaptationSet>'
    assert urls(parse(body)) == [f"https://cdn.example/other/video/{n}.m4s" for n in (1, 2)]


def test_the_largest_picture_and_the_first_sound_are_taken() -> None:
    def version(name: str, kind: str, **attributes: str) -> str:
        return adaptation(f"<BaseURL>{name}.mp4</BaseURL>", kind=kind, **attributes)

    body = "".join([
        version("small", "video", height="360", bandwidth="9"), version("large", "video", height="720"),
        version("english", "audio"), version("german", "audio", bandwidth="99"),
        version("jumps", "video", height="9999").replace("<Repr", "<EssentialProperty/><Repr"),
        version("web", "video", height="9999").replace("video/mp4", "video/webm"),
    ])  # fmt: skip
    manifest = parse_mpd(mpd(body).encode(), BASE)
    assert manifest.main == IndexedFile(f"{FOLDER}/large.mp4", None)
    assert manifest.audio == IndexedFile(f"{FOLDER}/english.mp4", None)


def test_an_index_may_be_told() -> None:
    base = '<BaseURL>a.mp4</BaseURL><SegmentBase indexRange="700-899"><Initialization range="0-699"/></SegmentBase>'
    assert parse_mpd(mpd(adaptation(base)).encode(), BASE).main == IndexedFile(
        f"{FOLDER}/a.mp4", Part(f"{FOLDER}/a.mp4", 700, 200)
    )


@pytest.mark.parametrize(
    ("body", "attributes", "reason"),
    [
        ("", {"type": "dynamic"}, "live stream"),
        ("</Period><Period>", {}, "2 periods"),
        ("", {}, "neither picture nor sound"),
        (adaptation("<ContentProtection/>"), {}, "protected"),
        (adaptation('<SegmentTemplate media="$SubNumber$"/>'), {}, "how long its segments are"),
        (adaptation('<SegmentTemplate duration="1"/>'), {}, "without a name"),
        (adaptation('<SegmentTemplate duration="x" media="a"/>'), {}, "no number"),
        (adaptation('<SegmentTemplate duration="1" timescale="0" media="a"/>'), {}, "stands still"),
        (adaptation('<SegmentTemplate duration="1" timescale="9999999" media="$Number$"/>'), {}, "more than"),
        (
            adaptation('<SegmentTemplate duration="1" media="$Number$"/>'),
            {"mediaPresentationDuration": "long"},
            "length",
        ),
        (adaptation('<SegmentList duration="9"><SegmentURL mediaRange="9-2"/></SegmentList>'), {}, "byte range"),
        (
            adaptation('<SegmentTemplate duration="9" media="a"/>')
            + adaptation('<SegmentTemplate duration="9" media="a" presentationTimeOffset="1"/>', kind="audio"),
            {},
            "start at different times",
        ),
        ("<a>" * MAX_DEPTH + "</a>" * MAX_DEPTH, {}, "more elements"),
        ("<a>", {}, "well-formed"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(body: str, attributes: dict[str, str], reason: str) -> None:
    with pytest.raises(SourceUnsupported, match=reason):
        parse_mpd(mpd(body, **attributes).encode(), BASE)


@pytest.mark.parametrize("declared", ['[<!ENTITY a "b">]', 'SYSTEM "http://x/y.dtd"', ""])
def test_a_document_type_is_refused(declared: str) -> None:
    content = mpd(adaptation("<BaseURL>&a;</BaseURL>" if "ENTITY" in declared else "<BaseURL>a</BaseURL>"))
    with pytest.raises(SourceUnsupported, match="declares a document type"):
        parse_mpd(content.replace("<MPD", f"<!DOCTYPE MPD {declared}><MPD").encode(), BASE)


@pytest.mark.parametrize("base", ["file:///etc/passwd", "data:,x", "ftp://x/y"])
def test_nothing_but_the_web_may_be_named(base: str) -> None:
    with pytest.raises(SourceForbidden):
        parse_mpd(mpd(adaptation(f"<BaseURL>{base}</BaseURL>")).encode(), BASE)


def test_an_index_of_segments() -> None:
    entries = struct.pack(">IIIIII", 500, 2000, 0, 300, 1000, 0)
    body = struct.pack(">IIIIIHH", 0, 1, 1000, 0, 10, 0, 2) + entries
    box = struct.pack(">I4s", len(body) + 8, b"sidx") + body
    index = parse_sidx(box)
    assert index is not None
    assert (index.first_offset, index.size_bytes) == (10, len(box))
    assert [(entry.size_bytes, entry.seconds) for entry in index.entries] == [(500, 2.0), (300, 1.0)]
    assert find_sidx(struct.pack(">I4sI", 12, b"ftyp", 0) + box) == 12
    assert parse_sidx(box[:-1]) is None
    assert parse_sidx(box.replace(b"sidx", b"free")) is None
    assert find_sidx(bytes(64)) is None


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"#EXTM3U\n", PlaylistKind.HLS),
        (b"\xef\xbb\xbf#EXTM3U\n", PlaylistKind.HLS),
        (b'<?xml version="1.0"?>\n<!-- x --><MPD>', PlaylistKind.DASH),
        (b"<html>", None),
        (b"# a comment", None),
        (b"\x00\x00\x00\x18ftyp", None),
    ],
)
def test_content_tells_what_a_playlist_is(head: bytes, kind: PlaylistKind | None) -> None:
    assert kind_of(head) == kind
