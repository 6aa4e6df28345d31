"""DASH: finished films, read by the worker and handed on as if they were HLS, so that children know one kind."""

import asyncio
from contextlib import AsyncExitStack, aclosing
from typing import Final

from worker.errors import SourceUnsupported
from worker.sources.base import public_label
from worker.sources.http import HttpOrigin
from worker.sources.mpd import IndexedFile, parse_mpd
from worker.sources.page import MAX_BYTES, fetch_bytes
from worker.sources.presentation import Init, Part, Presentation, Segment, Track, TrackBuilder
from worker.sources.ranges import RangeReader
from worker.sources.sidx import find_sidx, parse_sidx

#: an index near the beginning lies in here, if its place is not told
_HEAD_BYTES: Final = 2**20


async def read_dash(origin: HttpOrigin, url: str) -> Presentation:
    """What the manifest at `url` leads to; besides it only indexes are fetched."""
    manifest = await asyncio.to_thread(parse_mpd, *await fetch_bytes(origin, url))
    main = await _track(origin, manifest.main)
    return Presentation(main, None if manifest.audio is None else await _track(origin, manifest.audio))


async def read_indexed_files(origin: HttpOrigin, main_url: str, audio_url: str) -> Presentation:
    """Picture and sound in a fragmented MP4 file each, without a manifest."""
    main, audio = [await _track(origin, IndexedFile(url, None)) for url in (main_url, audio_url)]
    return Presentation(main, audio)


async def _track(origin: HttpOrigin, found: Track | IndexedFile) -> Track:
    if isinstance(found, Track):
        return found
    async with AsyncExitStack() as stack:
        resource = await origin.find(found.url, stack)
        return await _indexed_track(resource.reader, found)


async def _indexed_track(reader: RangeReader, file: IndexedFile) -> Track:
    label = public_label(file.url)
    where = file.index or Part(file.url, 0, _HEAD_BYTES)
    box = await _bytes(reader, where)
    at = 0 if file.index is not None else find_sidx(box)
    index = None if at is None else parse_sidx(box[at:])
    if at is None or index is None:
        raise SourceUnsupported(f"{label} has no index of segments (sidx) that can be read")
    index_start = where.start + at
    init = Init(Part(file.url, 0, index_start))
    position = index_start + index.size_bytes + index.first_offset
    track = TrackBuilder(label)
    for entry in index.entries:
        track.add(Segment(Part(file.url, position, entry.size_bytes), entry.seconds, init))
        position += entry.size_bytes
    return track.track()


async def _bytes(reader: RangeReader, part: Part) -> bytes:
    end = min(reader.size_bytes, part.start + min(part.length or 0, MAX_BYTES))
    content = bytearray()
    if part.start < end:
        async with aclosing(reader.read(part.start, end)) as chunks:
            async for chunk in chunks:
                content += chunk
    return bytes(content)
