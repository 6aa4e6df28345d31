"""A gateway, and sources on top of it."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.servers import S3Server, seaweedfs
from worker.sources.address import AddressPolicy
from worker.sources.gateway import Gateway
from worker.sources.http import HttpSource, Spool
from worker.sources.http_client import HttpTimeouts

MakeHttpSource = Callable[..., HttpSource]


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as server:
        yield server


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    async with Gateway(resume_delays=(0, 0, 0)) as running:
        yield running


@pytest.fixture
async def child() -> AsyncIterator[aiohttp.ClientSession]:
    """Reads as a child would."""
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def make_source(gateway: Gateway, tmp_path: Path) -> MakeHttpSource:
    def make(
        *, allow_private: bool = True, max_bytes: int = 1 << 30, read_seconds: float = 5.0, resolver=None, slots=None
    ) -> HttpSource:
        return HttpSource(
            gateway,
            policy=AddressPolicy(allow_private),
            spool=Spool(tmp_path / "spool", max_bytes),
            timeouts=HttpTimeouts(connect_seconds=2.0, read_seconds=read_seconds),
            resolver=resolver,
            slots=slots,
        )

    return make


@pytest.fixture
def http_source(make_source: MakeHttpSource) -> HttpSource:
    return make_source()
