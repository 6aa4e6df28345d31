"""Our contender: the worker's own stages resolve and clip, as `worker/pipeline.py` puts them together."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from uuid import uuid4

from worker.app import open_checked_storage
from worker.domain.job import JobId
from worker.domain.media import ClipFile, ClipRange, Mode
from worker.media.apart import Prober
from worker.media.cut import Cutter
from worker.media.extras import ExtrasMaker
from worker.media.ffmpeg import find_ffmpeg
from worker.pipeline import child_limits, open_sources
from worker.settings import Settings, load_settings
from worker.stages.base import Stage, Work
from worker.stages.clip import Clip, DirectClip
from worker.stages.extras import ExtrasStep
from worker.stages.resolve import Resolve


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
        ffmpeg = await asyncio.to_thread(find_ffmpeg, settings.ffmpeg)
        limits = child_limits(settings)
        extras = ExtrasStep(ExtrasMaker(ffmpeg, limits=limits), storage, has_recognizer=False)
        prober = await stack.enter_async_context(Prober())
        resolve = Resolve(await open_sources(settings, stack), prober)
        yield OurCutter([resolve, Clip(DirectClip(Cutter(ffmpeg, limits=limits)), extras, storage)], directory)


class _Silence:
    async def event(self, kind: str, data: Mapping[str, Any] | None = None) -> None:
        """Nobody keeps a timeline here."""

    def progress(self, fraction: float) -> None:
        """Nobody watches."""
