"""`python -m worker.media.probe_child`: probes the source named on its input, with little memory to lose.

A file of a few kilobytes can claim an index or a frame of gigabytes, and whoever opens it pays.
"""

import json
import os
import resource
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from worker.domain.media import Probe
from worker.errors import JobError, SourceUnsupported
from worker.media.look import look
from worker.media.source import LABEL

#: the index of a day of film, and a few frames of the largest size
SPARE_BYTES = 512 * 2**20
#: beyond this the kernel refuses; libraries do not always tell, so there is room to see it coming
CEILING_BYTES = 2048 * 2**20


@dataclass(frozen=True, slots=True)
class _Given:
    input: str
    protocols: tuple[str, ...]
    formats: tuple[str, ...]
    size_bytes: int
    late_seek_seconds: float = 0.0
    label: str = LABEL

    def failure(self) -> JobError | None:
        return None


def main() -> None:
    order = sys.stdin.read()
    if not order:
        return  # its worker is gone, or never needed it
    url, protocols, formats, size_bytes = json.loads(order)
    source = _Given(url, tuple(protocols), tuple(formats), size_bytes)
    _limit_memory()
    sys.stdout.write(json.dumps(_answer(source)))
    sys.stdout.flush()
    # there is nothing to tidy up, and doing so properly would take as long as the look
    os._exit(0)


def _answer(source: _Given) -> dict[str, Any]:
    try:
        return {"probe": asdict(_bounded(source))}
    except JobError as exc:
        return {"code": exc.code, "message": str(exc)}


def _bounded(source: _Given) -> Probe:
    before = _peak_bytes()
    try:
        found = look(source)
        if _peak_bytes() - before > SPARE_BYTES:
            raise _greedy()
        return found
    except MemoryError as exc:
        raise _greedy() from exc
    except JobError as exc:
        raise _greedy() if isinstance(exc.__cause__, MemoryError) else exc from exc


def _greedy() -> SourceUnsupported:
    return SourceUnsupported(f"{LABEL} takes more than {SPARE_BYTES >> 20} MB of memory to open")


def _peak_bytes() -> int:
    # kilobytes, but bytes on macOS
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _limit_memory() -> None:
    """What is loaded already does not count; it differs from machine to machine."""
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + CEILING_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    main()
