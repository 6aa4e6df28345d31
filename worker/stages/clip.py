"""Clip: cut the range into a verified file, unless an earlier attempt has stored it, and make what goes with it."""

from dataclasses import replace
from pathlib import Path

from worker.domain.job import StageName
from worker.domain.media import ArtifactKind, ClipFile, Mode
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


class Clip:
    name = StageName.CLIP

    def __init__(self, cutter: Cutter, extras: ExtrasStep, storage: Storage) -> None:
        self._cutter = cutter
        self._extras = extras
        self._storage = storage

    async def run(self, work: Work) -> None:
        name = clip_name(has_video=_wants_video(work))
        final = work.scratch / f"{work.job_id}-final{Path(name).suffix}"
        clip = await self._stored(work, OutputFile(ArtifactKind.CLIP, name, final))
        share = CUT_SHARE_WITH_RENDITIONS if work.resolved.request.renditions else CUT_SHARE
        work.maybe_clip = clip or await self._cut(work, final, share)
        await self._extras.run(work, is_stored=clip is not None or bool(work.damaged), after=share)

    async def _cut(self, work: Work, final: Path, share: float) -> ClipFile:
        resolved, request = work.resolved, work.resolved.request
        clip = await self._cutter.cut(
            resolved.source,
            resolved.probe,
            resolved.wanted,
            mode=request.mode,
            work_path=final.with_name(final.name.replace("-final", "-work")),
            style=Style(
                max_height=request.max_height,
                quality=request.quality,
                loudness=request.loudness,
                is_lead_hidden=request.hide_lead,
            ),
            on_progress=lambda fraction: work.report.progress(share * fraction),
        )
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


def _wants_video(work: Work) -> bool:
    return work.resolved.request.mode is not Mode.AUDIO and work.resolved.probe.video is not None
