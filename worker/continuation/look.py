"""How a delivery of a job begins: with a look at its pages, if it was split; there may be nothing to do yet."""

from typing import NoReturn

from worker.continuation.store import RunStore
from worker.domain.job import StageName
from worker.domain.outcome import Snoozed
from worker.domain.paging import OWN_HEIGHT, PageKind, page_span
from worker.domain.request import parse_request
from worker.domain.run import Partition, Run
from worker.errors import DeliveryGone, PageFailed, PoisonJob, RetriesExhausted
from worker.sources.base import OpenedSource
from worker.stages.base import Resolved, Work
from worker.stages.resolve import Resolve

#: what ends a page although another attempt might have gone well; a retry of the job goes on from there
PASSING = frozenset({RetriesExhausted.code, PoisonJob.code, DeliveryGone.code, None})


class LookFirst:
    name = StageName.RESOLVE

    def __init__(self, resolve: Resolve, runs: RunStore) -> None:
        self._resolve = resolve
        self._runs = runs

    async def run(self, work: Work) -> None:
        run = await self._runs.look(work.job_id)
        if run is None:
            await self._resolve.run(work)
            return
        if failed := run.failed:
            await self._give_up(run, failed)
        if not run.is_complete:
            work.ending = Snoozed(tuple(run.idle))
            return
        work.run = run
        if run.has(PageKind.PICTURES, OWN_HEIGHT):
            # Everything is there; whether the source still is does not matter.
            request, plan = parse_request(work.spec), run.plan
            gone = OpenedSource(plan.label, input="", protocols=(), size_bytes=plan.size_bytes, etag=plan.etag)
            work.maybe_resolved = Resolved(request, gone, plan.probe, plan.wanted)
        else:
            await self._resolve.run(work)

    async def _give_up(self, run: Run, failed: Partition) -> NoReturn:
        if failed.page_code not in PASSING:
            await self._runs.drop(run.id)
        raise PageFailed(f"{_place(run, failed)}: {failed.page_message or 'was cancelled'}", code=failed.page_code)


def _place(run: Run, failed: Partition) -> str:
    if failed.kind is PageKind.SOUND:
        return "the sound"
    span = page_span(run.plan.borders, failed.next)
    what = "pictures" if failed.kind is PageKind.PICTURES else "speech"
    return f"page {failed.next + 1} ({what} from {span.start_seconds:.1f} to {span.end_seconds:.1f} s)"
