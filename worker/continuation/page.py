"""The course of a page: look whether it is its turn, make its slice, store it, and tell what was made."""

from pathlib import Path
from typing import assert_never

from worker.asr.recognizer import Recognizer
from worker.continuation.artifacts import SOUND_NAME, picture_facts, picture_metadata, picture_name
from worker.continuation.store import RunStore
from worker.domain.job import StageName
from worker.domain.media import ArtifactKind, ClipRange, Mode, TranscriptWish
from worker.domain.outcome import Done, PageDone
from worker.domain.paging import OWN_HEIGHT, PageKind, heard_span, page_span, parse_page
from worker.domain.request import parse_request
from worker.domain.run import PageOrder, RunPlan
from worker.domain.transcript import transcript_json
from worker.errors import AsrUnavailable, ClipFailed, InvalidRequest
from worker.media.cut import Cutter
from worker.media.pages import PageCutter
from worker.sources.base import OpenedSource
from worker.sources.catalog import SourceCatalog
from worker.stages.asr import SPEECH_ERRORS
from worker.stages.base import OutputFile, Resolved, Work
from worker.stages.clip import style_of
from worker.stages.room import bytes_needed
from worker.stages.upload import fetch_artifact, store_artifact
from worker.storage.base import Storage

#: heard on both sides of a page: more than an engine needs to get into what is said
OVERLAP_SECONDS = 5.0


class PageResolve:
    name = StageName.RESOLVE

    def __init__(self, sources: SourceCatalog, runs: RunStore) -> None:
        self._sources = sources
        self._runs = runs

    async def run(self, work: Work) -> None:
        order = await self._runs.order(parse_page(work.spec))
        if order is None:
            raise InvalidRequest("there is no such run: pages are sent by the jobs that were split")
        if order.obsolete:
            await work.report.event("skipped:obsolete", {"reason": order.obsolete})
            work.ending = Done({"skipped": order.obsolete})
            return
        request = parse_request(order.spec)
        source = await work.resources.enter_async_context(self._sources.open(request.source))
        _require_same(source, order.plan)
        span = _span(order)
        work.reserve(bytes_needed(request, order.plan.probe, span, source_bytes=source.size_bytes))
        work.page = order
        work.maybe_resolved = Resolved(request, source, order.plan.probe, order.plan.wanted)


class PageClip:
    name = StageName.CLIP

    def __init__(self, pages: PageCutter, cutter: Cutter, storage: Storage) -> None:
        self._pages = pages
        self._cutter = cutter
        self._storage = storage

    async def run(self, work: Work) -> None:
        order = _order(work)
        match order.kind:
            case PageKind.PICTURES:
                work.result["pictures"] = [await self._pictures(work, order, height) for height in order.heights]
            case PageKind.SOUND:
                await self._sound(work)
            case PageKind.SPEECH:
                pass
            case _:
                assert_never(order.kind)

    async def _pictures(self, work: Work, order: PageOrder, height: int) -> dict[str, object]:
        request, plan, span = work.resolved.request, order.plan, _span(order)
        file = _picture_file(work, order, height)
        stored = await fetch_artifact(self._storage, work, file)
        facts = picture_facts(stored.metadata) if stored is not None else None
        if facts is None:
            share, before = 1 / len(order.heights), order.heights.index(height) / len(order.heights)
            picture = await self._pages.cut_pictures(
                work.resolved.source,
                plan.probe,
                plan.wanted,
                span,
                work_path=file.path,
                max_height=request.max_height if height == OWN_HEIGHT else height,
                quality=request.quality,
                on_progress=lambda fraction: work.report.progress(before + share * fraction),
            )
            facts = {
                "frames": picture.frames,
                "zero_ticks": picture.zero_ticks,
                "cpu_fallback": picture.cpu_fallback,
            }
            if picture.path is None:
                return {"height": height, **facts}
        work.extras.append(file)
        return {"height": height, **facts, "name": file.name, "bytes": file.path.stat().st_size}

    async def _sound(self, work: Work) -> None:
        resolved, path = work.resolved, work.scratch / f"{work.job_id}-sound.m4a"
        file = OutputFile(ArtifactKind.CLIP, SOUND_NAME, path, variant=f":sound:{resolved.wanted}")
        if await fetch_artifact(self._storage, work, file) is None:
            await self._cutter.cut(
                resolved.source,
                resolved.probe,
                resolved.wanted,
                mode=Mode.AUDIO,
                work_path=path,
                style=style_of(resolved.request),
                on_progress=work.report.progress,
            )
        work.extras.append(file)
        work.result["sound"] = {"name": file.name, "bytes": path.stat().st_size}


