"""Jobs that are split: their source, an ffmpeg that can be held up, and what tests ask about their pages."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import av
import numpy as np
from numpy.typing import NDArray

from tests.conftest import Room
from tests.processes import Bench, eventually
from worker.domain.job import JobId, JobStatus
from worker.domain.paging import PAGE_QUEUE, PageRef
from worker.media.ffmpeg import find_ffmpeg
from worker.media.frame_code import read_frame_number

DONE = JobStatus.DONE


@dataclass(frozen=True)
class Decoded:
    """All that a decoder makes of a clip; a single error of decoding raises."""

    times: list[float]
    numbers: list[int | None]
    samples: NDArray[np.float32]
    #: when the first sample is heard
    sound_at: float


def decode(path: Path) -> Decoded:
    times, numbers, samples, sound_at = list[float](), list[int | None](), list[NDArray[np.float32]](), 0.0
    with av.open(str(path)) as container:
        for stream in container.streams.video + container.streams.audio:
            stream.codec_context.options = {"err_detect": "explode"}
        for frame in container.decode():
            if isinstance(frame, av.VideoFrame):
                assert frame.time is not None
                times.append(round(frame.time, 6))
                numbers.append(read_frame_number(frame.to_ndarray(format="gray")))
            elif isinstance(frame, av.AudioFrame):
                sound_at = sound_at if samples else float(frame.time or 0)
                samples.append(frame.to_ndarray())
    heard = np.concatenate(samples, axis=1) if samples else np.zeros((1, 0), np.float32)
    return Decoded(times, numbers, heard, sound_at)


class Gate:
    """An ffmpeg that waits as long as its command line mentions a word that was closed."""

    def __init__(self, directory: Path) -> None:
        self._closed = directory / "closed"
        self._closed.mkdir()
        self.ffmpeg = directory / "ffmpeg"
        self.ffmpeg.write_text(
            "#!/bin/sh\nis_closed() {\n"
            f'  for word in $(ls {shlex.quote(str(self._closed))}); do case "$1" in *"$word"*) return 0 ;; esac; done\n'
            "  return 1\n}\n"
            f'while is_closed "$*"; do sleep 0.05; done\nexec {shlex.quote(str(find_ffmpeg(None)))} "$@"\n'
        )
        self.ffmpeg.chmod(0o755)

    def close(self, *pages: PageRef) -> None:
        for page in pages:
            (self._closed / str(page.job_id)).touch()

    def open(self) -> None:
        for path in self._closed.iterdir():
            path.unlink()


async def pages_queue(room: Room, *, retry_limit: int = 2) -> None:
    """With no delay between the attempts of a page."""
    await room.queue.create_queue(PAGE_QUEUE, retry_limit=retry_limit, notify=True)


def page(run_id: UUID, partition: int, offset: int) -> PageRef:
    return PageRef(JobId(run_id), partition, offset)


async def events(bench: Bench, job_id: UUID, kind: str) -> list[dict[str, Any]]:
    return [dict(event.data or {}) for event in await bench.room.desk.events(job_id) if event.kind == kind]


async def wait_for_event(bench: Bench, job_id: UUID, kind: str, *, count: int = 1, seconds: float = 40) -> None:
    async def happened() -> bool:
        return len(await events(bench, job_id, kind)) >= count

    await eventually(happened, seconds=seconds, tell=bench.log)


async def statuses(bench: Bench, run_id: UUID) -> Counter[str]:
    """How many of a run's pages are in which status."""
    rows = await bench.room.pool.fetch("SELECT status FROM worker.jobs WHERE run_id = $1", run_id)
    return Counter(row["status"] for row in rows)


async def finished(bench: Bench, run_id: UUID) -> list[tuple[str, int, int]]:
    """Kind, partition and offset of every row that finished pages left."""
    rows = await bench.room.pool.fetch(
        "SELECT kind, partition_id, page_offset FROM worker.pages JOIN worker.partition_progress "
        "USING (run_id, partition_id) WHERE run_id = $1 ORDER BY 2, 3",
        run_id,
    )
    return [tuple(row) for row in rows]


async def result_of(bench: Bench, job_id: UUID) -> dict[str, Any]:
    job = await bench.job(job_id)
    assert job.status == DONE, f"{job.error_code} {job.error_message}\n{bench.log()[-3000:]}"
    assert job.result is not None
    return job.result


def files_of(result: dict[str, Any]) -> dict[str, Path]:
    """The artifacts in a local storage, by name."""
    return {PurePath(told["key"]).name: Path(urlsplit(told["url"]).path) for told in result["artifacts"]}


def kinds_of(result: dict[str, Any]) -> list[tuple[str, int | None]]:
    return [(told["kind"], told.get("height")) for told in result["artifacts"]]


def stored_pages(root: Path) -> list[str]:
    """What pages have left in a local storage."""
    return sorted(path.name for path in root.glob("**/pages/*") if path.is_file())


def most_at_once(spans: Sequence[tuple[float, float]]) -> int:
    edges = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    running, most = 0, 0
    for _, step in edges:
        running += step
        most = max(most, running)
    return most
