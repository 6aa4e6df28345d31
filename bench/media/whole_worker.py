"""A whole worker in this process, with an embedded PostgreSQL and local storage, and its jobs taken apart."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.media.children import Child, watched_children
from bench.media.ours import bench_settings
from worker.app import App, open_app, open_worker
from worker.domain.job import JobId, JobStatus
from worker.jobs.desk import JobEvent
from worker.telemetry.logs import configure_logging

QUEUE = "clip"
#: how often the database is asked whether a job has ended; its end is read from the timeline
LOOK_SECONDS = 0.5


class JobFailed(Exception):
    """A job of the benchmark did not end as it should; figures of it would mean nothing."""


@dataclass(frozen=True, slots=True)
class JobRun:
    """One job from the call that sent it to the event that ended it."""

    job_id: JobId
    sent_at: float
    done_at: float
    events: Sequence[JobEvent]
    children: Sequence[Child]

    @property
    def wall_seconds(self) -> float:
        return self.done_at - self.sent_at

    @property
    def ffmpegs(self) -> list[Child]:
        return [child for child in self.children if child.name == "ffmpeg"]

    @property
    def cut(self) -> Child:
        """The ffmpeg that makes the clip."""
        return max(self.ffmpegs, key=lambda child: child.ended_at - child.began_at)

    @property
    def overhead_seconds(self) -> float:
        """What is not ffmpeg."""
        return self.wall_seconds - sum(child.ended_at - child.began_at for child in self.ffmpegs)


@dataclass(frozen=True, slots=True)
class Bench:
    app: App
    children: list[Child]

    async def run(self, specs: Sequence[Mapping[str, Any]]) -> list[JobRun]:
        """All at once, to their ends."""
        sent_at = time.time()
        sent = [await self._send(spec) for spec in specs]
        return [await self._follow(job_id, sent_at) for job_id in sent]

    async def run_one(self, spec: Mapping[str, Any]) -> JobRun:
        return (await self.run([spec]))[0]

    async def _send(self, spec: Mapping[str, Any]) -> JobId:
        job_id = await self.app.desk.submit(QUEUE, spec)
        assert job_id is not None, "this queue refuses nothing"
        return job_id

    async def _follow(self, job_id: JobId, sent_at: float) -> JobRun:
        while not (job := await self.app.desk.show(job_id)).status.is_final:  # noqa: ASYNC110 - the end is a row in the database
            await asyncio.sleep(LOOK_SECONDS)
        if job.status is not JobStatus.DONE:
            raise JobFailed(f"the job ended as {job.status}: {job.error_code} {job.error_message}")
        events = await self.app.desk.events(job_id)
        own = [child for child in self.children if child.mentions(str(job_id)) or _is_within(child, events)]
        return JobRun(job_id, sent_at, events[-1].at.timestamp(), events, own)


@asynccontextmanager
async def open_bench(
    directory: Path, *, sources: Path, max_concurrency: int, database_url: str | None = None
) -> AsyncIterator[Bench]:
    """A worker that runs as long as the block; with `database_url` on another server than the embedded one."""
    configure_logging("console", "warning")
    settings = bench_settings(
        directory,
        database_url=database_url,
        max_concurrency=max_concurrency,
        local_source_roots=(sources,),
    )
    with watched_children() as children:
        async with open_app(settings, role="bench") as app, open_worker(app) as supervisor:
            working = asyncio.create_task(supervisor.run())
            try:
                yield Bench(app, children)
            finally:
                supervisor.stop()
                await working


def _is_within(child: Child, events: Sequence[JobEvent]) -> bool:
    """Probing names no job; with one job at a time its hour tells."""
    return child.name != "ffmpeg" and events[0].at.timestamp() <= child.began_at <= events[-1].at.timestamp()
