"""Streams of a numbered film, an origin that serves them, and the worker's own way to read them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.playlists.streams import FPS, SECONDS, make_streams
from tests.servers import RangeServer, range_server
from worker.media.cut import Cutter
from worker.media.ffmpeg import find_ffmpeg
from worker.media.process import Limits
from worker.media.sample import make_sample
from worker.sources.address import AddressPolicy
from worker.sources.gateway import Gateway
from worker.sources.http import HttpSource, Spool
from worker.sources.http_client import HttpTimeouts
from worker.sources.playlists import Playlists


@pytest.fixture(scope="session")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("streams")
    film = make_sample(root / "film.mp4", seconds=SECONDS, fps=FPS, size=(320, 180), gop=FPS)
    make_streams(film, root)
    return root


@pytest.fixture
async def origin(streams: Path) -> AsyncIterator[RangeServer]:
    async with range_server(streams) as server:
        yield server


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    async with Gateway(resume_delays=(0, 0, 0)) as running:
        yield running


@pytest.fixture
def source(gateway: Gateway, tmp_path: Path) -> HttpSource:
    return HttpSource(
        gateway,
        policy=AddressPolicy(allow_private=True),
        spool=Spool(tmp_path / "spool", 1 << 30),
        timeouts=HttpTimeouts(connect_seconds=2.0, read_seconds=5.0),
        open_playlist=Playlists(gateway).open,
    )


@pytest.fixture
def cutter() -> Cutter:
    return Cutter(find_ffmpeg(None), limits=Limits(wall_seconds=30, stall_seconds=15))
