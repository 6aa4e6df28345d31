"""Resolve: is the request right, can the source be read, and does the range lie inside it?"""

from worker.domain.job import StageName
from worker.domain.media import ClipRange, Probe
from worker.domain.request import ClipRequest, parse_request
from worker.errors import RangeOutsideSource
from worker.media.probe import probe
from worker.sources.catalog import SourceCatalog
from worker.stages.base import Resolved, Work

#: containers round their duration; an end this far beyond it means "to the end"
TOLERANCE_SECONDS = 0.1


class Resolve:
    name = StageName.RESOLVE

    def __init__(self, sources: SourceCatalog) -> None:
        self._sources = sources

    async def run(self, work: Work) -> None:
        request = parse_request(work.spec)
        source = await work.resources.enter_async_context(self._sources.open(request.source))
        work.report.progress(0.5)
        found = await probe(source)
        work.maybe_resolved = Resolved(request, source, found, wanted_range(request, found))


def wanted_range(request: ClipRequest, probe: Probe) -> ClipRange:
    start = request.start or 0.0
    end = probe.duration_seconds if request.end is None else request.end
    if start >= probe.duration_seconds:
        raise RangeOutsideSource(f"start is {start:g} s, but the source ends at {probe.duration_seconds:.3f} s")
    if end > probe.duration_seconds + TOLERANCE_SECONDS:
        raise RangeOutsideSource(f"end is {end:g} s, but the source ends at {probe.duration_seconds:.3f} s")
    return ClipRange(start, min(end, probe.duration_seconds))
