"""Asr: what is said in the clip, as text with times."""

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Protocol

import aiofiles

from worker.asr.recognizer import Recognizer
from worker.domain.job import StageName
from worker.domain.media import ArtifactKind, TranscriptWish
from worker.domain.transcript import Transcript, transcript_from_json, transcript_json
from worker.errors import AsrRefused, AsrUnavailable, InvalidRequest, OutputCorrupt
from worker.media.extras import ExtrasMaker
from worker.media.extras_argv import Extras
from worker.stages.base import OutputFile, Work
from worker.stages.captions import CaptionsStep
from worker.stages.upload import fetch_artifact, store_artifact
from worker.storage.base import Storage

#: nobody could listen, or not to this; clip and storage are not to blame
SPEECH_ERRORS = (AsrUnavailable, AsrRefused, InvalidRequest, OutputCorrupt)


class Listener(Protocol):
    def is_able(self, work: Work) -> bool:
        """Can anybody listen here?"""

    async def listen(self, work: Work) -> Transcript:
        """What is said in the clip."""


class DirectListener:
    """Has the clip's sound recognised, here and now."""

    def __init__(self, maker: ExtrasMaker, recognizer: Recognizer | None) -> None:
        """`recognizer`: None when this worker should not listen."""
        self._maker = maker
        self._recognizer = recognizer

    def is_able(self, work: Work) -> bool:  # noqa: ARG002 - it is the same for all work
        return self._recognizer is not None

    async def listen(self, work: Work) -> Transcript:
        assert self._recognizer is not None, "somebody asked before"
        wav = work.speech
        if wav is None:
            # an earlier attempt stored everything but the transcript
            wav = work.scratch / f"{work.job_id}-speech.wav"
            await self._maker.make(work.clip, Extras(speech=wav))
        return await self._recognizer.transcribe(
            wav,
            language=work.resolved.request.language,
            on_progress=lambda fraction: work.report.progress(0.9 * fraction),
        )


class Asr:
    name = StageName.ASR

    def __init__(self, listener: Listener, captions: CaptionsStep, storage: Storage) -> None:
        self._listener = listener
        self._captions = captions
        self._storage = storage

    async def run(self, work: Work) -> None:
        wish = work.resolved.request.transcript
        if wish is TranscriptWish.NONE:
            return
        if not self._listener.is_able(work):
            await work.report.event("skipped:no-engine")
            return
        if not work.clip.has_audio:
            await work.report.event("skipped:no-audio")
            return
        file = OutputFile(ArtifactKind.TRANSCRIPT, "transcript.json", work.scratch / f"{work.job_id}-transcript.json")
        try:
            if await fetch_artifact(self._storage, work, file) is None:
                await self._listen(work, file.path)
        except SPEECH_ERRORS as exc:
            if wish is not TranscriptWish.BEST_EFFORT:
                raise
            work.transcript_error = exc
            await work.report.event("skipped:no-transcript", {"code": exc.code, "message": str(exc)})
            return
        await self._store(work, file)
        await self._captions.run(work)

    async def _listen(self, work: Work, path: Path) -> None:
        text = json.dumps(transcript_json(await self._listener.listen(work)), ensure_ascii=False, indent=1)
        async with aiofiles.open(path, "w", encoding="utf-8") as file:
            await file.write(text)

    async def _store(self, work: Work, file: OutputFile) -> None:
        """Another attempt may have heard otherwise and stored it first: then that one counts."""
        await store_artifact(self._storage, work, file)
        content = await asyncio.to_thread(file.path.read_bytes)
        stored = work.artifacts[file.kind]
        if hashlib.sha256(content).hexdigest() != stored.sha256:
            await self._storage.get(stored.key, file.path)
            content = await asyncio.to_thread(file.path.read_bytes)
        work.transcript = transcript_from_json(json.loads(content))
