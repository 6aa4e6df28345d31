"""Pages that hold a film somewhere: yt-dlp finds out where, and the ordinary sources read it."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from importlib.util import find_spec
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver

from worker.errors import InvalidRequest, SourceUnsupported
from worker.sources.address import AddressPolicy
from worker.sources.base import OpenedSource, public_label
from worker.sources.dash import read_indexed_files
from worker.sources.guard_proxy import GuardProxy
from worker.sources.http import HttpSource
from worker.sources.playlists import Playlists
from worker.sources.ytdlp_choice import Choice, choose
from worker.sources.ytdlp_run import YtdlpOptions, resolve

#: what resolving a page may take over the network; pages are small
_PAGE_BYTES = 64 * 2**20


class YtdlpSource:
    """`ytdlp:https://…`, never guessed: whoever sends a job decides that a page may be asked."""

    schemes = frozenset({"ytdlp"})

    def __init__(
        self,
        http: HttpSource,
        playlists: Playlists,
        options: YtdlpOptions,
        *,
        policy: AddressPolicy,
        resolver: AbstractResolver | None = None,
        proxy: str | None = None,
    ) -> None:
        self._http = http
        self._playlists = playlists
        self._options = options
        self._policy = policy
        self._resolver = resolver
        self._proxy = proxy

    @asynccontextmanager
    async def open(self, url: str) -> AsyncIterator[OpenedSource]:
        page = _page_of(url)
        label = f"ytdlp:{public_label(page)}"
        if find_spec("yt_dlp") is None:
            raise SourceUnsupported("sources of kind ytdlp: need yt-dlp on the worker: pip install 'clipboss[ytdlp]'")
        async with AsyncExitStack() as stack:
            async with self._guard(max_bytes=_PAGE_BYTES) as guard:
                choice = choose(await resolve(page, self._options, guard, label), label)
            if self._proxy is not None:
                # what a site tells one address it often serves to no other
                carrier = await stack.enter_async_context(self._guard())
                choice = replace(choice, guise=replace(choice.guise, proxy=carrier.url))
            yield replace(await self._read(choice, label, stack), label=label)

    def _guard(self, *, max_bytes: int | None = None) -> GuardProxy:
        return GuardProxy(self._policy, resolver=self._resolver, upstream=self._proxy, max_bytes=max_bytes)

    async def _read(self, choice: Choice, label: str, stack: AsyncExitStack) -> OpenedSource:
        if choice.audio_url is None:
            return await stack.enter_async_context(self._http.open(choice.url, choice.guise))
        origin = await stack.enter_async_context(self._http.connect(choice.guise))
        presentation = await read_indexed_files(origin, choice.url, choice.audio_url)
        return await stack.enter_async_context(self._playlists.publish(origin, presentation, label=label))


def _page_of(url: str) -> str:
    page = url.partition(":")[2]
    try:
        parts = urlsplit(page)
        is_web = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_web = False
    if not is_web or any(char.isspace() for char in page):
        raise InvalidRequest("a yt-dlp source is written ytdlp:https://…")
    return page
