"""Our contender: the worker's own stages resolve and clip, as `worker/pipeline.py` puts them together."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from uuid import uuid4

from worker.app import open_checked_storage
from worker.domain.job import JobId, StageName
from worker.domain.media import ClipFile, ClipRange, Mode
from worker.pipeline import media_stages
from worker.settings import Settings, load_settings
from worker.stages.base import Stage, Work


def bench_settings(directory: Path, **overrides: Any) -> Settings:
    """Everything below `directory`, and nothing of what the environment says."""
    plain = {
        "database_url": None,
        "scratch_dir": directory,
        "storage_url": (directory / "artifacts").as_uri(),
        "allow_private_sources": True,
        "asr_engine": "none",
        "metrics_port": None,
        "queues": ("clip",),
    }
    return load_settings(**{**plain, **overrides})


class OurCutter:
    """Cuts as a running worker does; what a worker opens once is open already."""

    def __init__(self, stages: list[Stage], directory: Path) -> None:
        self._stages = stages
        self._directory = directory

    async def cut(self, url: str, wanted: ClipRange, *, mode: Mode) -> ClipFile:
        spec = {
            "source": url,
            "start": wanted.start_seconds,
            "end": wanted.end_seconds,
            "mode": mode,
            "poster": False,
            "transcript": False,
        }
        async with AsyncExitStack() as resources:
            scratch = Path(mkdtemp(dir=self._directory))
            work = Work(JobId(uuid4()), spec, scratch, _Silence(), resources)
            for stage in self._stages:
                await stage.run(work)
            return work.clip


@asynccontextmanager
async def open_our_cutter(directory: Path) -> AsyncIterator[OurCutter]:
    settings = bench_settings(directory)
    async with AsyncExitStack() as stack:
        storage = await open_checked_storage(settings, stack)
        stages = await media_stages(settings, storage, stack)
        cutting = [stage for stage in stages if stage.name in {StageName.RESOLVE, StageName.CLIP}]
        yield OurCutter(cutting, directory)


class _Silence:
    async def event(self, kind: str, data: Mapping[str, Any] | None = None) -> None:
        """Nobody keeps a timeline here."""

    def progress(self, fraction: float) -> None:
        """Nobody watches."""
