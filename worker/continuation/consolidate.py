"""Puts together what pages made: the clip of their pictures, the transcript of what they heard."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from worker.continuation.artifacts import remove_pages
from worker.continuation.split import Splitting
from worker.continuation.store import RunStore
from worker.domain.job import StageName
from worker.domain.media import ClipFile, Mode
from worker.domain.outcome import Split
from worker.domain.paging import OWN_HEIGHT, Chain, PageKind
from worker.domain.run import FinishedPage, Run, newest
from worker.domain.stitching import Piece, stitch
from worker.domain.transcript import Transcript, moved, transcript_from_json
from worker.errors import AsrUnavailable, OutputCorrupt
from worker.media.joining import PageJoiner
from worker.media.pages import PicturePage
from worker.media.smart.order import Unfit
from worker.stages.asr import DirectListener
from worker.stages.base import Work
from worker.stages.clip import DirectClip
from worker.stages.extras import rendition_path
from worker.stages.finalize import Finalize
from worker.stages.keys import artifact_key
from worker.storage.base import Storage

#: pages that are brought at the same time
AT_ONCE = 4


class DamagedPagesError(Exception):
    """What these pages stored is gone or damaged: they must be made again."""

    def __init__(self, pages: Sequence[FinishedPage]) -> None:
        super().__init__(", ".join(str(page.offset) for page in pages))
        self.pages = pages


class PagedClip:
    """Cuts short jobs here and now, splits long ones, and joins what their pages made."""

    def __init__(
        self, direct: DirectClip, joiner: PageJoiner, runs: RunStore, storage: Storage, splitting: Splitting
    ) -> None:
        self._direct = direct
        self._joiner = joiner
        self._runs = runs
        self._storage = storage
        self._splitting = splitting

    async def make(self, work: Work, path: Path, *, on_progress: Callable[[float], None]) -> ClipFile | None:
        run = work.run
        if run is None:
            work.ending = self._splitting.split(work)
            return None if work.ending is not None else await self._cut(work, path, on_progress)
        try:
            return await self._assemble(work, run, path, on_progress)
        except DamagedPagesError as exc:
            await work.report.event("redone:page-damaged", {"pages": [page.offset for page in exc.pages]})
            work.ending = Split(run.plan, tuple(_again(run, page) for page in exc.pages))
            return None

    async def _cut(self, work: Work, path: Path, on_progress: Callable[[float], None]) -> ClipFile | None:
        """A long smart cut takes seconds, but what it would fall back to does not."""
        request = work.resolved.request
        is_long = request.mode is Mode.SMART and self._splitting.is_long(request, work.resolved.wanted)
        try:
            return await self._direct.make(work, path, on_progress=on_progress, may_fall_back=not is_long)
        except Unfit as exc:
            work.ending = self._splitting.split_encoding(work, str(exc))
            return None

    async def _assemble(
        self, work: Work, run: Run, path: Path, on_progress: Callable[[float], None]
    ) -> ClipFile | None:
        pages = await self._runs.pages(run.id)
        work.reserve(2 * sum(_bytes(page.facts) for page in pages))
        if run.has(PageKind.PICTURES, OWN_HEIGHT):
            sound = await self._sound(work, pages)
            clip: ClipFile | None = await self._join(work, pages, OWN_HEIGHT, sound, path, on_progress)
        else:
            clip = await self._cut(work, path, on_progress)
        if clip is None:
            return None
        heights = {height for each in run.partitions for height in each.heights} - {OWN_HEIGHT}
        for height in sorted(heights, reverse=True):
            sound = clip.path if clip.has_audio else None
            await self._join(work, pages, height, sound, rendition_path(work, height), lambda _: None)
        return clip

    async def _join(
        self,
        work: Work,
        pages: list[FinishedPage],
        height: int,
        sound: Path | None,
        path: Path,
        on_progress: Callable[[float], None],
    ) -> ClipFile:
        assert work.run is not None, "it is its pages that are joined"
        found = _complete(work.run, newest(pages, PageKind.PICTURES, height=height))
        pictures = await self._pictures(work, found, height)
        clip = await self._joiner.join(
            pictures,
            sound,
            probe=work.resolved.probe,
            clip=work.resolved.wanted,
            work_path=path,
            on_progress=on_progress,
        )
        for picture in pictures:
            if picture.path is not None:
                await asyncio.to_thread(picture.path.unlink)
        return replace(clip, fallback=work.run.plan.fallback)

    async def _pictures(self, work: Work, pages: Iterable[FinishedPage], height: int) -> list[PicturePage]:
        slots = asyncio.Semaphore(AT_ONCE)

        async def bring(page: FinishedPage) -> PicturePage | FinishedPage:
            told = next(each for each in page.facts["pictures"] if each["height"] == height)
            async with slots:
                try:
                    file = await self._bring(work, page, told)
                except DamagedPagesError:
                    return page
            return PicturePage(file, told["frames"], told["zero_ticks"], told["cpu_fallback"])

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(bring(page)) for page in pages]
        except ExceptionGroup as exc:
            raise exc.exceptions[0] from exc
        brought = [task.result() for task in tasks]
        if damaged := [each for each in brought if isinstance(each, FinishedPage)]:
            raise DamagedPagesError(damaged)
        return [each for each in brought if isinstance(each, PicturePage)]

    async def _sound(self, work: Work, pages: list[FinishedPage]) -> Path | None:
        for page in newest(pages, PageKind.SOUND).values():
            return await self._bring(work, page, page.facts["sound"])
        return None

    async def _bring(self, work: Work, page: FinishedPage, told: Mapping[str, Any]) -> Path | None:
        name = told.get("name")
        if name is None:
            return None
        path = work.scratch / Path(name).name
        key = artifact_key(work.resolved.request, work.job_id, name)
        try:
            if await self._storage.head(key) is None:
                raise DamagedPagesError([page])
            await self._storage.get(key, path)
        except OutputCorrupt:
            raise DamagedPagesError([page]) from None
        return path


class PagedListener:
    """Listens to short clips here and now; of long ones the pages have heard everything already."""

    def __init__(self, direct: DirectListener, runs: RunStore) -> None:
        self._direct = direct
        self._runs = runs

    def is_able(self, work: Work) -> bool:
        return _was_heard(work) or self._direct.is_able(work)

    async def listen(self, work: Work) -> Transcript:
        if not _was_heard(work):
            return await self._direct.listen(work)
        assert work.run is not None, "it was heard in pages"
        pages = _complete(work.run, newest(await self._runs.pages(work.run.id), PageKind.SPEECH))
        for page in pages:
            if error := page.facts.get("error"):
                raise AsrUnavailable(f"page {page.offset + 1}: {error['code']}: {error['message']}")
        return stitched([page.facts["speech"] for page in pages])


class PagedFinalize:
    """Once everything is stored for good, what the pages stored is of no use."""

    name = StageName.FINALIZE

    def __init__(self, finalize: Finalize, storage: Storage) -> None:
        self._finalize = finalize
        self._storage = storage

    async def run(self, work: Work) -> None:
        await self._finalize.run(work)
        if (run := work.run) is not None:
            work.result["pages"] = run.pages
            chains = [Chain(each.kind, each.first, each.past, each.heights) for each in run.partitions]
            await remove_pages(self._storage, work.resolved.request, work.job_id, chains)


def stitched(heard: list[Mapping[str, Any]]) -> Transcript:
    """One transcript of what neighbouring pages heard; each heard a little of the others."""
    transcripts = [transcript_from_json(each["transcript"]) for each in heard]
    pieces = [
        Piece(each["start"], each["end"], tuple(moved(segment, each["start"]) for segment in transcript.segments))
        for each, transcript in zip(heard, transcripts, strict=True)
    ]
    # a page in which little is said knows little of the language
    said = sorted(transcripts, key=lambda each: len(each.text), reverse=True)
    return Transcript(said[0].engine, said[0].language, stitch(pieces), said[0].model)


def _complete(run: Run, found: Mapping[int, FinishedPage]) -> list[FinishedPage]:
    """A clip that lacks a page would look sound."""
    offsets = range(len(run.plan.borders) - 1)
    if missing := [offset for offset in offsets if offset not in found]:
        raise OutputCorrupt(f"nothing is known of what pages {missing} made, though they are finished")
    return [found[offset] for offset in offsets]


def _again(run: Run, page: FinishedPage) -> Chain:
    heights = next(each.heights for each in run.partitions if each.id == page.partition)
    return Chain(page.kind, page.offset, page.offset + 1, heights)


def _was_heard(work: Work) -> bool:
    return work.run is not None and work.run.has(PageKind.SPEECH)


def _bytes(facts: Mapping[str, Any]) -> int:
    pictures = sum(picture.get("bytes", 0) for picture in facts.get("pictures", ()))
    return int(pictures + facts.get("sound", {}).get("bytes", 0))
