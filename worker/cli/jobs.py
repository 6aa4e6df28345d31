"""`jobs`: look at jobs, cancel them, try them again."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

import click

from worker.cli.command import DONE, FAILED, Face, command
from worker.cli.ending import job_json, tell_ending
from worker.cli.present import COLUMNS, describe, summary_row, tell_job
from worker.cli.watch import follow, open_view
from worker.domain.job import JobStatus
from worker.domain.paging import PAGE_QUEUE
from worker.errors import JobMissing
from worker.jobs.desk import JobDesk

MOST_LISTED = 1000
SHORTEST_PREFIX = 4


@click.group("jobs")
def jobs() -> None:
    """Look at jobs, cancel them, try them again.

    An ID may be shortened to its first 4 or more characters as long as that is unique.
    A job that does not exist is exit code 1, something that cannot be an id is exit code 2.
    """


@command("list")
@click.option("--status", type=click.Choice([status.value for status in JobStatus]), help="Only these.")
@click.option("--queue", help="Only of this queue.")
@click.option("--limit", type=click.IntRange(1, MOST_LISTED), default=20, show_default=True, help="At most so many.")
@click.option("--pages", is_flag=True, help="The pages of long jobs as well.")
async def list_jobs(face: Face, *, status: str | None, queue: str | None, limit: int, pages: bool) -> None:
    """The newest jobs."""
    async with face.open_app() as app:
        found = await app.desk.listing(
            [queue] if queue else app.settings.queues,
            status=JobStatus(status) if status else None,
            queue=queue,
            limit=limit,
            with_pages=pages or queue == PAGE_QUEUE,
        )
    if face.out.as_json:
        face.out.value(found)
    elif found:
        short = face.out.is_terminal
        face.out.table(COLUMNS, [summary_row(job, short=short) for job in found])
    else:
        face.out.note("no such jobs" if status or queue else "no jobs yet")


@command("show")
@click.argument("job", metavar="ID")
async def show(face: Face, *, job: str) -> None:
    """Everything about a job: facts, pages, artifacts, error, timeline."""
    reference = parse_reference(job)
    async with face.open_app() as app:
        job_id = await find(app.desk, reference, app.settings.queues)
        detail, events = await app.desk.show(job_id), await app.desk.events(job_id)
        run = await app.desk.run(job_id)
    if face.out.as_json:
        face.out.value({**job_json(detail), "run": run, "events": events})
    else:
        tell_job(face.out, detail, events, run)


@command("watch")
@click.argument("job", metavar="ID")
async def watch(face: Face, *, job: str) -> int:
    """Follow a job until it ends; exit code 0 only if it is done then."""
    reference = parse_reference(job)
    async with face.open_app() as app:
        job_id = await find(app.desk, reference, app.settings.queues)
        spec = (await app.desk.show(job_id)).spec
        [ended] = await follow(app.desk, [job_id], open_view(face.out, {job_id: describe(spec)}))
    return tell_ending(face.out, ended)


@command("cancel")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
async def cancel(face: Face, *, ids: Sequence[str]) -> int:
    """Cancel jobs; a running one is told to stop."""
    meanings = {
        "cancelled": "cancelled",
        "processing": "is running; its worker was told to stop",
    }
    return await _act(face, ids, lambda desk: desk.cancel, meanings, "it cannot be cancelled any more")


@command("retry")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
async def retry(face: Face, *, ids: Sequence[str]) -> int:
    """Give failed or cancelled jobs one more attempt."""
    meanings = {"queued": "queued again"}
    return await _act(face, ids, lambda desk: desk.retry, meanings, "only failed and cancelled jobs can be retried")


for part in (list_jobs, show, watch, cancel, retry):
    jobs.add_command(part)


def parse_reference(text: str) -> UUID | str:
    """A job's id, or the beginning of one; click's usage error for anything else."""
    try:
        return UUID(text)
    except ValueError:
        prefix = text.lower()
        if len(prefix) >= SHORTEST_PREFIX and not set(prefix) - set("0123456789abcdef-"):
            return prefix
    raise click.UsageError(f"{text!r} is not a job id (a UUID, or at least its first {SHORTEST_PREFIX} characters).")


async def find(desk: JobDesk, reference: UUID | str, queues: Sequence[str]) -> UUID:
    if isinstance(reference, UUID):
        return reference
    matches = await desk.find(reference, queues)
    if not matches:
        raise JobMissing(f"no job has an id that begins with {reference}")
    if len(matches) > 1:
        raise click.UsageError(f"more than one job has an id that begins with {reference}: write more of it.")
    return matches[0]


async def _act(
    face: Face,
    ids: Sequence[str],
    choose: Callable[[JobDesk], Callable[[UUID], Awaitable[str]]],
    meanings: dict[str, str],
    otherwise: str,
) -> int:
    """Do it to each; one that cannot be done does not keep the others from it."""
    references = [parse_reference(text) for text in ids]
    answers: list[dict[str, Any]] = []
    async with face.open_app() as app:
        act = choose(app.desk)
        for reference, text in zip(references, ids, strict=True):
            try:
                job_id = await find(app.desk, reference, app.settings.queues)
                status = await act(job_id)
            except JobMissing as exc:
                answers.append({"id": text, "status": None, "ok": False, "message": str(exc)})
                continue
            message = meanings.get(status, f"is {status}: {otherwise}")
            answers.append({"id": job_id, "status": status, "ok": status in meanings, "message": message})
    if face.out.as_json:
        face.out.value(answers)
    for answer in answers:
        style = "" if answer["ok"] else "red"
        face.out.line(answer["message"] if answer["status"] is None else f"{answer['id']} {answer['message']}", style)
    return DONE if all(answer["ok"] for answer in answers) else FAILED
