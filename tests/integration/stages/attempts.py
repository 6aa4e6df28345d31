"""Attempts of one job, by the stages themselves: real media, a real directory as storage, and no queue."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

from worker.asr import Recognizer
from worker.domain.job import JobId
from worker.media.apart import Prober
from worker.media.captions import CaptionsMaker
from worker.media.cut import Cutter
from worker.media.extras import ExtrasMaker
from worker.media.ffmpeg import find_ffmpeg
from worker.media.process import Limits
from worker.sources.catalog import SourceCatalog
from worker.sources.file import FileSource
from worker.stages.asr import Asr, DirectListener
from worker.stages.base import Work
from worker.stages.captions import CaptionsStep
from worker.stages.clip import Clip, DirectClip
from worker.stages.extras import ExtrasStep
from worker.stages.finalize import Finalize
from worker.stages.resolve import Resolve
from worker.stages.upload import Upload
from worker.storage.local import LocalStorage


class Timeline:
    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.data: list[dict[str, Any]] = []

    async def event(self, kind: str, data: Mapping[str, Any] | None = None) -> None:
        self.kinds.append(kind)
        self.data.append(dict(data or {}))

    def progress(self, fraction: float) -> None:
        """Nobody looks."""

    def clear(self) -> None:
        self.kinds.clear()
        self.data.clear()


class Attempts:
    """Runs attempts of one job, each in a scratch directory of its own."""

    def __init__(self, media: Path, root: Path, stack: AsyncExitStack, *, recognizer: Recognizer | None = None) -> None:
        self.storage = LocalStorage(root / "store")
        self.timeline = Timeline()
        self._recognizer = recognizer
        self._job_id = JobId(uuid4())
        self._media = media
        self._root = root
        self._stack = stack
        ffmpeg, limits = find_ffmpeg(None), Limits(wall_seconds=30, stall_seconds=15)
        maker = ExtrasMaker(ffmpeg, limits=limits)
        extras = ExtrasStep(maker, self.storage, has_recognizer=recognizer is not None)
        captions = CaptionsStep(CaptionsMaker(ffmpeg, limits=limits), self.storage)
        prober = Prober()
        stack.push_async_exit(prober)
        self.stages = {
            "resolve": Resolve(SourceCatalog([FileSource([media.parent])]), prober),
            "clip": Clip(DirectClip(Cutter(ffmpeg, limits=limits)), extras, self.storage),
            "upload": Upload(self.storage),
            "asr": Asr(DirectListener(maker, recognizer), captions, self.storage),
            "finalize": Finalize(self.storage),
        }

    @property
    def recognizer(self) -> Recognizer:
        assert self._recognizer is not None, "nobody listens here"
        return self._recognizer

    @property
    def stored(self) -> Path:
        return self.artifact("clip.mp4")

    def artifact(self, name: str) -> Path:
        return self._root / "store" / str(self._job_id) / name

    async def begin(self, *names: str, **wishes: Any) -> Work:
        scratch = self._root / uuid4().hex
        scratch.mkdir()
        spec = {"source": self._media.as_uri(), "start": 0.5, "end": 1.5, "transcript": False, **wishes}
        work = Work(self._job_id, spec, scratch, self.timeline, self._stack)
        await self.go_on(work, *names)
        return work

    async def go_on(self, work: Work, *names: str) -> None:
        for name in names:
            await self.stages[name].run(work)
