"""Probing as a worker does it, for tests that have one source to look at."""

from worker.domain.media import Probe
from worker.media.apart import Prober
from worker.media.source import ReadableSource


async def probe_apart(source: ReadableSource) -> Probe:
    async with Prober() as prober:
        return await prober.probe(source)
