"""Sources that name where their media is: read by the worker, and published again as a playlist of its own."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from worker.media.source import PLAYLIST_FORMATS
from worker.sources.base import OpenedSource, public_label
from worker.sources.dash import read_dash
from worker.sources.gateway import Gateway
from worker.sources.hls import read_hls
from worker.sources.http import HttpOrigin
from worker.sources.parts import ENTRY, PartShelf
from worker.sources.playlist import PlaylistKind
from worker.sources.presentation import Presentation

_READERS: Final[dict[PlaylistKind, Callable[[HttpOrigin, str], Awaitable[Presentation]]]] = {
    PlaylistKind.HLS: read_hls,
    PlaylistKind.DASH: read_dash,
}


class Playlists:
    """Opens playlists. Children get the worker's own list, in which nothing but the gateway is named."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    @asynccontextmanager
    async def open(self, origin: HttpOrigin, url: str, kind: PlaylistKind) -> AsyncIterator[OpenedSource]:
        presentation = await _READERS[kind](origin, url)
        async with self.publish(origin, presentation, label=public_label(url)) as opened:
            yield opened

    @asynccontextmanager
    async def publish(
        self, origin: HttpOrigin, presentation: Presentation, *, label: str
    ) -> AsyncIterator[OpenedSource]:
        async with (
            PartShelf(origin, presentation) as shelf,
            self._gateway.publish_many(shelf.open, label=label, entry=ENTRY) as opened,
        ):
            encrypted = ("crypto",) if any(track.is_encrypted for track in presentation.tracks) else ()
            yield replace(
                opened,
                protocols=(*opened.protocols, *encrypted),
                formats=PLAYLIST_FORMATS,
                late_seek_seconds=max(track.late_seek_seconds for track in presentation.tracks),
            )
