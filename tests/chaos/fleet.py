"""Worker processes: a number of them kept alive, whatever is done to them, and what was done to each."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

LOOK_SECONDS = 0.05
#: a worker that could not start (its database is away) is not started again at once
RESTART_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Launch:
    """How one process is to be started."""

    env: Mapping[str, str]
    #: put before the command, such as a namespace of its own
    wrapper: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class WorkerProcess:
    #: `slot.generation`: pids come again, these do not
    name: str
    slot: int
    child: subprocess.Popen[bytes]
    launch: Launch
    started_at: float = field(default_factory=time.monotonic)
    #: when it was killed, or seen dead; None while it lives
    died_at: float | None = None
    #: times, monotonic, in which it was stopped by SIGSTOP; the last may be open
    freezes: list[tuple[float, float | None]] = field(default_factory=list)

    @property
    def is_alive(self) -> bool:
        return self.died_at is None and self.child.poll() is None

    @property
    def is_frozen(self) -> bool:
        return bool(self.freezes) and self.freezes[-1][1] is None


class Fleet:
    def __init__(self, count: int, launch: Callable[[int, str], Launch], *, logs: Path, thaw_seconds: float) -> None:
        self._count = count
        self._launch = launch
        self._logs = logs
        self._thaw_seconds = thaw_seconds
        self._generation = 0
        self._slots: list[WorkerProcess | None] = [None] * count
        self._due: list[float] = [0.0] * count
        self._keeping: asyncio.Task[None] | None = None
        self.all: list[WorkerProcess] = []

    async def start(self) -> None:
        for slot in range(self._count):
            self._begin(slot)
        self._keeping = asyncio.create_task(self._keep())

    async def stop(self, *, seconds: float) -> None:
        """SIGTERM for all; those that take longer are killed."""
        await self._stop_keeping()
        self.thaw_all()
        for worker in self.alive():
            worker.child.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + seconds
        while self.alive() and time.monotonic() < deadline:
            self._look()
            await asyncio.sleep(LOOK_SECONDS)
        await self.kill_all()

    async def kill_all(self) -> None:
        await self._stop_keeping()
        for worker in self.alive():
            self.kill(worker)
        for worker in self.all:
            await asyncio.to_thread(worker.child.wait)
        self._look()

    async def run_to_end(self, launch: Launch, *args: str, seconds: float) -> int | None:
        """One more worker, to its end; None when it did not end in time."""
        worker = self._spawn(-1, launch, args)
        deadline = time.monotonic() + seconds
        while worker.child.poll() is None and time.monotonic() < deadline:
            await asyncio.sleep(LOOK_SECONDS)
        if worker.child.poll() is None:
            self.kill(worker)
            await asyncio.to_thread(worker.child.wait)
            return None
        self._look()
        return worker.child.returncode

    def alive(self) -> list[WorkerProcess]:
        return [worker for worker in self.all if worker.is_alive]

    def kill(self, worker: WorkerProcess) -> None:
        if worker.is_alive:
            worker.died_at = time.monotonic()
            worker.child.kill()

    def freeze(self, worker: WorkerProcess) -> None:
        """It is thawed after `thaw_seconds`."""
        if worker.is_alive and not worker.is_frozen:
            worker.freezes.append((time.monotonic(), None))
            worker.child.send_signal(signal.SIGSTOP)

    def terminate(self, worker: WorkerProcess) -> None:
        if worker.is_alive:
            worker.child.send_signal(signal.SIGTERM)

    def thaw_all(self) -> None:
        for worker in self.alive():
            if worker.is_frozen:
                self._thaw(worker)

    def child_processes(self) -> list[psutil.Process]:
        """Of all living workers, ffmpeg and the like."""
        found = []
        for worker in self.alive():
            try:
                found += psutil.Process(worker.child.pid).children(recursive=True)
            except psutil.Error:
                continue
        return found

    async def _keep(self) -> None:
        while True:
            self._look()
            for slot, worker in enumerate(self._slots):
                if (worker is None or not worker.is_alive) and time.monotonic() >= self._due[slot]:
                    self._begin(slot)
            await asyncio.sleep(LOOK_SECONDS)

    async def _stop_keeping(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
            self._keeping = None

    def _look(self) -> None:
        now = time.monotonic()
        for worker in self.all:
            if worker.died_at is not None and worker.child.returncode is not None:
                continue
            if worker.child.poll() is not None:
                if worker.died_at is None:
                    worker.died_at = now
                continue
            if not worker.is_frozen and _is_stopped(worker.child.pid):
                # a failpoint stopped it
                worker.freezes.append((now - LOOK_SECONDS, None))
            if worker.is_frozen and now - worker.freezes[-1][0] >= self._thaw_seconds:
                self._thaw(worker)

    def _thaw(self, worker: WorkerProcess) -> None:
        worker.child.send_signal(signal.SIGCONT)
        worker.freezes[-1] = (worker.freezes[-1][0], time.monotonic())

    def _begin(self, slot: int) -> None:
        self._generation += 1
        self._slots[slot] = self._spawn(slot, self._launch(slot, self._name(slot)), ())
        self._due[slot] = time.monotonic() + RESTART_SECONDS

    def _name(self, slot: int) -> str:
        return f"{slot if slot >= 0 else 'last'}.{self._generation}"

    def _spawn(self, slot: int, launch: Launch, args: tuple[str, ...]) -> WorkerProcess:
        name = self._name(slot)
        with (self._logs / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                [*launch.wrapper, sys.executable, "-m", "tests.chaos.worker_main", *args],
                env={**launch.env, "CHAOS_PROCESS": name},
                cwd=Path(__file__).parents[2],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        worker = WorkerProcess(name, slot, child, launch)
        self.all.append(worker)
        return worker


def _is_stopped(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED
    except psutil.Error:
        return False


def inherited_environment() -> dict[str, str]:
    names = ("PATH", "HOME", "TMPDIR", "LANG")
    return {name: os.environ[name] for name in names if name in os.environ}
