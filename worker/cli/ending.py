"""How a job that was waited for ended: told once, the same way by `submit --wait` and `jobs watch`."""

from dataclasses import asdict
from typing import Any

from rich.text import Text

from worker.cli.command import DONE, FAILED
from worker.cli.output import Output
from worker.cli.present import status_text, tell_result
from worker.domain.job import JobStatus
from worker.jobs.desk import JobDetail


def tell_ending(out: Output, job: JobDetail) -> int:
    """The exit code: 0 only for a job that is done."""
    if out.as_json:
        out.value(job_json(job))
    elif job.status is JobStatus.DONE:
        length = (job.result or {}).get("duration_ms", 0) / 1000
        out.rich_line(Text.assemble(status_text(job.status), f"  {job.id}  ", (f"{length:.3f} s of media", "dim")))
        tell_result(out, job.result)
    else:
        out.error(job.error_code or job.status.upper(), _what_happened(job))
    return DONE if job.status is JobStatus.DONE else FAILED


def job_json(job: JobDetail) -> dict[str, Any]:
    return asdict(job)


def _what_happened(job: JobDetail) -> str:
    if job.error_code is None:
        return f"job {job.id} was {job.status}"
    return f"job {job.id} {job.status}: {job.error_code}: {job.error_message}"
