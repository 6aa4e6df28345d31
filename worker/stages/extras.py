"""Everything that is made beside the clip: what earlier attempts stored is used, the rest made in one run."""

import asyncio
from dataclasses import replace
from pathlib import Path

from worker.domain.media import ArtifactKind, ClipFile, TranscriptWish
from worker.domain.paging import PageKind
from worker.media.extras import ExtrasMaker
from worker.media.extras_argv import Extras, Poster, Rendition, SpriteSheet
from worker.media.peaks import write_waveform
from worker.media.sheet import Sheet, plan_sheet
from worker.stages.base import OutputFile, Work
from worker.stages.keys import rendition_name
from worker.stages.upload import fetch_artifact
from worker.storage.base import Storage

#: where in the clip the poster is taken if nobody says: first frames are often black
POSTER_AT = 1 / 3
SPRITE_NAME = "sprite.jpg"


class ExtrasStep:
    def __init__(self, maker: ExtrasMaker, storage: Storage, *, has_recognizer: bool) -> None:
        self._maker = maker
        self._storage = storage
        self._has_recognizer = has_recognizer

    async def run(self, work: Work, *, is_stored: bool, after: float) -> None:
        """`is_stored`: the clip is an earlier attempt's, so these may be too. `after`: where progress goes on."""
        await _tell_skipped(work)
        work.extras = wanted_files(work)
        missing = [
            # joined from pages, it is there already
            file
            for file in work.extras
            if not file.path.exists() and not (is_stored and await self._is_fetched(work, file))
        ]
        extras = self._extras(work, missing, is_stored=is_stored)
        made = await self._maker.make(
            work.clip,
            extras,
            quality=work.resolved.request.quality,
            on_progress=lambda fraction: work.report.progress(after + (1 - after) * fraction),
        )
        if made.cpu_fallback:
            await work.report.event("fallback:cpu", {"reason": made.cpu_fallback})
        if made.loudness is not None:
            work.maybe_clip = replace(work.clip, loudness=made.loudness)
        work.speech = extras.speech
        await asyncio.to_thread(_write_texts, work, missing)

    async def _is_fetched(self, work: Work, file: OutputFile) -> bool:
        return await fetch_artifact(self._storage, work, file) is not None

    def _extras(self, work: Work, missing: list[OutputFile], *, is_stored: bool) -> Extras:
        clip, request = work.clip, work.resolved.request
        by_kind = {file.kind: file.path for file in missing}
        wants_speech = request.transcript is not TranscriptWish.NONE and not is_stored
        # pages have listened already
        is_heard = self._has_recognizer and wants_speech and not (work.run and work.run.has(PageKind.SPEECH))
        needs_speech = clip.has_audio and (is_heard or ArtifactKind.WAVEFORM in by_kind)
        poster, sprite = by_kind.get(ArtifactKind.POSTER), by_kind.get(ArtifactKind.SPRITE)
        return Extras(
            poster=Poster(poster, _poster_seconds(work)) if poster else None,
            sprite=SpriteSheet(sprite, _sheet(work)) if sprite else None,
            renditions=tuple(Rendition(file.path, file.height) for file in missing if file.height is not None),
            speech=work.scratch / f"{work.job_id}-speech.wav" if needs_speech else None,
            loudness=work.scratch / "loudness.txt" if clip.has_audio and clip.loudness is None else None,
        )


def wanted_files(work: Work) -> list[OutputFile]:
    """What the request asks for and the clip allows."""
    clip, request = work.clip, work.resolved.request
    files = []
    if clip.has_video:
        files += [_file(work, ArtifactKind.RENDITION, rendition_name(height), height) for height in _heights(work)]
        if request.poster is not False:
            files.append(_file(work, ArtifactKind.POSTER, "poster.jpg"))
        if request.sprite is not None:
            files.append(_file(work, ArtifactKind.SPRITE, SPRITE_NAME))
            files.append(_file(work, ArtifactKind.THUMBNAILS, "sprite.vtt"))
    if clip.has_audio and request.waveform:
        files.append(_file(work, ArtifactKind.WAVEFORM, "waveform.json"))
    return files


def rendition_path(work: Work, height: int) -> Path:
    return _path(work, rendition_name(height))


async def _tell_skipped(work: Work) -> None:
    clip, request = work.clip, work.resolved.request
    if not clip.has_video and (request.renditions or request.sprite is not None):
        await work.report.event("skipped:no-picture")
    if clip.has_video and (skipped := [height for height in request.renditions if height >= clip.height]):
        await work.report.event("skipped:not-smaller", {"heights": skipped, "clip": clip.height})


def _heights(work: Work) -> list[int]:
    """Never scaled up, and never a second file of the same size."""
    return [height for height in work.resolved.request.renditions if height < work.clip.height]


def _poster_seconds(work: Work) -> float:
    poster, clip = work.resolved.request.poster, work.clip
    return clip.duration_seconds * POSTER_AT if isinstance(poster, bool) else _in_clip(poster, work, clip)


def _in_clip(seconds: float, work: Work, clip: ClipFile) -> float:
    """A copy begins earlier than it was asked to; the wish counts from where the clip should begin."""
    return seconds + max(0.0, work.resolved.wanted.start_seconds - clip.start_seconds)


def _sheet(work: Work) -> Sheet:
    sprite = work.resolved.request.sprite
    assert sprite is not None, "somebody asked for it"
    return plan_sheet(work.clip, sprite)


def _write_texts(work: Work, missing: list[OutputFile]) -> None:
    for file in missing:
        if file.kind is ArtifactKind.THUMBNAILS:
            file.path.write_text(_sheet(work).thumbnails(SPRITE_NAME), encoding="utf-8")
        elif file.kind is ArtifactKind.WAVEFORM:
            assert work.speech is not None, "it was made for this"
            write_waveform(work.speech, file.path)


def _file(work: Work, kind: ArtifactKind, name: str, height: int | None = None) -> OutputFile:
    return OutputFile(kind, name, _path(work, name), height)


def _path(work: Work, name: str) -> Path:
    return work.scratch / f"{work.job_id}-{name}"
