"""Real yt-dlp against pages on loopback: it resolves, and it does nothing else."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path

import pytest

from tests.acceptance.worker.attacks.origin import hostile_origin
from tests.contract.playlists.cutting import cut_piece
from tests.probing import probe_apart
from tests.servers import RangeServer
from worker.errors import (
    InvalidRequest,
    SourceForbidden,
    SourceNotFound,
    SourceUnsupported,
    UpstreamFailure,
    YtdlpTimeout,
)
from worker.media.cut import Cutter
from worker.media.process import ChildResult, run_child
from worker.sources.address import AddressPolicy
from worker.sources.dash import read_indexed_files
from worker.sources.gateway import Gateway
from worker.sources.guard_proxy import GuardProxy
from worker.sources.http import HttpSource, Spool
from worker.sources.playlists import Playlists
from worker.sources.ytdlp import YtdlpSource
from worker.sources.ytdlp_run import YtdlpOptions

#: plays the internet beside 127.0.0.1, which stays private
PUBLIC = AddressPolicy(private_networks=(ip_network("127.0.0.2/32"),))
MakeSource = Callable[..., YtdlpSource]


@pytest.fixture
def make_ytdlp(gateway: Gateway, tmp_path: Path) -> MakeSource:
    def make(
        *,
        policy: AddressPolicy = AddressPolicy(allow_private=True),  # noqa: B008 - frozen
        timeout: float = 40,
        cookies: Path | None = None,
        proxy: str | None = None,
    ) -> YtdlpSource:
        playlists = Playlists(gateway)
        http = HttpSource(
            gateway, policy=policy, spool=Spool(tmp_path / "spool", 1 << 30), open_playlist=playlists.open
        )
        options = YtdlpOptions(timeout, tmp_path / "rooms", cookies)
        return YtdlpSource(http, playlists, options, policy=policy, proxy=proxy)

    return make


def page(*lines: str) -> bytes:
    return "\n".join(
        ["<!DOCTYPE html><html><head><title>A film</title></head><body>", *lines, "</body></html>"]
    ).encode()


async def test_the_film_of_a_page_is_cut_to_the_frame(
    origin: RangeServer, make_ytdlp: MakeSource, cutter: Cutter, streams: Path, tmp_path: Path
) -> None:
    (streams / "page.html").write_bytes(page('<video src="ts/i.m3u8" type="application/x-mpegURL"></video>'))
    async with make_ytdlp().open(f"ytdlp:{origin.url('page.html?token=secret')}") as opened:
        assert opened.label == f"ytdlp:{origin.url('page.html')}"
        piece = await cut_piece(cutter, opened, tmp_path / "clip.mp4", 3.4, 5.2)
    assert piece.numbers == piece.expected(3.4, 5.2)
    assert list((tmp_path / "rooms").iterdir()) == []


async def test_a_file_is_read_by_ranges_and_not_by_yt_dlp(
    origin: RangeServer, make_ytdlp: MakeSource, streams: Path
) -> None:
    async with make_ytdlp().open(f"ytdlp:{origin.url('film.mp4')}") as opened:
        assert "mov" in (await probe_apart(opened)).format
        assert opened.size_bytes == (streams / "film.mp4").stat().st_size


async def test_picture_and_sound_in_a_file_each_are_read_together(
    origin: RangeServer, source: HttpSource, gateway: Gateway, cutter: Cutter, tmp_path: Path
) -> None:
    async with source.connect() as web:
        both = await read_indexed_files(web, origin.url("index/video.mp4"), origin.url("index/audio.mp4"))
        async with Playlists(gateway).publish(web, both, label="film") as opened:
            piece = await cut_piece(cutter, opened, tmp_path / "clip.mp4", 9.5, 10.9)
    assert piece.numbers == piece.expected(9.5, 10.9)
    assert piece.clip.has_audio


async def test_too_slow_a_page_is_given_up(origin: RangeServer, make_ytdlp: MakeSource, tmp_path: Path) -> None:
    origin.delay_seconds = 30
    with pytest.raises(YtdlpTimeout, match=r"within 1\.5 s"):
        async with make_ytdlp(timeout=1.5).open(f"ytdlp:{origin.url('page.html')}"):
            pass
    assert list((tmp_path / "rooms").iterdir()) == []


@pytest.mark.parametrize("way", ["page", "redirect", "embedded"])
async def test_nothing_private_is_reached(origin: RangeServer, make_ytdlp: MakeSource, way: str) -> None:
    async with hostile_origin("127.0.0.2") as public:
        public.redirects["redirect.html"] = origin.url("film.mp4")
        public.files["embedded.html"] = page(f'<video src="{origin.url("film.mp4")}"></video>')
        url = origin.url("film.mp4") if way == "page" else f"{public.base}/{way}.html"
        with pytest.raises(SourceForbidden, match="private network"):
            async with make_ytdlp(policy=PUBLIC).open(f"ytdlp:{url}"):
                pass
    assert origin.requests == []


@pytest.mark.parametrize(
    ("name", "error"),
    [("gone.html", SourceNotFound), ("text.html", SourceUnsupported)],
)
async def test_what_yt_dlp_cannot_do_is_told(
    origin: RangeServer, make_ytdlp: MakeSource, streams: Path, name: str, error: type[Exception]
) -> None:
    (streams / "text.html").write_bytes(page("<p>No film here</p>"))
    with pytest.raises(error, match="yt-dlp could not read ytdlp:http") as refused:
        async with make_ytdlp().open(f"ytdlp:{origin.url(name)}?token=secret"):
            pass
    assert "secret" not in str(refused.value)


async def test_a_users_configuration_and_plugins_are_not_looked_at(
    origin: RangeServer, make_ytdlp: MakeSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, marker = tmp_path / "home", tmp_path / "marker"
    plugin = home / ".config/yt-dlp/plugins/evil/yt_dlp_plugins/extractor/evil.py"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(f"from pathlib import Path\nPath({str(marker)!r}).touch()\n")
    for config in (home / ".config/yt-dlp/config", home / "yt-dlp.conf"):
        config.write_text(f"--print-to-file id {marker}\n--exec before_dl:'touch {marker}'\n")
    for name, value in {"HOME": home, "XDG_CONFIG_HOME": home / ".config", "PYTHONPATH": home}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.chdir(home)
    async with make_ytdlp().open(f"ytdlp:{origin.url('film.mp4')}"):
        pass
    assert not marker.exists()
    # the trap works: yt-dlp as people run it falls into it
    command = [sys.executable, "-m", "yt_dlp", "-J", origin.url("film.mp4")]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True, timeout=40)
    assert marker.exists()


async def test_cookies_reach_the_page_and_nobody_else(
    make_ytdlp: MakeSource, streams: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jar = tmp_path / "cookies.txt"
    jar.write_text("# Netscape HTTP Cookie File\n127.0.0.2\tFALSE\t/\tFALSE\t0\tsession\tc00kie-s3cret\n")
    before = jar.read_bytes()
    monkeypatch.setenv("DATABASE_URL", "postgres://secret")
    told: list[str] = []

    async def watched(argv: list[str], *, environment: dict[str, str], **more: object) -> ChildResult:
        told.extend([*argv, *environment, *environment.values()])
        return await run_child(argv, environment=environment, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("worker.sources.ytdlp_run.run_child", watched)
    async with hostile_origin("127.0.0.2") as public:
        public.files["film.mp4"] = (streams / "film.mp4").read_bytes()
        async with make_ytdlp(policy=PUBLIC, cookies=jar).open(f"ytdlp:{public.base}/film.mp4"):
            pass
        assert any("session=c00kie-s3cret" in headers.get("cookie", "") for headers in public.headers)
    assert jar.read_bytes() == before
    assert not [word for word in told if "s3cret" in word or "clipboss:" in word or "postgres" in word]
    assert list((tmp_path / "rooms").iterdir()) == []


async def test_an_upstream_proxy_carries_page_and_film(make_ytdlp: MakeSource, origin: RangeServer) -> None:
    async with GuardProxy(AddressPolicy(allow_private=True)) as upstream:
        source = make_ytdlp(proxy=upstream.url)
        async with source.open(f"ytdlp:{origin.url('film.mp4')}") as opened:
            assert (await probe_apart(opened)).video is not None
    with pytest.raises(UpstreamFailure):
        async with source.open(f"ytdlp:{origin.url('film.mp4')}"):
            pass


async def test_without_yt_dlp_the_extra_is_named(make_ytdlp: MakeSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yt_dlp", None)
    with pytest.raises(SourceUnsupported, match=r"clipboss\[ytdlp\]"):
        async with make_ytdlp().open("ytdlp:https://example.com/"):
            pass


@pytest.mark.parametrize("page", ["", "file:///etc/passwd", "ytsearch:cats", "https://", "https://x/ --exec"])
async def test_only_web_pages_are_asked(make_ytdlp: MakeSource, page: str) -> None:
    with pytest.raises(InvalidRequest):
        async with make_ytdlp().open(f"ytdlp:{page}"):
            pass
