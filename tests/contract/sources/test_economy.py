"""What a clip of a long remote film costs in bytes, with the real children."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.contract.sources.films import LAYOUTS, make_film, make_reel
from tests.probing import probe_apart
from tests.servers import RangeServer, range_server
from worker.domain.media import ClipRange, Mode
from worker.media.boxes import walk_boxes
from worker.media.cut import Cutter
from worker.media.ffmpeg import find_ffmpeg
from worker.media.process import Limits
from worker.sources.http import HttpSource

MINUTES = 10
CLIP = ClipRange(301.3, 331.3)
#: libavformat cannot be helped here: to insert an index would move what the fragments point to
COSTLY = "fragments-with-absolute-offsets"


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("films")
    reel = make_reel(directory / "reel.mp4")
    for layout in LAYOUTS.keys() - {COSTLY}:
        make_film(reel, directory / f"{layout}.mp4", layout, loops=MINUTES * 6)
    return directory


@pytest.fixture
async def origin(films: Path) -> AsyncIterator[RangeServer]:
    async with range_server(films) as server:
        yield server


def allowance(film: Path) -> float:
    """The index, and one and a half times the clip's own part of the rest."""
    with film.open("rb") as file:
        layout = walk_boxes(file)
    index = sum(box.size for box in layout.boxes if box.kind != "mdat")
    return index + 1.5 * (layout.file_bytes - index) * CLIP.duration_seconds / (MINUTES * 60)


async def cut(http: HttpSource, url: str, mode: Mode, path: Path) -> tuple[int, int]:
    """The bytes that were fetched, and the frames of the clip."""
    async with http.open(url) as source:
        probe = await probe_apart(source)
        cutter = Cutter(await asyncio.to_thread(find_ffmpeg, None), limits=Limits(60))
        clip = await cutter.cut(source, probe, CLIP, mode=mode, work_path=path)
        return source.traffic.bytes_fetched, clip.frames


@pytest.mark.parametrize(
    ("layout", "mode"),
    [
        *((layout, Mode.SMART) for layout in sorted(LAYOUTS.keys() - {COSTLY})),
        ("index-first", Mode.EXACT),
        ("fragments-with-mfra", Mode.EXACT),
    ],
)
async def test_clip_costs_its_own_bytes_and_the_index(
    http_source: HttpSource, origin: RangeServer, films: Path, tmp_path: Path, layout: str, mode: Mode
) -> None:
    fetched, frames = await cut(http_source, origin.url(f"{layout}.mp4"), mode, tmp_path / "clip.mp4")
    assert frames >= CLIP.duration_seconds * 10 - 1
    assert fetched <= allowance(films / f"{layout}.mp4")


@pytest.mark.parametrize("layout", ["index-last", "fragments-without-index"])
async def test_many_clips_of_one_film_read_its_index_once(
    http_source: HttpSource, origin: RangeServer, films: Path, tmp_path: Path, layout: str
) -> None:
    url = origin.url(f"{layout}.mp4")
    first, _ = await cut(http_source, url, Mode.COPY, tmp_path / "clip.mp4")
    origin.requests.clear()
    second, _ = await cut(http_source, url, Mode.COPY, tmp_path / "clip.mp4")
    assert first > 1_000_000
    assert second < 500_000
    assert len(origin.requests) < 10
