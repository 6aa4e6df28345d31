"""What people read of a transcript: caption files, plain text, and the clip with its captions."""

import asyncio
from pathlib import Path

from worker.domain.captions import make_cues, to_srt, to_text, to_vtt
from worker.domain.media import ArtifactKind, CaptionWish
from worker.domain.transcript import Transcript
from worker.media.captions import CaptionsMaker
from worker.stages.base import OutputFile, Work
from worker.stages.upload import fetch_artifact, store_artifact
from worker.storage.base import Storage

CAPTIONED_NAME = "clip-captioned.mp4"
#: where the stage's progress goes on after recognition
AFTER_SPEECH = 0.9


class CaptionsStep:
    def __init__(self, maker: CaptionsMaker, storage: Storage) -> None:
        self._maker = maker
        self._storage = storage

    async def run(self, work: Work) -> None:
        transcript = work.transcript
        assert transcript is not None, "it is what captions are made of"
        # In a thread: an hour of words takes seconds.
        for file in await asyncio.to_thread(_write_texts, work, transcript):
            await store_artifact(self._storage, work, file)
        wish = work.resolved.request.captions
        if wish is None:
            return
        if not work.clip.has_video:
            await work.report.event("skipped:no-picture")
        elif not transcript.words:
            await work.report.event("skipped:no-speech")
        else:
            await self._captioned(work, transcript, wish)

    async def _captioned(self, work: Work, transcript: Transcript, wish: CaptionWish) -> None:
        file = OutputFile(ArtifactKind.CAPTIONED, CAPTIONED_NAME, _path(work, CAPTIONED_NAME))
        if await fetch_artifact(self._storage, work, file) is None:
            if wish is CaptionWish.TRACK:
                await self._maker.add_track(work.clip, transcript, file.path)
            else:
                made = await self._maker.burn(
                    work.clip,
                    transcript,
                    file.path,
                    quality=work.resolved.request.quality,
                    on_progress=lambda part: work.report.progress(AFTER_SPEECH + (1 - AFTER_SPEECH) * part),
                )
                if made.cpu_fallback:
                    await work.report.event("fallback:cpu", {"reason": made.cpu_fallback})
        await store_artifact(self._storage, work, file)


def _write_texts(work: Work, transcript: Transcript) -> list[OutputFile]:
    cues = make_cues(transcript, until_seconds=work.clip.duration_seconds)
    contents = {
        _file(work, ArtifactKind.SRT, "transcript.srt"): to_srt(cues),
        _file(work, ArtifactKind.VTT, "transcript.vtt"): to_vtt(cues, language=transcript.language),
        _file(work, ArtifactKind.TEXT, "transcript.txt"): to_text(transcript),
    }
    for file, content in contents.items():
        file.path.write_text(content, encoding="utf-8")
    return list(contents)


def _file(work: Work, kind: ArtifactKind, name: str) -> OutputFile:
    return OutputFile(kind, name, _path(work, name))


def _path(work: Work, name: str) -> Path:
    return work.scratch / f"{work.job_id}-{name}"
