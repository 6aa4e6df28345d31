"""Asr: what is said in the clip, as text with times."""

import json
from pathlib import Path
from typing import Any

import aiofiles

from worker.asr.base import Recognizer
from worker.asr.none import NoRecognizer
from worker.domain.job import StageName
from worker.domain.media import ArtifactKind, Segment, Transcript
from worker.media.extras import ExtrasMaker
from worker.media.extras_argv import Extras
from worker.stages.base import OutputFile, Work
from worker.stages.upload import fetch_artifact, store_artifact
from worker.storage.base import Storage


class Asr:
    name = StageName.ASR

    def __init__(self, maker: ExtrasMaker, recognizer: Recognizer, storage: Storage) -> None:
        self._maker = maker
        self._recognizer = recognizer
        self._storage = storage

    async def run(self, work: Work) -> None:
        request = work.resolved.request
        if not request.transcript:
            return
        if isinstance(self._recognizer, NoRecognizer):
            await work.report.event("skipped:no-engine")
            return
        if not work.clip.has_audio:
            await work.report.event("skipped:no-audio")
            return
        path = work.scratch / f"{work.job_id}-transcript.json"
        file = OutputFile(ArtifactKind.TRANSCRIPT, "transcript.json", path)
        if await fetch_artifact(self._storage, work, file) is None:
            await self._recognize(work, path)
        work.transcript = await _read(path)
        await store_artifact(self._storage, work, file)

    async def _recognize(self, work: Work, path: Path) -> None:
        wav = work.speech
        if wav is None:
            # an earlier attempt stored everything but the transcript
            wav = work.scratch / f"{work.job_id}-speech.wav"
            await self._maker.make(work.clip, Extras(speech=wav))
        work.report.progress(0.1)
        transcript = await self._recognizer.transcribe(wav, language=work.resolved.request.language)
        text = json.dumps(transcript_json(transcript), ensure_ascii=False, indent=1)
        async with aiofiles.open(path, "w", encoding="utf-8") as file:
            await file.write(text)


def transcript_json(transcript: Transcript) -> dict[str, Any]:
    """The artifact's shape; times in seconds from the clip's start."""
    return {
        "engine": transcript.engine,
        "language": transcript.language,
        "text": transcript.text,
        "segments": [
            {"start": segment.start_seconds, "end": segment.end_seconds, "text": segment.text}
            for segment in transcript.segments
        ],
    }


async def _read(path: Path) -> Transcript:
    async with aiofiles.open(path, encoding="utf-8") as file:
        found = json.loads(await file.read())
    segments = tuple(Segment(item["start"], item["end"], item["text"]) for item in found["segments"])
    return Transcript(found["engine"], found["language"], segments)
