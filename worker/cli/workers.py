"""`workers`: which workers there are, whether they live, and what they are at."""

from collections.abc import Sequence
from datetime import timedelta

import click
from rich.text import Text

from worker.cli.command import Face, command
from worker.cli.output import Output
from worker.cli.present import age, describe
from worker.domain.worker import WorkerState
from worker.jobs.workers import WorkerRows, WorkerSummary

STYLES = {
    WorkerState.ALIVE: "green",
    WorkerState.LATE: "yellow",
    WorkerState.DEAD: "red",
    WorkerState.STOPPED: "dim",
    WorkerState.UNREGISTERED: "magenta",
}
COLUMNS = ("id", "state", "heard", "jobs", "done", "errors", "where", "up", "version", "queues", "last error")
#: on a terminal the last error matters more, and lines are cut to its width
WIDE_COLUMNS = {"version", "queues"}
JOB_COLUMNS = ("worker", "job", "queue", "stage", "try", "for", "what")


@command("workers")
@click.option("--all", "with_stopped", is_flag=True, help="Those that have stopped as well.")
async def workers(face: Face, *, with_stopped: bool) -> None:
    """Workers: alive, late (a heartbeat is missing) or dead (two are), their counts, and their jobs right now.

    Counts are as of the last heartbeat. A worker that is shown as unregistered holds jobs but has no row.
    """
    async with face.open_app() as app:
        found = await WorkerRows(app.pool, app.queue).listing(with_stopped=with_stopped)
    if face.out.as_json:
        face.out.value(found)
    elif found:
        tell_workers(face.out, found)
    else:
        face.out.note("no workers" if with_stopped else "no workers run (--all shows those that have stopped)")


def tell_workers(out: Output, found: Sequence[WorkerSummary]) -> None:
    short = out.is_terminal
    shown = [column for column in COLUMNS if not (short and column in WIDE_COLUMNS)]
    cells = [_worker_cells(worker, short=short) for worker in found]
    out.table(shown, [[worker[column] for column in shown] for worker in cells])
    jobs = [row for worker in found for row in _job_rows(worker, short=short)]
    if jobs:
        out.line()
        out.table(JOB_COLUMNS, jobs)


def _worker_cells(worker: WorkerSummary, *, short: bool) -> dict[str, Text | str]:
    is_known = worker.state is not WorkerState.UNREGISTERED
    ended = worker.stopped_at or worker.last_heartbeat
    return {
        "id": _id(worker.id, short=short),
        "state": Text(worker.state, style=STYLES[worker.state]),
        "heard": f"{_age(worker.silent_seconds)} ago" if is_known else "-",
        "jobs": f"{len(worker.jobs)}/{worker.slots or '?'}",
        "done": str(worker.successes) if is_known else "-",
        "errors": str(worker.errors) if is_known else "-",
        "where": f"{worker.host or '?'}:{worker.pid or '?'}" if is_known else "-",
        "up": age(ended - worker.started_at) if ended and worker.started_at else "-",
        "version": worker.version or "-",
        "queues": ", ".join(f"{counted.queue} {counted.processed}" for counted in worker.queues) or "-",
        "last error": worker.last_error or "",
    }


def _job_rows(worker: WorkerSummary, *, short: bool) -> list[list[Text | str]]:
    return [
        [
            _id(worker.id, short=short),
            _id(job.id, short=short),
            job.queue,
            f"{job.stage or 'starting'} {job.progress:.0%}",
            str(job.attempt),
            _age(job.running_seconds),
            describe(job.spec),
        ]
        for job in worker.jobs
    ]


def _id(found: object, *, short: bool) -> str:
    return str(found)[:8] if short else str(found)


def _age(seconds: float | None) -> str:
    return "-" if seconds is None else age(timedelta(seconds=seconds))
