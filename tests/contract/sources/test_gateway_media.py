"""Real readers on the gateway: libavformat through PyAV, and the ffmpeg binary."""

import asyncio
import subprocess
from pathlib import Path

import av
import imageio_ffmpeg
import pytest

from tests.servers import range_server
from worker.errors import UpstreamFailure
from worker.sources.base import OpenedSource
from worker.sources.file import FileSource
from worker.sources.http import HttpSource

FFMPEG = imageio_ffmpeg.get_ffmpeg_exe()
FRAMES = 250


@pytest.fixture(scope="session")
def movie(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Noise, so that it is large enough to be read in several pieces; its index lies at the end."""
    path = tmp_path_factory.mktemp("movie") / "movie.mp4"
    picture = "nullsrc=s=320x180:r=25:d=10,noise=alls=60:allf=t"
    subprocess.run(
        [FFMPEG, "-v", "error", "-f", "lavfi", "-i", picture, "-c:v", "mpeg4", "-q:v", "2", "-y", str(path)],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    assert path.stat().st_size > 4_000_000
    return path


def count_frames(source: OpenedSource) -> int:
    with av.open(source.input, options={"protocol_whitelist": ",".join(source.protocols)}) as container:
        return sum(1 for packet in container.demux(video=0) if packet.size)


async def ffmpeg_copy(source: OpenedSource, out: Path, *options: str) -> int:
    process = await asyncio.create_subprocess_exec(
        FFMPEG, "-v", "error", "-nostdin", "-protocol_whitelist", ",".join(source.protocols), *options,
        "-i", source.input, "-c", "copy", "-f", "mp4", "-y", str(out),
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    return await process.wait()


async def test_pyav_reads_every_frame(http_source: HttpSource, movie: Path) -> None:
    async with range_server(movie.parent) as origin, http_source.open(origin.url(movie.name)) as source:
        assert await asyncio.to_thread(count_frames, source) == FRAMES
        assert source.failure() is None


async def test_ffmpeg_seeks_and_reads_only_its_part(http_source: HttpSource, movie: Path, tmp_path: Path) -> None:
    async with range_server(movie.parent) as origin, http_source.open(origin.url(movie.name)) as source:
        assert await ffmpeg_copy(source, tmp_path / "out.mp4", "-ss", "8", "-t", "1") == 0
        assert source.failure() is None
    assert (tmp_path / "out.mp4").stat().st_size > 100_000


async def test_broken_connections_are_invisible_to_ffmpeg(http_source: HttpSource, movie: Path, tmp_path: Path) -> None:
    async with range_server(movie.parent, cut_after=1_500_000) as origin:
        async with http_source.open(origin.url(movie.name)) as source:
            assert await ffmpeg_copy(source, tmp_path / "out.mp4") == 0
            assert source.failure() is None
        assert len(origin.requests) > 3
    with av.open(str(tmp_path / "out.mp4")) as container:
        assert container.streams.video[0].frames == FRAMES


async def test_source_that_goes_away_is_known_even_if_ffmpeg_ends_well(
    http_source: HttpSource, movie: Path, tmp_path: Path
) -> None:
    async with range_server(movie.parent) as origin, http_source.open(origin.url(movie.name)) as source:
        assert await asyncio.to_thread(count_frames, source) == FRAMES
        origin.cut_after = 1000
        await ffmpeg_copy(source, tmp_path / "out.mp4")
        assert isinstance(source.failure(), UpstreamFailure)


@pytest.mark.parametrize("name", ["-y.mp4", "%03d.mp4", "a:b.mp4", "new\nline.mp4", "http:.mp4", "x|y.mp4"])
async def test_ffmpeg_and_pyav_take_odd_file_names_as_names(movie: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.hardlink_to(movie)
    async with FileSource([tmp_path]).open(path.as_uri()) as source:
        assert await ffmpeg_copy(source, tmp_path / "out.mp4") == 0
        assert await asyncio.to_thread(count_frames, source) == FRAMES
