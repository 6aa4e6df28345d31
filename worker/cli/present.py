"""How a job looks to a person: one row, or everything there is to know."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from rich.text import Text

from worker.cli.output import Output, printable
from worker.domain.job import JobStatus
from worker.jobs.desk import JobDetail, JobEvent, JobSummary, PageSummary, RunSummary

STYLES = {
    JobStatus.QUEUED: "yellow",
    JobStatus.PROCESSING: "cyan",
    JobStatus.DONE: "green",
    JobStatus.FAILED: "red",
    JobStatus.CANCELLED: "magenta",
}
COLUMNS = ("id", "status", "queue", "stage", "tries", "age", "what")


def summary_row(job: JobSummary, *, short: bool) -> list[Text | str]:
    stage = ""
    if job.status is JobStatus.PROCESSING or waits_for_pages(job):
        stage = f"{job.stage or 'starting'} {job.progress:.0%}"
    return [
        str(job.id)[:8] if short else str(job.id),
        status_text(job.status),
        job.queue,
        stage,
        f"{tries(job)}/{job.max_attempts}",
        age(datetime.now(UTC) - job.created_at),
        f"{job.error_code}: {job.error_message}" if job.error_code else describe(job.spec),
    ]


def tell_job(out: Output, job: JobDetail, events: Sequence[JobEvent], run: RunSummary | None) -> None:
    """Facts, pages, timeline, artifacts, error."""
    out.rich_line(Text.assemble(("job ", "bold"), (str(job.id), "bold"), "  ", status_text(job.status)))
    for name, fact in _facts(job):
        out.rich_line(Text.assemble((f"  {name:<10} ", "dim"), printable(fact)))
    tell_error(out, job)
    tell_result(out, job.result)
    if run is not None:
        tell_run(out, run)
    if events:
        out.line("timeline", "bold")
    previous = job.created_at
    for event in events:
        line = _event_line(event, since=event.at - previous)
        if out.is_terminal:
            line.truncate(out.console.width, overflow="ellipsis")
        out.rich_line(line)
        previous = event.at


def tell_error(out: Output, job: JobDetail) -> None:
    if job.error_code:
        retrying = "will be tried again after " if job.status is JobStatus.QUEUED else ""
        out.rich_line(
            Text.assemble(("error ", "bold red"), f"{retrying}{job.error_code}: {printable(job.error_message or '')}")
        )


def tell_result(out: Output, result: Mapping[str, Any] | None) -> None:
    if not result:
        return
    for artifact in result.get("artifacts", []):
        size = readable_bytes(artifact["bytes"])
        kind = Text(f"  {artifact['kind']:<10} ", style="bold")
        out.rich_line(Text.assemble(kind, printable(local_name(artifact["url"])), (f"  {size}", "dim")))
    if result.get("transcript"):
        out.rich_line(Text.assemble(("  says       ", "bold"), f"“{first_words(result['transcript'])}”"))


def tell_run(out: Output, run: RunSummary) -> None:
    """A tree: chains of pages, and in each what was sent."""
    stuck = " and nobody works on the rest; its next look, once a minute, mends that" if run.is_stuck else ""
    out.line(f"pages {run.finished_pages} of {run.pages} finished{stuck}", "bold")
    for partition in sorted({page.partition for page in run.sent}):
        pages = [page for page in run.sent if page.partition == partition]
        ended = sum(page.status is JobStatus.DONE for page in pages)
        line = Text.assemble(
            (f"  {pages[0].kind or '':<9}", "bold"), (f" chain {partition:<3}", "dim"), f"{ended} done"
        )
        for page in pages:
            if page.status is not JobStatus.DONE:
                line.append_text(Text.assemble("   ", _page_text(page)))
        out.rich_line(line)


def _page_text(page: PageSummary) -> Text:
    percent = f" {page.progress:.0%}" if page.status is JobStatus.PROCESSING else ""
    error = f" {page.error_code}: {printable(page.error_message or '')}" if page.error_code else ""
    return Text.assemble(
        f"page {page.offset + 1} ", status_text(page.status), f"{percent}{error}", (f" {page.id}", "dim")
    )


def waits_for_pages(job: JobSummary) -> bool:
    return job.status is JobStatus.QUEUED and job.stage == "pages"


def status_text(status: JobStatus) -> Text:
    return Text(status, style=STYLES[status])


def tries(job: JobSummary) -> int:
    """Attempts begun so far."""
    is_trying = job.status in {JobStatus.PROCESSING, JobStatus.DONE}
    return job.attempt_count + (1 if is_trying else 0)


def describe(spec: Any) -> str:
    """A spec in a few words; it may be anything that somebody sent."""
    if not isinstance(spec, dict):
        return "not a job spec"
    if {"run", "partition", "offset"} == spec.keys():
        return f"page {spec['partition']}:{spec['offset']} of {str(spec['run'])[:8]}"
    source = str(spec.get("source", "no source"))
    name = unquote(source.split("?", 1)[0].rstrip("/").rsplit("/", 1)[-1]) or source
    start, end = spec.get("start"), spec.get("end")
    span = "" if start is None and end is None else f" {start or 0}..{'end' if end is None else end}"
    wishes = [str(spec[key]) for key in ("mode",) if key in spec]
    if "max_height" in spec:
        wishes.append(f"≤{spec['max_height']}p")
    return " ".join([f"{name}{span}", *wishes])


def local_name(url: str) -> str:
    """A file's path, because that is what a person can open; other URLs as they are."""
    parts = urlsplit(url)
    if parts.scheme != "file":
        return url
    path = Path(unquote(parts.path))
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def first_words(text: str, most: int = 90) -> str:
    """The beginning, cut between words."""
    words = printable(" ".join(text.split()))
    return words if len(words) <= most else words[:most].rsplit(" ", 1)[0] + " …"


