"""HLS: finished streams, of which the worker picks one variant and lets children see only that."""

import asyncio

from worker.errors import SourceUnsupported
from worker.sources.base import public_label
from worker.sources.http import HttpOrigin
from worker.sources.m3u8 import MasterPlaylist, Rendition, Variant, parse_m3u8
from worker.sources.page import fetch_text
from worker.sources.presentation import Presentation, Track


async def read_hls(origin: HttpOrigin, url: str) -> Presentation:
    """What the playlist at `url` leads to; only playlists are fetched."""
    found = await _read(origin, url)
    if isinstance(found, Track):
        return Presentation(found)
    variant = best_variant(found)
    sound = sound_of(found, variant)
    main = await _read_track(origin, variant.url)
    if sound is None or sound.url is None or sound.url == variant.url:
        return Presentation(main)
    return Presentation(main, await _read_track(origin, sound.url))


def best_variant(master: MasterPlaylist) -> Variant:
    return max(master.variants, key=lambda variant: (variant.height, not variant.is_hdr, variant.bandwidth))


def sound_of(master: MasterPlaylist, variant: Variant) -> Rendition | None:
    """The sound that a player would choose by itself."""
    choice = [rendition for rendition in master.renditions if rendition.group == variant.audio_group]
    return next((rendition for rendition in choice if rendition.is_default), choice[0] if choice else None)


async def _read_track(origin: HttpOrigin, url: str) -> Track:
    found = await _read(origin, url)
    if isinstance(found, Track):
        return found
    raise SourceUnsupported(f"{public_label(url)} is a list of variants where one of segments should be")


async def _read(origin: HttpOrigin, url: str) -> MasterPlaylist | Track:
    # a long list takes a good part of a second
    return await asyncio.to_thread(parse_m3u8, *await fetch_text(origin, url))
