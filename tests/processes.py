"""Worker processes for tests: `python -m worker`, started, watched and stopped."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import psutil

from tests.conftest import Room
from worker.domain.job import JobStatus
from worker.jobs.desk import JobDetail

T = TypeVar("T")


@dataclass
class Bench:
    """Runs workers on a test's own database and scratch directory."""

    dsn: str
    scratch: Path
    media: Path
    room: Room
    env: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def worker(self, *args: str, **env: str) -> Iterator[subprocess.Popen[bytes]]:
        """A running worker; killed with its children at the end, if it still lives."""
        log = (self.scratch / f"worker-{time.monotonic_ns()}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", "worker", "run", *args], env=self._environment(env), stderr=log, stdout=log
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            log.close()

    async def run(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        """One command, to its end; in a thread, because the servers of the test must go on answering."""
        command = [sys.executable, "-m", "worker", *args]
        call = {"env": self._environment(env), "capture_output": True, "text": True, "timeout": 50}
        return await asyncio.to_thread(subprocess.run, command, check=False, **call)

    def log(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self.scratch.glob("worker-*.log")))

    async def submit(self, **spec: object) -> UUID:
        found = await self.room.desk.submit("clip", spec)
        assert found is not None
        return found

    async def job(self, job_id: UUID) -> JobDetail:
        return await self.room.desk.show(job_id)

    async def wait_for(self, job_id: UUID, *statuses: JobStatus, seconds: float = 40) -> JobDetail:
        async def reached() -> JobDetail | None:
            job = await self.job(job_id)
            return job if job.status in statuses else None

        return await eventually(reached, seconds=seconds, tell=self.log)

    async def wait_for_event(self, job_id: UUID, kind: str, stage: str) -> None:
        async def happened() -> bool:
            events = await self.room.desk.events(job_id)
            return any(event.kind == kind and (event.data or {}).get("stage") == stage for event in events)

        await eventually(happened, tell=self.log)

    def _environment(self, extra: dict[str, str]) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG") if name in os.environ}
        return {
            **inherited,
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "DATABASE_URL": self.dsn,
            "SCRATCH_DIR": str(self.scratch),
            "LOCAL_SOURCE_ROOTS": str(self.media),
            "ALLOW_PRIVATE_SOURCES": "true",
            "LOG_FORMAT": "json",
            "POLL_INTERVAL_SEC": "0.2",
            "RECOVERY_SCAN_INTERVAL_SEC": "0.5",
            "ASR_ENGINE": "none",
            **self.env,
            **extra,
        }


async def eventually(
    check: Callable[[], Awaitable[T | None]], *, seconds: float = 20, tell: Callable[[], str] = lambda: ""
) -> T:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := await check():
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(f"did not happen within {seconds} s\n{tell()[-4000:]}")


async def children_of(*processes: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Everything that works for them, as soon as there is something."""

    async def look() -> list[psutil.Process]:
        return [child for process in processes for child in working_children(psutil.Process(process.pid))]

    return await eventually(look)


def working_children(process: psutil.Process) -> list[psutil.Process]:
    """Without the prober that waits for the next source."""
    return [child for child in process.children(recursive=True) if _is_at_work(child)]


def _is_at_work(child: psutil.Process) -> bool:
    try:
        return child.is_running() and "worker.media.probe_child" not in child.cmdline()
    except psutil.Error:
        # it has just ended
        return False


async def all_gone(processes: list[psutil.Process], *, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes):
            return True
        await asyncio.sleep(0.05)
    return False


def terminate(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
