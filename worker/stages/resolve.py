"""Resolve: is the request right, can the source be read, and does the range lie inside it?"""

from worker.domain.job import StageName
from worker.domain.media import ClipRange, Mode, Probe
from worker.domain.request import ClipRequest, parse_request
from worker.errors import RangeOutsideSource
from worker.media.apart import Prober
from worker.media.sheet import refuse_too_many
from worker.sources.catalog import SourceCatalog
from worker.stages.base import Resolved, Work
from worker.stages.room import UNBOUNDED, Bounds, bytes_needed, refuse_too_much

#: containers round their duration; an end this far beyond it means "to the end"
TOLERANCE_SECONDS = 0.1


class Resolve:
    name = StageName.RESOLVE

    def __init__(self, sources: SourceCatalog, prober: Prober, *, bounds: Bounds = UNBOUNDED) -> None:
        self._sources = sources
        self._prober = prober
        self._bounds = bounds

    async def run(self, work: Work) -> None:
        request = parse_request(work.spec)
        source = await work.resources.enter_async_context(self._sources.open(request.source))
        work.report.progress(0.5)
        found = await self._prober.probe(source)
        wanted = wanted_range(request, found)
        refuse_times_outside(request, wanted)
        size, bounds = source.size_bytes, self._bounds
        # sound that lies among pictures is a small part of what the source holds
        if "file" not in source.protocols and not (request.mode is Mode.AUDIO and found.video is not None):
            refuse_too_much(found, wanted, source_bytes=size, bounds=bounds)
        work.reserve(bytes_needed(request, found, wanted, source_bytes=size, bounds=bounds))
        work.maybe_resolved = Resolved(request, source, found, wanted)


def wanted_range(request: ClipRequest, probe: Probe) -> ClipRange:
    start = request.start or 0.0
    end = probe.duration_seconds if request.end is None else request.end
    if start >= probe.duration_seconds:
        raise RangeOutsideSource(f"start is {start:g} s, but the source ends at {probe.duration_seconds:.3f} s")
    if end > probe.duration_seconds + TOLERANCE_SECONDS:
        raise RangeOutsideSource(f"end is {end:g} s, but the source ends at {probe.duration_seconds:.3f} s")
    return ClipRange(start, min(end, probe.duration_seconds))


def refuse_times_outside(request: ClipRequest, wanted: ClipRange) -> None:
    """What is asked of the clip itself must lie in it."""
    poster, duration = request.poster, wanted.duration_seconds
    if not isinstance(poster, bool) and poster >= duration:
        raise RangeOutsideSource(f"poster is at {poster:g} s, but the clip is {duration:.3f} s long")
    if request.sprite is not None:
        refuse_too_many(request.sprite, duration)
