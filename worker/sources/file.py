"""Files of this machine, but only those the operator opened up."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from worker.errors import InvalidRequest, SourceForbidden, SourceNotFound, SourceUnsupported
from worker.sources.base import OpenedSource


class FileSource:
    """`file://` URLs and absolute paths under `roots`; symbolic links count as what they point to."""

    schemes = frozenset({"file"})

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = tuple(roots)

    @asynccontextmanager
    async def open(self, url: str) -> AsyncIterator[OpenedSource]:
        yield await asyncio.to_thread(self._locate, _path_of(url))

    def _locate(self, path: Path) -> OpenedSource:
        label = str(path) if str(path).isprintable() else path.as_uri()
        try:
            # the roots are asked first, so that nobody learns what exists outside them
            real = self._resolve_under_roots(path, label)
            status = real.stat()
            readable = os.access(real, os.R_OK)
        except (FileNotFoundError, NotADirectoryError) as exc:
            raise SourceNotFound(f"there is no file {label}") from exc
        except PermissionError as exc:
            raise SourceForbidden(f"the worker's user may not read {label}") from exc
        except (OSError, RuntimeError) as exc:
            raise SourceUnsupported(f"{label} cannot be read: {exc}") from exc
        if not stat.S_ISREG(status.st_mode):
            raise SourceUnsupported(f"{label} is not a regular file")
        if not readable:
            raise SourceForbidden(f"the worker's user may not read {label}")
        if status.st_size == 0:
            raise SourceUnsupported(f"{label} is empty (0 bytes)")
        etag = f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"
        # `file:` keeps ffmpeg from reading anything else into the name: options, protocols, patterns
        return OpenedSource(label, f"file:{real}", ("file",), size_bytes=status.st_size, etag=etag)

    def _resolve_under_roots(self, path: Path, label: str) -> Path:
        if not self._roots:
            raise SourceForbidden(f"{label}: local files are not allowed; list their folders in LOCAL_SOURCE_ROOTS")
        real = path.resolve()
        if not any(real.is_relative_to(root.resolve()) for root in self._roots):
            raise SourceForbidden(f"{label} lies outside the folders of LOCAL_SOURCE_ROOTS")
        return real


def _path_of(url: str) -> Path:
    if url.startswith("/"):
        return _absolute(url)
    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"}:
        raise SourceUnsupported(f"file://{parts.netloc}/… names another machine; write file:///path")
    if parts.query or parts.fragment:
        raise InvalidRequest("write '?' as %3F and '#' as %23 in a file:// URL")
    try:
        return _absolute(unquote(parts.path, errors="strict"))
    except UnicodeDecodeError as exc:
        raise InvalidRequest("the file:// URL does not decode to UTF-8") from exc


def _absolute(text: str) -> Path:
    if not text.startswith("/") or "\0" in text:
        raise InvalidRequest("a local source needs an absolute path: file:///path/to/file")
    return Path(text)
