"""Stages that do what a job's spec asks for under `chaos`, and the real media work for every other job."""

import asyncio
import os
import random
import signal
import time
from dataclasses import asdict
from typing import Any

from tests.chaos.failpoints import Leases
from tests.chaos.trace import TraceWriter
from worker.domain.job import StageName
from worker.domain.media import Artifact, ArtifactKind
from worker.errors import RetryableError, SourceNotFound
from worker.media.process import Limits, run_child
from worker.stages.base import Course, Courses, Stage, Work
from worker.storage.base import Storage


class ChaosStage:
    def __init__(self, real: Stage, storage: Storage, leases: Leases, trace: TraceWriter) -> None:
        self.name = real.name
        self._real = real
        self._storage = storage
        self._leases = leases
        self._trace = trace

    async def run(self, work: Work) -> None:
        if self.name is StageName.RESOLVE:
            self._trace_run(work)
        wanted = work.spec.get("chaos") if isinstance(work.spec, dict) else None
        if wanted is None:
            await self._real.run(work)
        else:
            await self._act(work, wanted)
        if self.name is StageName.FINALIZE:
            # so that the checker knows whose result this is
            work.result["lease_token"] = _token(work)

    def _trace_run(self, work: Work) -> None:
        job, token = str(work.job_id), _token(work)
        self._trace.record("run", job=job, token=token)
        # The first of the resources is the last to be closed: after it, nothing of this run is left.
        work.resources.callback(lambda: self._trace.record("run_ended", job=job, token=token))

    async def _act(self, work: Work, wanted: dict[str, Any]) -> None:
        attempt = self._leases.attempt(_token(work))
        match self.name:
            case StageName.RESOLVE:
                if wanted.get("fatal"):
                    raise SourceNotFound("the spec asks for a fatal error")
                if attempt.number <= wanted.get("fail_attempts", 0):
                    raise RetryableError("the spec asks for a transient error")
            case StageName.CLIP:
                await asyncio.sleep(wanted.get("sleep_ms", 0) / 1000)
                if seconds := wanted.get("child_seconds"):
                    await _run_child(seconds)
                if wanted.get("kill") == "always" or (wanted.get("kill") == "once" and attempt.crash_count == 0):
                    os.kill(os.getpid(), signal.SIGKILL)
            case StageName.UPLOAD:
                if wanted.get("artifact_bytes"):
                    await self._upload(work, wanted["artifact_bytes"])
            case StageName.FINALIZE:
                work.result = {"artifacts": [asdict(artifact) for artifact in work.artifacts.values()]}
            case _:
                await asyncio.sleep(0)

    async def _upload(self, work: Work, size_bytes: int) -> None:
        path = work.scratch / "artifact.bin"
        # Every attempt makes other bytes: a pointer that survives must belong to what is stored in the end.
        content = random.Random(f"{work.job_id}:{_token(work)}").randbytes(size_bytes)
        path.write_bytes(content)
        # One key for all attempts, as for real artifacts: what a zombie uploads late must not replace what counts.
        key = f"chaos/{work.job_id}/artifact.bin"
        stored = await self._storage.put(key, path, content_type="application/octet-stream", metadata={})
        work.artifacts[ArtifactKind.CLIP] = Artifact(
            kind=ArtifactKind.CLIP,
            key=key,
            url=stored.url,
            bytes=stored.size_bytes,
            sha256=stored.sha256,
            content_type="application/octet-stream",
        )


def chaos_courses(real: Courses, storage: Storage, leases: Leases, trace: TraceWriter) -> Courses:
    def wrapped(course: Course) -> Course:
        return [[ChaosStage(stage, storage, leases, trace) for stage in row] for row in course]

    return Courses(wrapped(real.jobs), wrapped(real.pages))


async def _run_child(seconds: float) -> None:
    started = time.monotonic()
    result = await run_child(["sleep", str(seconds)], limits=Limits(seconds + 30))
    if not result.ok:
        raise RetryableError(f"the child ended with {result.exit_code} after {time.monotonic() - started:.1f} s")


def _token(work: Work) -> int:
    return int(work.scratch.name)
