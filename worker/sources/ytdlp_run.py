"""Runs yt-dlp as a child that only resolves: no downloads, no configuration, no plugins, no way past the guard."""

import asyncio
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from worker.errors import (
    JobError,
    SourceForbidden,
    SourceNotFound,
    SourceUnsupported,
    UpstreamFailure,
    YtdlpTimeout,
)
from worker.media.process import ChildEnd, ChildResult, Limits, run_child
from worker.sources.guard_proxy import GuardProxy

#: everything that yt-dlp may be told; the address and the proxy come from files, not from the command line
OPTIONS: Final = (
    "--dump-single-json", "--no-playlist", "--playlist-items", "1", "--skip-download", "--ignore-no-formats-error",
    "--no-plugin-dirs", "--no-exec", "--no-cache-dir", "--no-cookies-from-browser", "--no-remote-components",
    "--no-update", "--no-mark-watched", "--no-check-formats", "--no-warnings", "--no-progress", "--color", "never",
    "--socket-timeout", "15", "--retries", "1", "--extractor-retries", "1",
)  # fmt: skip
_JSON_BYTES: Final = 32 * 2**20
_FILE_BYTES: Final = 64 * 2**20
_OPEN_FILES: Final = 256
#: what is passed on of the worker's environment: how to find programs and certificates
_ENVIRONMENT: Final = ("PATH", "LANG", "LC_ALL", "SSL_CERT_FILE", "SSL_CERT_DIR")
#: a directory of this age belongs to a worker that was killed
_STALE_SECONDS: Final = 86_400
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_MEANINGS: Final[tuple[tuple[str, type[JobError]], ...]] = (
    (r"HTTP Error (404|410)|does not exist|has been removed|Video unavailable", SourceNotFound),
    (r"HTTP Error (401|403|451)|log ?in|sign in|cookies|private video|not available in your", SourceForbidden),
    (r"HTTP Error (408|425|429|5\d\d)|timed out|Connection|Temporary failure|resolve|reset|Tunnel", UpstreamFailure),
)


@dataclass(frozen=True, slots=True)
class YtdlpOptions:
    timeout_seconds: float
    #: private directories of the children
    directory: Path
    #: a file as browsers export it; children get a copy
    cookies: Path | None = None


async def resolve(url: str, options: YtdlpOptions, guard: GuardProxy, label: str) -> dict[str, Any]:
    """What yt-dlp knows about the page at `url`."""
    async with _room(options) as room:
        await asyncio.to_thread(_furnish, room, url, options, guard.url)
        # isolated: neither PYTHONPATH nor the current directory nor a user's packages are looked at
        command = [sys.executable, "-I", "-m", "yt_dlp", "--ignore-config", "--config-locations", str(room / "options")]
        limits = Limits(
            options.timeout_seconds,
            cpu_seconds=max(10, round(options.timeout_seconds)),
            file_bytes=_FILE_BYTES,
            open_files=_OPEN_FILES,
            stdout_bytes=_JSON_BYTES,
        )
        result = await run_child(command, limits=limits, environment=_environment(room))
    return _answer_of(result, guard, label, options)


@asynccontextmanager
async def _room(options: YtdlpOptions) -> AsyncIterator[Path]:
    """A directory for nobody but the child, which is its home."""
    await asyncio.to_thread(_sweep, options.directory)
    room = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=options.directory))
    try:
        yield room
    finally:
        await asyncio.to_thread(shutil.rmtree, room, ignore_errors=True)


def _sweep(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for left in directory.iterdir():
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(left, ignore_errors=True)


def _furnish(room: Path, url: str, options: YtdlpOptions, proxy: str) -> None:
    told = [*OPTIONS, "--proxy", proxy, "--batch-file", str(room / "pages")]
    if options.cookies is not None:
        told += ["--cookies", str(room / "cookies")]
        try:
            # yt-dlp writes the file anew when it ends, and the operator's shall stay as it is
            (room / "cookies").write_bytes(options.cookies.read_bytes())
        except OSError as exc:
            raise SourceForbidden(f"YTDLP_COOKIES cannot be read: {exc.strerror}") from exc
    (room / "options").write_text("\n".join(map(shlex.quote, told)))
    (room / "pages").write_text(f"{url}\n")


def _environment(room: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return {**kept, "HOME": str(room), "TMPDIR": str(room), "YTDLP_NO_PLUGINS": "1"}


def _answer_of(result: ChildResult, guard: GuardProxy, label: str, options: YtdlpOptions) -> dict[str, Any]:
    if result.ended is not ChildEnd.EXITED:
        raise YtdlpTimeout(f"yt-dlp did not find out about {label} within {options.timeout_seconds:g} s")
    # to yt-dlp a refusal is a server that does not answer, and it may have found another way to fail
    if guard.has_refused:
        raise SourceForbidden(f"{label} leads into a private network; if that is meant, set ALLOW_PRIVATE_SOURCES=true")
    try:
        answer = json.loads(result.stdout)
    except ValueError:
        answer = None
    if result.exit_code == 0 and isinstance(answer, dict):
        return answer
    raise _failure(result, label)


def _failure(result: ChildResult, label: str) -> JobError:
    said = next((line for line in reversed(result.stderr_tail) if line.startswith("ERROR:")), "")
    # addresses may hold tokens, and the page's own is in the label
    words = _URL.sub("…", said.removeprefix("ERROR:").strip().partition("; please report")[0])[:300]
    for pattern, error in _MEANINGS:
        if re.search(pattern, words, re.IGNORECASE):
            return error(f"yt-dlp could not read {label}: {words}")
    return SourceUnsupported(f"yt-dlp could not read {label}: {words or f'exit code {result.exit_code}'}")
