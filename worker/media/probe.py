"""What a source holds, for who need not fear it; sources of jobs are probed apart (`worker.media.apart`)."""

import asyncio

from worker.domain.media import Probe
from worker.media.look import look
from worker.media.source import ReadableSource


async def probe(source: ReadableSource) -> Probe:
    """Refuses what cannot be cut: no media, nothing to see or hear, or a file that was cut short."""
    return await asyncio.to_thread(look, source)
