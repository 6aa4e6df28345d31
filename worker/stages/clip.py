"""Clip: cut the range into a verified file, unless an earlier attempt has stored it, and make what goes with it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from worker.domain.job import StageName
from worker.domain.media import ArtifactKind, ClipFile, Mode
from worker.domain.request import ClipRequest
from worker.media.cut import Cutter, Style
from worker.stages.base import OutputFile, Work
from worker.stages.extras import ExtrasStep
from worker.stages.facts import clip_from_metadata
from worker.stages.keys import clip_name
from worker.stages.upload import fetch_artifact
from worker.storage.base import Storage

#: how much of the stage the cut itself is
CUT_SHARE = 0.9
CUT_SHARE_WITH_RENDITIONS = 0.5


class ClipMaker(Protocol):
    async def make(self, work: Work, path: Path, *, on_progress: Callable[[float], None]) -> ClipFile | None:
        """Write `path` and vouch for it. None: the job goes on another time; `work.ending` says how."""


class DirectClip:
    """Cuts the range out of the source, here and now."""

    def __init__(self, cutter: Cutter) -> None:
        self._cutter = cutter

    async def make(
        self, work: Work, path: Path, *, on_progress: Callable[[float], None], may_fall_back: bool = True
    ) -> ClipFile:
        resolved, request = work.resolved, work.resolved.request
        return await self._cutter.cut(
            resolved.source,
            resolved.probe,
            resolved.wanted,
            mode=request.mode,
            work_path=path,
            style=style_of(request),
            may_fall_back=may_fall_back,
            on_progress=on_progress,
        )


class Clip:
    name = StageName.CLIP

    def __init__(self, maker: ClipMaker, extras: ExtrasStep, storage: Storage) -> None:
        self._maker = maker
        self._extras = extras
        self._storage = storage

    async def run(self, work: Work) -> None:
        name = clip_name(has_video=_wants_video(work))
        final = work.scratch / f"{work.job_id}-final{Path(name).suffix}"
        clip = await self._stored(work, OutputFile(ArtifactKind.CLIP, name, final))
        share = CUT_SHARE_WITH_RENDITIONS if work.resolved.request.renditions else CUT_SHARE
        made = clip or await self._make(work, final, share)
        if made is None:
            return
        work.maybe_clip = made
        await self._extras.run(work, is_stored=clip is not None or bool(work.damaged), after=share)

    async def _make(self, work: Work, final: Path, share: float) -> ClipFile | None:
        clip = await self._maker.make(
            work,
            final.with_name(final.name.replace("-final", "-work")),
            on_progress=lambda fraction: work.report.progress(share * fraction),
        )
        if clip is None:
            return None
        if clip.fallback:
            await work.report.event("fallback:exact", {"reason": clip.fallback})
        if clip.cpu_fallback:
            await work.report.event("fallback:cpu", {"reason": clip.cpu_fallback})
        clip.path.rename(final)
        return replace(clip, path=final)

    async def _stored(self, work: Work, file: OutputFile) -> ClipFile | None:
        """The clip of an earlier attempt, brought back for the stages that follow."""
        stored = await fetch_artifact(self._storage, work, file)
        return clip_from_metadata(stored.metadata, file.path) if stored else None


def style_of(request: ClipRequest) -> Style:
    return Style(
        max_height=request.max_height,
        quality=request.quality,
        loudness=request.loudness,
        is_lead_hidden=request.hide_lead,
    )


def _wants_video(work: Work) -> bool:
    return work.resolved.request.mode is not Mode.AUDIO and work.resolved.probe.video is not None
