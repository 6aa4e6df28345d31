"""HLS and DASH in all their forms: exact to the frame, and only what is needed is fetched."""

from pathlib import Path
from urllib.parse import quote

import pytest

from tests.contract.playlists.cutting import cut_piece
from tests.contract.playlists.streams import DASH_FORMS, HLS_FORMS
from tests.probing import probe_apart
from tests.servers import RangeServer
from worker.domain.media import Mode
from worker.errors import SourceNotFound, SourceTooLarge, SourceUnsupported, UpstreamFailure
from worker.media.cut import Cutter
from worker.sources.address import AddressPolicy
from worker.sources.file import FileSource
from worker.sources.gateway import Gateway
from worker.sources.http import HttpSource, Spool
from worker.sources.playlists import Playlists

FORMS = [*(f"{form}/i.m3u8" for form in HLS_FORMS), *(f"{form}/i.mpd" for form in (*DASH_FORMS, "index"))]


def fetched(origin: RangeServer, directory: str) -> set[str]:
    """The files below `directory` that were asked for."""
    return {path.removeprefix(f"/{quote(directory)}/") for path, _ in origin.requests}


@pytest.mark.parametrize(
    ("stream", "mode", "start", "end"),
    [*((form, Mode.EXACT, 9.52, 11.3) for form in FORMS), *((form, Mode.SMART, 3.4, 6.6) for form in FORMS[::2])],
)
async def test_every_frame_of_the_range_and_no_other(
    origin: RangeServer,
    source: HttpSource,
    cutter: Cutter,
    tmp_path: Path,
    stream: str,
    mode: Mode,
    start: float,
    end: float,
) -> None:
    async with source.open(origin.url(quote(stream))) as opened:
        piece = await cut_piece(cutter, opened, tmp_path / "clip.mp4", start, end, mode=mode)
    assert piece.numbers == piece.expected(start, end)
    assert (piece.clip.mode, piece.clip.fallback) == (mode, "")
    assert piece.clip.has_audio


@pytest.mark.parametrize("mode", [Mode.EXACT, Mode.SMART, Mode.COPY])
@pytest.mark.parametrize("stream", ["ts/i.m3u8", "sound apart/i.m3u8"])
async def test_the_very_beginning(
    origin: RangeServer, source: HttpSource, cutter: Cutter, tmp_path: Path, stream: str, mode: Mode
) -> None:
    async with source.open(origin.url(quote(stream))) as opened:
        piece = await cut_piece(cutter, opened, tmp_path / "clip.mp4", 0.0, 1.5, mode=mode)
    assert piece.numbers[:36] == list(range(36))


async def test_a_copy_starts_on_the_keyframe_before(
    origin: RangeServer, source: HttpSource, cutter: Cutter, tmp_path: Path
) -> None:
    async with source.open(origin.url("fmp4/i.m3u8")) as opened:
        piece = await cut_piece(cutter, opened, tmp_path / "clip.mp4", 9.5, 12.0, mode=Mode.COPY)
    assert piece.numbers[0] == 225
    assert piece.clip.start_seconds == pytest.approx(9.0, abs=0.05)


async def test_sound_alone(origin: RangeServer, source: HttpSource, cutter: Cutter, tmp_path: Path) -> None:
    async with source.open(origin.url(quote("sound apart/i.m3u8"))) as opened:
        piece = await cut_piece(cutter, opened, tmp_path / "clip.mp4", 7.3, 9.8, mode=Mode.AUDIO)
    assert piece.clip.duration_seconds == pytest.approx(2.5, abs=0.03)


async def test_only_segments_near_the_range_are_fetched(
    origin: RangeServer, source: HttpSource, cutter: Cutter, tmp_path: Path
) -> None:
    async with source.open(origin.url("ts/i.m3u8")) as opened:
        assert fetched(origin, "ts") == {"i.m3u8"}
        piece = await cut_piece(cutter, opened, tmp_path / "clip.mp4", 13.0, 14.5, mode=Mode.SMART)
        assert opened.traffic.bytes_fetched < 12 * 100_000
    assert piece.numbers == piece.expected(13.0, 14.5)
    assert {"s6.ts", "s7.ts"} <= fetched(origin, "ts")
    assert fetched(origin, "ts").isdisjoint({"s2.ts", "s3.ts", "s4.ts", "s9.ts"})


@pytest.mark.parametrize("knobs", [{"ranges": False}, {"cut_after": 40_000}], ids=["no ranges", "broken connections"])
async def test_odd_origins_make_no_difference(
    origin: RangeServer, source: HttpSource, cutter: Cutter, tmp_path: Path, knobs: dict[str, object]
) -> None:
    async with source.open(origin.url("ts/i.m3u8")) as opened:
        for name, value in knobs.items():
            setattr(origin, name, value)
        piece = await cut_piece(cutter, opened, tmp_path / "clip.mp4", 3.4, 5.2)
    assert piece.numbers == piece.expected(3.4, 5.2)
    assert list((tmp_path / "spool").glob("*")) == []