def readable_bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def age(span: timedelta) -> str:
    seconds = max(0, round(span.total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _facts(job: JobDetail) -> list[tuple[str, str]]:
    facts = [("queue", job.queue), ("what", describe(job.spec))]
    if isinstance(job.spec, dict) and "source" in job.spec:
        # What follows a question mark is often a signature.
        facts.append(("source", str(job.spec["source"]).split("?", 1)[0]))
    facts.append(("attempts", f"{tries(job)} of {job.max_attempts}"))
    if job.status is JobStatus.PROCESSING:
        facts.append(("stage", f"{job.stage or 'starting'}, {job.progress:.0%} of the job"))
    if waits_for_pages(job):
        facts.append(("stage", f"waits for its pages, {job.progress:.0%} of the job"))
    if job.run_id is not None:
        facts.append(("page of", str(job.run_id)))
    if job.cancel_requested_at and not job.status.is_final:
        facts.append(("cancel", f"requested at {_local(job.cancel_requested_at)}"))
    facts.append(("created", _local(job.created_at)))
    if job.finished_at:
        facts.append(("finished", f"{_local(job.finished_at)} ({_seconds(job.finished_at - job.created_at)} later)"))
    if job.result and "duration_ms" in job.result:
        facts.append(("duration", f"{job.result['duration_ms'] / 1000:.3f} s"))
    return facts


def _event_line(event: JobEvent, *, since: timedelta) -> Text:
    details = dict(event.data or {})
    stage = details.pop("stage", None)
    style = "red" if "fail" in event.kind else "green" if event.kind == "done" else ""
    rest = "  ".join(f"{key}={printable(str(value))}" for key, value in details.items())
    moment = event.at.astimezone().strftime("%H:%M:%S.%f")[:-3]
    attempt = f"#{event.attempt}" if event.attempt else ""
    return Text.assemble(
        (f"  {moment}  +{_seconds(since):<8} {attempt:<3} ", "dim"),
        (f"{event.kind:<16} ", style),
        f"{stage or '':<9}",
        (f"{' ' if rest else ''}{rest}", "dim"),
    )


def _seconds(span: timedelta) -> str:
    return f"{span.total_seconds():.2f} s"


def _local(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")