class PageUpload:
    name = StageName.UPLOAD

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def run(self, work: Work) -> None:
        made = {picture.get("name"): picture for picture in work.result.get("pictures", ())}
        for file in work.extras:
            told = made.get(file.name)
            extra = picture_metadata(told["frames"], told["zero_ticks"], told["cpu_fallback"]) if told else None
            await store_artifact(self._storage, work, file, extra=extra)


class PageAsr:
    name = StageName.ASR

    def __init__(self, pages: PageCutter, recognizer: Recognizer | None) -> None:
        self._pages = pages
        self._recognizer = recognizer

    async def run(self, work: Work) -> None:
        order, request = _order(work), work.resolved.request
        if order.kind is not PageKind.SPEECH:
            return
        try:
            await self._listen(work, order)
        except SPEECH_ERRORS as exc:
            if request.transcript is not TranscriptWish.BEST_EFFORT:
                raise
            work.result["error"] = {"code": exc.code, "message": str(exc)}

    async def _listen(self, work: Work, order: PageOrder) -> None:
        if self._recognizer is None:
            raise AsrUnavailable("this worker has no speech engine (ASR_ENGINE=none), but the job's other workers have")
        span, wav = _span(order), work.scratch / f"{work.job_id}-speech.wav"
        await self._pages.cut_speech(work.resolved.source, order.plan.probe, span, path=wav)
        transcript = await self._recognizer.transcribe(
            wav, language=work.resolved.request.language, on_progress=work.report.progress
        )
        begin = order.plan.wanted.start_seconds
        work.result["speech"] = {
            "start": span.start_seconds - begin,
            "end": span.end_seconds - begin,
            "transcript": transcript_json(transcript),
        }


class PageFinalize:
    name = StageName.FINALIZE

    async def run(self, work: Work) -> None:
        work.ending = PageDone(_order(work).page, work.result)


def _order(work: Work) -> PageOrder:
    assert work.page is not None, "resolve has not run"
    return work.page


def _span(order: PageOrder) -> ClipRange:
    match order.kind:
        case PageKind.PICTURES:
            return page_span(order.plan.borders, order.page.offset)
        case PageKind.SPEECH:
            return heard_span(order.plan.borders, order.page.offset, overlap_seconds=OVERLAP_SECONDS)
        case PageKind.SOUND:
            return order.plan.wanted
        case _:
            assert_never(order.kind)


def _picture_file(work: Work, order: PageOrder, height: int) -> OutputFile:
    name, span = picture_name(order.page.offset, height), _span(order)
    path: Path = work.scratch / f"{work.job_id}-{height}.mp4"
    is_clip = height == OWN_HEIGHT
    return OutputFile(
        ArtifactKind.CLIP if is_clip else ArtifactKind.RENDITION,
        name,
        path,
        None if is_clip else height,
        # pages of another length lie under the same names
        variant=f":{span.start_seconds!r}:{span.end_seconds!r}",
    )


def _require_same(source: OpenedSource, plan: RunPlan) -> None:
    is_other = source.size_bytes != plan.size_bytes or (
        source.etag is not None and plan.etag is not None and source.etag != plan.etag
    )
    if is_other:
        raise ClipFailed(
            f"{plan.label} has changed since the job was split: pages of two versions make no clip. Retry the job, "
            "and it is split anew."
        )