async def test_a_segment_that_is_gone_fails_the_cut_though_ffmpeg_would_skip_it(
    origin: RangeServer, source: HttpSource, cutter: Cutter, tmp_path: Path, streams: Path
) -> None:
    (streams / "ts" / "hole.m3u8").write_text((streams / "ts" / "i.m3u8").read_text().replace("s5.ts", "gone.ts"))
    async with source.open(origin.url("ts/hole.m3u8")) as opened:
        with pytest.raises(SourceNotFound, match=r"gone\.ts does not exist"):
            await cut_piece(cutter, opened, tmp_path / "clip.mp4", 9.0, 11.0)


async def test_segments_that_must_be_kept_share_one_limit(
    origin: RangeServer, gateway: Gateway, cutter: Cutter, tmp_path: Path
) -> None:
    spool = Spool(tmp_path / "spool", 250_000)
    policy = AddressPolicy(allow_private=True)
    source = HttpSource(gateway, policy=policy, spool=spool, open_playlist=Playlists(gateway).open)
    origin.ranges = False
    async with source.open(origin.url("ts/i.m3u8")) as opened:
        with pytest.raises(SourceTooLarge, match="SOURCE_SPOOL_MAX_MB"):
            await cut_piece(cutter, opened, tmp_path / "clip.mp4", 3.0, 12.0)


async def test_an_origin_that_goes_away_fails_the_cut(
    origin: RangeServer, source: HttpSource, cutter: Cutter, tmp_path: Path
) -> None:
    async with source.open(origin.url("ts/i.m3u8")) as opened:
        await probe_apart(opened)
        origin.status = 503
        with pytest.raises(UpstreamFailure, match="not available now"):
            await cut_piece(cutter, opened, tmp_path / "clip.mp4", 9.0, 11.0)


async def test_the_best_variant_is_taken_and_no_other_is_touched(
    origin: RangeServer, source: HttpSource, streams: Path
) -> None:
    (streams / "master.m3u8").write_text(
        "#EXTM3U\n"
        "#EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=160x90\nsmall.m3u8\n"
        "#EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=320x180\nts/i.m3u8\n"
        "#EXT-X-STREAM-INF:BANDWIDTH=100000\nunknown.m3u8\n"
    )
    async with source.open(origin.url("master.m3u8")) as opened:
        probe = await probe_apart(opened)
    assert probe.video is not None
    assert probe.video.height == 180
    assert not {"/small.m3u8", "/unknown.m3u8"} & {path for path, _ in origin.requests}


async def test_old_playlists_in_whole_seconds_are_cut_exactly_too(
    origin: RangeServer, source: HttpSource, cutter: Cutter, tmp_path: Path, streams: Path
) -> None:
    """Five segments come a second later than the list says: as much as rounding to whole seconds may do to ten."""
    exact, told = "#EXTINF:2.000000,", (streams / "ts" / "i.m3u8").read_text()
    (streams / "ts" / "whole.m3u8").write_text(told.replace(exact, "#EXTINF:1,", 5).replace(exact, "#EXTINF:2,"))
    async with source.open(origin.url("ts/whole.m3u8")) as opened:
        piece = await cut_piece(cutter, opened, tmp_path / "clip.mp4", 9.52, 11.3)
    assert piece.numbers == piece.expected(9.52, 11.3)


async def test_a_name_and_a_type_do_not_make_a_playlist_and_do_not_hide_one(
    origin: RangeServer, source: HttpSource, streams: Path
) -> None:
    (streams / "ts" / "film.mp4").write_bytes((streams / "ts" / "i.m3u8").read_bytes())
    (streams / "film.m3u8").write_bytes((streams / "film.mp4").read_bytes())
    async with source.open(origin.url("ts/film.mp4")) as opened:
        assert (await probe_apart(opened)).format == "hls"
    async with source.open(origin.url("film.m3u8")) as opened:
        assert "mov" in (await probe_apart(opened)).format


async def test_a_playlist_in_a_local_file_is_no_source(streams: Path) -> None:
    async with FileSource([streams]).open((streams / "ts" / "i.m3u8").as_uri()) as opened:
        with pytest.raises(SourceUnsupported):
            await probe_apart(opened)


async def test_a_playlist_where_a_segment_should_be_is_refused(
    origin: RangeServer, source: HttpSource, streams: Path
) -> None:
    (streams / "nested.m3u8").write_text("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\nts/i.m3u8\n#EXT-X-ENDLIST\n")
    async with source.open(origin.url("nested.m3u8")) as opened:
        with pytest.raises(SourceUnsupported, match="playlist where a segment should be"):
            await probe_apart(opened)
