"""Finds the source that answers for a URL, and keeps strings that are no URL away from ffmpeg."""

import unicodedata
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from urllib.parse import urlsplit

from worker.errors import InvalidRequest, SourceUnsupported
from worker.sources.base import OpenedSource, Source


class SourceCatalog:
    def __init__(self, sources: Iterable[Source]) -> None:
        self._by_scheme = {scheme: source for source in sources for scheme in source.schemes}

    def open(self, url: str) -> AbstractAsyncContextManager[OpenedSource]:
        """Open a URL, or an absolute path of this machine."""
        scheme = scheme_of(url)
        source = self._by_scheme.get(scheme)
        if source is None:
            known = ", ".join(_written(name) for name in sorted(self._by_scheme))
            raise SourceUnsupported(f"sources of kind {scheme!r} are not supported; use one of {known}")
        return source.open(url)


def _written(scheme: str) -> str:
    return "ytdlp:https://" if scheme == "ytdlp" else f"{scheme}://"


def scheme_of(url: str) -> str:
    """The lower-case scheme, `file` for an absolute path; InvalidRequest for what cannot be a source."""
    if url.startswith("-") or any(unicodedata.category(char) in {"Cc", "Cs"} for char in url):
        raise InvalidRequest("the source must not start with '-' nor hold control characters")
    if url.startswith("/"):
        return "file"
    try:
        scheme = urlsplit(url).scheme
    except ValueError as exc:
        raise InvalidRequest(f"the source is not a valid URL: {exc}") from exc
    if not scheme or ":" not in url:
        raise InvalidRequest("the source must be a URL with a scheme (https://…) or an absolute path")
    return scheme
