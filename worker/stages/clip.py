"""Clip: cut the range into a verified file, unless an earlier attempt has stored it already."""

from dataclasses import replace
from pathlib import Path

from worker.domain.job import StageName
from worker.domain.media import ArtifactKind, ClipFile, Mode
from worker.media.cut import Cutter
from worker.stages.base import Work
from worker.stages.facts import clip_from_metadata
from worker.stages.keys import FINGERPRINT, artifact_key, clip_suffix
from worker.storage.base import Storage

#: where in the clip the poster is taken: first frames are often black
POSTER_AT = 1 / 3


class Clip:
    name = StageName.CLIP

    def __init__(self, cutter: Cutter, storage: Storage) -> None:
        self._cutter = cutter
        self._storage = storage

    async def run(self, work: Work) -> None:
        final = work.scratch / f"{work.job_id}-final{clip_suffix(has_video=_wants_video(work))}"
        clip = await self._stored(work, final)
        if clip is None:
            clip = await self._cut(work, final)
        work.maybe_clip = clip
        if work.resolved.request.poster and clip.has_video:
            work.poster = work.scratch / f"{work.job_id}-poster.jpg"
            await self._cutter.make_poster(clip, work.poster, at_seconds=clip.duration_seconds * POSTER_AT)

    async def _cut(self, work: Work, final: Path) -> ClipFile:
        resolved = work.resolved
        clip = await self._cutter.cut(
            resolved.source,
            resolved.probe,
            resolved.wanted,
            mode=resolved.request.mode,
            max_height=resolved.request.max_height,
            work_path=final.with_name(final.name.replace("-final", "-work")),
            on_progress=work.report.progress,
        )
        clip.path.rename(final)
        return replace(clip, path=final)

    async def _stored(self, work: Work, final: Path) -> ClipFile | None:
        """The clip of an earlier attempt, brought back for the stages that follow."""
        request = work.resolved.request
        key = artifact_key(request, work.job_id, ArtifactKind.CLIP, final.suffix)
        stored = await self._storage.head(key)
        if stored is None or stored.metadata.get(FINGERPRINT) != request.fingerprint:
            return None
        clip = clip_from_metadata(stored.metadata, final)
        if clip is not None:
            await self._storage.get(key, final)
            await work.report.event("skipped:artifact-exists", {"kind": ArtifactKind.CLIP, "key": key})
        return clip


def _wants_video(work: Work) -> bool:
    return work.resolved.request.mode is not Mode.AUDIO and work.resolved.probe.video is not None
