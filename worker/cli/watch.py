"""Follow jobs until they end: a bar for each on a terminal, a line for each step in a pipe."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self
from uuid import UUID

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from worker.cli.output import Output, printable
from worker.cli.present import STYLES, waits_for_pages
from worker.domain.job import JobStatus
from worker.jobs.desk import JobDesk, JobDetail

POLL_SECONDS = 0.3
#: a worker that runs takes a job within its poll interval, 2 s
PATIENCE_SECONDS = 6.0


class View(Protocol):
    def show(self, job: JobDetail) -> None: ...
    def remark(self, text: str) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def open_view(out: Output, labels: Mapping[UUID, str]) -> View:
    """Progress never goes to stdout, where the answer goes."""
    return Bars(out.side, labels) if out.side.is_terminal else Lines(out.side, labels)


async def follow(
    desk: JobDesk, ids: Sequence[UUID], view: View, *, patience_seconds: float = PATIENCE_SECONDS
) -> list[JobDetail]:
    """The jobs as they ended, in the order asked for."""
    last: dict[UUID, JobDetail] = {}
    started = time.monotonic()
    has_remarked = False
    with view:
        while True:
            for job_id in ids:
                if job_id not in last or not last[job_id].status.is_final:
                    last[job_id] = await desk.show(job_id)
                    view.show(last[job_id])
            if all(job.status.is_final for job in last.values()):
                return [last[job_id] for job_id in ids]
            if not has_remarked and time.monotonic() - started > patience_seconds and _nobody_came(last):
                view.remark("no worker has taken it yet; is one running for this database and queue?")
                has_remarked = True
            await asyncio.sleep(POLL_SECONDS)


def _nobody_came(jobs: Mapping[UUID, JobDetail]) -> bool:
    return all(
        job.status is JobStatus.QUEUED and not job.attempt_count and not waits_for_pages(job) for job in jobs.values()
    )


def stage_words(job: JobDetail) -> str:
    if job.status is JobStatus.QUEUED and job.error_code:
        return f"waits to be tried again ({job.error_code})"
    if job.status is JobStatus.FAILED:
        return f"failed: {job.error_code}"
    if waits_for_pages(job):
        return "pages"
    return (job.stage or "starting") if job.status is JobStatus.PROCESSING else job.status


class Bars:
    def __init__(self, console: Console, labels: Mapping[UUID, str]) -> None:
        self._labels = labels
        self._progress = Progress(
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
            BarColumn(bar_width=28),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[stage]}", table_column=Column(no_wrap=True)),
            console=console,
        )
        self._tasks: dict[UUID, TaskID] = {
            job_id: self._progress.add_task(printable(label), total=1.0, stage="[yellow]queued")
            for job_id, label in labels.items()
        }

    def show(self, job: JobDetail) -> None:
        task = self._tasks[job.id]
        self._progress.update(task, completed=job.progress, stage=f"[{STYLES[job.status]}]{stage_words(job)}")
        if job.status.is_final:
            self._progress.stop_task(task)

    def remark(self, text: str) -> None:
        self._progress.console.print(Text(text, style="dim"))

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


class Lines:
    """One line for each step; percentages would only fill the log."""

    def __init__(self, console: Console, labels: Mapping[UUID, str]) -> None:
        self._console = console
        self._labels = labels
        self._said: dict[UUID, str] = {}

    def show(self, job: JobDetail) -> None:
        words = stage_words(job)
        if self._said.get(job.id) != words:
            self._said[job.id] = words
            self.remark(f"{self._labels[job.id]}: {words}")

    def remark(self, text: str) -> None:
        self._console.print(Text(printable(text)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        return
