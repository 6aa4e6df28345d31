"""`demo`: three real jobs on a sample of its own, with nothing configured."""

import asyncio
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click
from rich.text import Text

from worker.cli.command import DONE, FAILED, Face, command, how_to_call
from worker.cli.demo_jobs import JOBS, Finding, check_clip, ensure_sample
from worker.cli.present import local_name, status_text, tell_error, tell_result
from worker.cli.watch import follow, open_view
from worker.domain.job import JobId, JobStatus, StageName
from worker.jobs.desk import JobDesk, JobDetail
from worker.settings import Settings

if TYPE_CHECKING:
    from worker.app import App

#: of its own, so that no other worker on the same database takes the demo's jobs, nor the demo theirs
QUEUE = "demo"
#: a demo that still runs must keep its artifacts
OLD_SECONDS = 60 * 60
#: after Ctrl-C, for running jobs to notice
CANCEL_SECONDS = 5.0


@command("demo")
@click.option("--keep", is_flag=True, help="Keep the artifacts of earlier demos.")
async def demo(face: Face, *, keep: bool) -> int:
    """Run three real jobs and show what came out: needs no database, no storage, no network.

    Everything lies under SCRATCH_DIR; DATABASE_URL and STORAGE_URL are not used. Exit code 0 only if all three jobs
    are done and every clip holds exactly the frames it should.
    """
    started = time.monotonic()
    settings = _settings(face)
    folder = settings.local_source_roots[0]
    if not keep:
        await asyncio.to_thread(_remove_old, folder / "artifacts")
    face.out.note(f"making or reusing the sample in {local_name(folder.as_uri())}: numbered frames and speech")
    # Made while the database starts.
    sampling = asyncio.create_task(asyncio.to_thread(ensure_sample, folder))
    async with face.open_app(settings) as app:
        jobs = await _run_jobs(face, app, sample := await sampling)
    findings = [await asyncio.to_thread(check_clip, one, job) for one, job in zip(JOBS, jobs, strict=True)]
    is_right = all(finding.is_right for finding in findings) and all(job.status is JobStatus.DONE for job in jobs)
    if face.out.as_json:
        face.out.value({"jobs": [_as_json(job) for job in jobs]})
    else:
        _tell(face, jobs, findings)
        _tell_next(face, sample, time.monotonic() - started)
    return DONE if is_right else FAILED


def _settings(face: Face) -> Settings:
    plain = face.load_settings()
    ignored = [name for name in ("DATABASE_URL", "STORAGE_URL") if getattr(plain, name.lower()) is not None]
    if ignored:
        face.out.note(f"the demo brings its own: not using {' and '.join(ignored)}")
    folder = plain.scratch_dir.absolute() / "demo"
    return face.load_settings(
        database_url=None,
        queues=(QUEUE,),
        max_concurrency=len(JOBS),
        storage_url=(folder / "artifacts").as_uri(),
        local_source_roots=(folder,),
        metrics_port=None,
        asr_engine="moonshine" if _has_speech_engine() else "none",
    )


def _has_speech_engine() -> bool:
    from worker.asr.moonshine import MoonshineEngine  # noqa: PLC0415

    return MoonshineEngine.is_installed()


def _remove_old(artifacts: Path) -> None:
    if not artifacts.is_dir():
        return
    for job in artifacts.iterdir():
        if time.time() - job.stat().st_mtime > OLD_SECONDS:
            shutil.rmtree(job, ignore_errors=True)


async def _run_jobs(face: Face, app: "App", sample: Path) -> list[JobDetail]:
    # Imports the whole worker, see Face.open_app.
    from worker.app import open_worker  # noqa: PLC0415

    async with open_worker(app) as supervisor:
        ids = await _submit(app.desk, sample, transcript=app.settings.asr_engine != "none")
        labels: dict[UUID, str] = {job_id: one.label for job_id, one in zip(ids, JOBS, strict=True)}
        working = asyncio.create_task(supervisor.run())
        watching = asyncio.create_task(follow(app.desk, ids, open_view(face.out, labels)))
        try:
            await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                await working
            return await watching
        except asyncio.CancelledError:
            for job_id in ids:
                await app.desk.cancel(job_id)
            await asyncio.wait({watching}, timeout=CANCEL_SECONDS)
            raise
        finally:
            watching.cancel()
            supervisor.stop()
            await working


async def _submit(desk: JobDesk, sample: Path, *, transcript: bool) -> list[JobId]:
    ids = [await desk.submit(QUEUE, one.spec(sample, transcript=transcript)) for one in JOBS]
    return [job_id for job_id in ids if job_id is not None]


def _as_json(job: JobDetail) -> dict[str, Any]:
    result = job.result or {}
    timings = result.get("timings_ms", {})
    shown = ("kind", "url", "bytes", "sha256")
    told: dict[str, Any] = {
        "id": job.id,
        "status": job.status,
        "artifacts": [{name: artifact[name] for name in shown} for artifact in result.get("artifacts", [])],
        "transcript": result.get("transcript"),
        "duration_ms": result.get("duration_ms"),
        "timings_ms": {stage: timings[stage] for stage in StageName if stage in timings},
    }
    if job.error_code:
        told["error"] = {"code": job.error_code, "message": job.error_message}
    return told


def _tell(face: Face, jobs: Sequence[JobDetail], findings: Sequence[Finding]) -> None:
    for one, job, finding in zip(JOBS, jobs, findings, strict=True):
        face.out.line()
        length = (job.result or {}).get("duration_ms", 0) / 1000
        face.out.rich_line(
            Text.assemble(
                (one.label, "bold"), f"  {one.start} s to {one.end} s  ", status_text(job.status), f"  {length:.3f} s"
            )
        )
        tell_error(face.out, job)
        tell_result(face.out, job.result)
        mark = Text("✓", style="bold green") if finding.is_right else Text("✗", style="bold red")
        face.out.rich_line(Text.assemble(("  checked    ", "bold"), mark, f" {finding.words}"))


def _tell_next(face: Face, sample: Path, seconds: float) -> None:
    call, name = how_to_call(), local_name(sample.as_uri())
    face.out.line()
    face.out.line(f"That took {seconds:.0f} s. What to try next:", "bold")
    face.out.line(f"  LOCAL_SOURCE_ROOTS={Path(name).parent} {call} up")
    face.out.line(f"  {call} submit {name} --start 2.5 --end 7 --wait     (in a second terminal)")
    face.out.line(f"  {call} jobs list")
