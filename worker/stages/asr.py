"""Asr: what is said in the clip, as text with times."""

import json
from pathlib import Path
from typing import Any

import aiofiles

from worker.asr.base import Recognizer
from worker.asr.none import NoRecognizer
from worker.domain.job import StageName
from worker.domain.media import ArtifactKind, Segment, Transcript
from worker.media.cut import Cutter
from worker.stages.base import Work
from worker.stages.keys import FINGERPRINT, artifact_key
from worker.stages.upload import store_artifact
from worker.storage.base import Storage


class Asr:
    name = StageName.ASR

    def __init__(self, cutter: Cutter, recognizer: Recognizer, storage: Storage) -> None:
        self._cutter = cutter
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
        key = artifact_key(request, work.job_id, ArtifactKind.TRANSCRIPT, path.suffix)
        if not await self._fetch_stored(work, key, path):
            await self._recognize(work, path)
        work.transcript = await _read(path)
        await store_artifact(self._storage, work, ArtifactKind.TRANSCRIPT, key, path)

    async def _recognize(self, work: Work, path: Path) -> None:
        wav = work.scratch / f"{work.job_id}-speech.wav"
        await self._cutter.extract_speech_wav(work.clip, wav)
        work.report.progress(0.1)
        transcript = await self._recognizer.transcribe(wav, language=work.resolved.request.language)
        text = json.dumps(transcript_json(transcript), ensure_ascii=False, indent=1)
        async with aiofiles.open(path, "w", encoding="utf-8") as file:
            await file.write(text)

    async def _fetch_stored(self, work: Work, key: str, path: Path) -> bool:
        stored = await self._storage.head(key)
        if stored is None or stored.metadata.get(FINGERPRINT) != work.resolved.request.fingerprint:
            return False
        await self._storage.get(key, path)
        await work.report.event("skipped:artifact-exists", {"kind": ArtifactKind.TRANSCRIPT, "key": key})
        return True


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
