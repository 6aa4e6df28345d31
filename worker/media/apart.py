"""Probing in a process of its own: what a hostile file breaks or fills up there is not the worker."""

import json
import signal
import sys
from typing import Any, Final, Self

from worker.domain.media import AudioStream, Probe, VideoStream
from worker.errors import (
    JobError,
    RetryableError,
    SourceForbidden,
    SourceNotFound,
    SourceUnsupported,
    UpstreamFailure,
)
from worker.media.process import ChildEnd, ChildResult, Limits
from worker.media.source import LABEL, ReadableSource
from worker.media.spare import SpareChild

#: longer than the two waits inside
WALL_SECONDS: Final = 75.0
CPU_SECONDS: Final = 30
_ERRORS: Final[dict[str, type[JobError]]] = {
    error.code: error for error in (SourceForbidden, SourceNotFound, SourceUnsupported, UpstreamFailure)
}


class Prober:
    """Looks at sources. Refuses what cannot be cut, and what cannot even be opened without harm."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "worker.media.probe_child"]
        self._child = SpareChild(command, limits=Limits(WALL_SECONDS, cpu_seconds=CPU_SECONDS))

    async def __aenter__(self) -> Self:
        self._child.prepare()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._child.close()

    async def probe(self, source: ReadableSource) -> Probe:
        given = (source.input, source.protocols, source.formats, source.size_bytes)
        result = await self._child.run(json.dumps(given))
        # the source knows best why it could not be read: to the prober one that breaks off is bad or short media
        if failure := source.failure():
            raise failure
        if result.ended is not ChildEnd.EXITED:
            raise UpstreamFailure(f"{source.label} could not be looked at within {WALL_SECONDS:g} s")
        if result.exit_code == -signal.SIGKILL:
            # nothing inside does that: the machine ran out of memory, or an operator thought it hung
            raise RetryableError(f"the process that looked at {source.label} was killed from outside")
        answer = _answer_of(result, source)
        if "probe" not in answer:
            error = _ERRORS.get(answer["code"], SourceUnsupported)
            raise error(answer["message"].replace(LABEL, source.label))
        return _as_probe(answer["probe"])


def _answer_of(result: ChildResult, source: ReadableSource) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(result.stdout)
    except ValueError:
        raise SourceUnsupported(f"{source.label} breaks whatever opens it (exit code {result.exit_code})") from None
    return answer


def _as_probe(found: dict[str, Any]) -> Probe:
    video, audio = found["video"], found["audio"]
    return Probe(
        **{**found, "video": video and VideoStream(**video), "audio": audio and AudioStream(**audio)},
    )
