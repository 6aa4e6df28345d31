"""Real ffmpeg, and sources whose every frame tells its number."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from subprocess import run

import pytest

from tests.integration.media.clips import LocalSource
from worker.media.cut import Cutter
from worker.media.ffmpeg import find_ffmpeg
from worker.media.process import Limits
from worker.media.sample import make_sample

SampleMaker = Callable[..., LocalSource]


@pytest.fixture(scope="session")
def ffmpeg_path() -> Path:
    return find_ffmpeg(None)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> SampleMaker:
    """Makes each kind of sample once; small, so that cutting it takes no time."""
    made: dict[tuple[object, ...], LocalSource] = {}

    def make(
        *, seconds: float = 6, fps: Fraction | int = 30, gop: int = 30, b_frames: int = 2, faststart: bool = True
    ) -> LocalSource:
        key = (seconds, fps, gop, b_frames, faststart)
        if key not in made:
            path = tmp_path_factory.mktemp("sample") / "sample.mp4"
            make_sample(
                path, seconds=seconds, fps=fps, size=(320, 180), gop=gop, b_frames=b_frames, faststart=faststart
            )
            made[key] = LocalSource(path)
        return made[key]

    return make


@pytest.fixture
def remux(ffmpeg_path: Path, tmp_path: Path) -> Callable[..., LocalSource]:
    """Another file made of a source by ffmpeg: other container, fewer tracks, late tracks, turned pictures."""

    def make(source: LocalSource, name: str, *options: str, before: tuple[str, ...] = ()) -> LocalSource:
        path = tmp_path / name
        command = [str(ffmpeg_path), "-v", "error", *before, "-i", str(source.path), *options, "-y", str(path)]
        run(command, check=True, timeout=20)
        return LocalSource(path)

    return make


@pytest.fixture
def cutter(ffmpeg_path: Path) -> Cutter:
    return Cutter(ffmpeg_path, limits=Limits(wall_seconds=30, stall_seconds=15))


@pytest.fixture
def work_path(tmp_path: Path) -> Path:
    return tmp_path / "clip-work.mp4"
