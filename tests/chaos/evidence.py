"""Gathers a run's history when it is over, and checks all of it."""

import asyncio
import hashlib
import io
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import av
import psutil
from botocore.exceptions import ClientError

from tests.chaos.history import Event, History, JobRow, NodeDeeds, ProcessLife, Violation
from tests.chaos.invariants import check_artifacts, check_history
from tests.chaos.rig import Rig
from tests.chaos.trace import read_traces


@dataclass(frozen=True, slots=True)
class Evidence:
    history: History
    violations: list[Violation]


async def gather(rig: Rig) -> Evidence:
    """After the workers are gone: what they left in the database, in storage, on disk and among the processes."""
    left = leftover_processes(rig.mark) + leftover_scratch(rig.scratch)
    history = await _history(rig)
    stored = await asyncio.to_thread(_stored, rig, history)
    return Evidence(history, check_history(history) + check_artifacts(history, stored) + left)


def leftover_processes(mark: str) -> list[Violation]:
    """Whatever a worker started carries its environment; nothing of it may live."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("CHAOS_RUN") == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(Violation("orphan", None, f"{process.pid} {' '.join(process.cmdline())[:200]}"))
        except psutil.Error:
            continue  # gone meanwhile, or somebody else's
    return found


def leftover_scratch(scratch: Path) -> list[Violation]:
    jobs = scratch / "jobs"
    return [Violation("scratch", path.name, "left behind") for path in jobs.iterdir()] if jobs.is_dir() else []


def keep(rig: Rig, evidence: Evidence, target: Path) -> None:
    """Logs, traces and the timelines of the jobs that violations are about."""
    target.mkdir(parents=True, exist_ok=True)
    for folder in (rig.logs, rig.traces):
        folder.rename(target / folder.name)
    (target / "violations.txt").write_text("".join(f"{violation}\n" for violation in evidence.violations))
    with (target / "events.jsonl").open("w") as file:
        for job_id, events in evidence.history.events.items():
            file.writelines(json.dumps({"job": job_id, **asdict(event)}) + "\n" for event in events)
    lives = [asdict(life) for life in evidence.history.processes.values()]
    outages = [asdict(outage) for outage in evidence.history.outages]
    (target / "processes.json").write_text(json.dumps({"processes": lives, "outages": outages}, indent=1))
    bad = {violation.job for violation in evidence.violations if violation.job in evidence.history.jobs}
    with (target / "bad-jobs.jsonl").open("w") as file:
        for job_id in sorted(job for job in bad if job):
            file.write(json.dumps(_dossier(evidence.history, job_id), default=str) + "\n")


def _dossier(history: History, job_id: str) -> dict[str, object]:
    traces = history.traces
    of_job = {
        name: [repr(record) for record in records if record.job == job_id]
        for name, records in (("taken", traces.taken), ("runs", traces.runs), ("writes", traces.writes))
    }
    events = [repr(event) for event in history.events.get(job_id, ())]
    return {"job": repr(history.jobs[job_id]), "delivery": history.deliveries.get(job_id), "events": events, **of_job}


async def _history(rig: Rig) -> History:
    connection = await rig.postgres.connect()
    try:
        jobs = await connection.fetch(
            "SELECT id::text, status, attempt_count, max_attempts, crash_count, error_code, spec, result "
            "FROM worker.jobs"
        )
        deliveries = await connection.fetch("SELECT id::text, state::text FROM pgboss.job WHERE name = 'clip'")
        events = await connection.fetch("SELECT * FROM worker.job_events ORDER BY id")
    finally:
        await connection.close()
    offset = time.time() - time.monotonic()
    by_job: dict[str, list[Event]] = defaultdict(list)
    for row in events:
        worker = str(row["worker_id"]) if row["worker_id"] else None
        facts = json.loads(row["data"]) if row["data"] else {}
        at = row["at"].timestamp() - offset
        by_job[str(row["job_id"])].append(Event(row["id"], at, row["attempt"], worker, row["kind"], facts))
    return History(
        lease_seconds=rig.pace.lease_seconds,
        scan_seconds=rig.pace.scan_seconds,
        accepted=frozenset(rig.workload.accepted),
        jobs={row["id"]: _job_row(dict(row)) for row in jobs},
        deliveries={row["id"]: row["state"] for row in deliveries},
        events=by_job,
        traces=read_traces(rig.traces),
        processes=_processes(rig),
        outages=rig.postgres.outages,
        node=NodeDeeds(**{deed: frozenset(ids) for deed, ids in rig.node_deeds.items()}),
    )


def _job_row(row: dict[str, object]) -> JobRow:
    spec, result = row.pop("spec"), row.pop("result")
    return JobRow(
        spec=json.loads(str(spec)),
        result=json.loads(str(result)) if result else None,
        **row,  # type: ignore[arg-type]
    )


def _processes(rig: Rig) -> dict[str, ProcessLife]:
    now = time.monotonic()
    return {
        worker.name: ProcessLife(
            worker.name,
            worker.died_at if worker.died_at is not None else now,
            [(since, until if until is not None else worker.died_at or now) for since, until in worker.freezes],
        )
        for worker in rig.fleet.all
    }


def _stored(rig: Rig, history: History) -> dict[str, str]:
    """For each pointer of a result, past every proxy: the sha256 of what is there, or what is wrong with it."""
    found = {}
    for job in history.jobs.values():
        for artifact in (job.result or {}).get("artifacts", ()):
            key = artifact["key"]
            try:
                content = rig.s3.client().get_object(Bucket=rig.s3.bucket, Key=f"out/{key}")["Body"].read()
            except ClientError as exc:
                found[key] = f"cannot be read: {exc.response['Error']['Code']}"
            else:
                found[key] = _undecodable(artifact, content) or hashlib.sha256(content).hexdigest()
    return found


def _undecodable(artifact: dict[str, str], content: bytes) -> str | None:
    if not artifact["content_type"].startswith("video/"):
        return None
    try:
        with av.open(io.BytesIO(content)) as container:
            frames = sum(1 for _ in container.decode(video=0))
    except av.FFmpegError as exc:
        return f"does not decode: {exc}"
    return None if frames else "has no frames"


def summary(violations: Sequence[Violation], *, most: int = 20) -> str:
    lines = [str(violation) for violation in violations[:most]]
    if len(violations) > most:
        lines.append(f"… and {len(violations) - most} more")
    return "\n".join(lines)
