"""A worker as its users run it, with real parts around it."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.conftest import Room
from tests.processes import Bench
from tests.servers import RangeServer, S3Server, range_server, seaweedfs
from worker.media.sample import make_sample


@pytest.fixture(scope="session")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `talk.mp4`: 8 s of numbered frames and speech."""
    folder = tmp_path_factory.mktemp("media")
    make_sample(folder / "talk.mp4", seconds=8, size=(320, 180))
    return folder


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with seaweedfs(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
async def origin(media: Path) -> AsyncIterator[RangeServer]:
    async with range_server(media) as server:
        yield server


@pytest.fixture
def bench(dsn: str, room: Room, tmp_path: Path, media: Path) -> Bench:
    return Bench(dsn, tmp_path, media, room)
