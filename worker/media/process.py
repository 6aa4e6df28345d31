"""Children as our own: in a group, watched, bounded, and never outliving the coroutine that runs them."""

import asyncio
import ctypes
import os
import resource
import signal
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from worker.errors import RetryableError
from worker.media.progress import ProgressParser

READ_BYTES: Final = 65_536
STDERR_LINES: Final = 20
STDERR_LINE_CHARS: Final = 500
PR_SET_PDEATHSIG: Final = 1
CPU_GRACE_SECONDS: Final = 5


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how large a child may get."""

    wall_seconds: float
    #: without progress for this long, it hangs
    stall_seconds: float | None = None
    #: between TERM and KILL
    grace_seconds: float = 5.0
    file_bytes: int | None = None
    cpu_seconds: int | None = None
    #: address space: what it asks for, used or not
    memory_bytes: int | None = None
    open_files: int | None = None
    #: how much of what it prints is kept, the end of it
    stdout_bytes: int = READ_BYTES


class ChildEnd(StrEnum):
    EXITED = "exited"
    TIMED_OUT = "timed out"
    STALLED = "stalled"


@dataclass(frozen=True, slots=True)
class ChildResult:
    ended: ChildEnd
    #: negative: the signal that ended it
    exit_code: int
    stderr_tail: tuple[str, ...]
    #: the end of what it printed
    stdout: bytes = b""

    @property
    def ok(self) -> bool:
        return self.ended is ChildEnd.EXITED and self.exit_code == 0


async def run_child(
    argv: Sequence[str],
    *,
    limits: Limits,
    on_progress: Callable[[float], None] | None = None,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> ChildResult:
    """Run to the end, or to a limit. Cancelled or not, the child and its group are gone when this returns.

    `on_progress` gets the seconds that ffmpeg's `-progress pipe:1` reports. `environment` replaces the worker's own;
    `directory` is where relative names are looked for.
    """
    child = await start_child(argv, limits=limits, environment=environment, directory=directory)
    return await finish_child(child, limits=limits, on_progress=on_progress)


async def start_child(
    argv: Sequence[str],
    *,
    limits: Limits,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    takes_order: bool = False,
) -> asyncio.subprocess.Process:
    """Whoever calls this must call `finish_child`; with `takes_order` it waits for that to tell it what to do."""
    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE if takes_order else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            env=environment,
            cwd=directory,
            preexec_fn=_before_exec(limits),
        )
    except OSError as exc:
        raise RetryableError(f"could not start {Path(argv[0]).name}: {exc.strerror}") from exc


async def finish_child(
    child: asyncio.subprocess.Process,
    *,
    limits: Limits,
    on_progress: Callable[[float], None] | None = None,
    order: str | None = None,
) -> ChildResult:
    """The rest of `run_child`; ConnectionError when there is nobody left to take the order."""
    watch = _Watch(child, limits, on_progress)
    try:
        if order is not None:
            await _hand_over(order, child)
        ended = await watch.until_end()
    finally:
        await _finish_despite_cancellation(end_child(child, grace_seconds=limits.grace_seconds))
    exit_code = child.returncode
    assert exit_code is not None, "the child was waited for"
    return ChildResult(ended, exit_code, watch.stderr_tail(), watch.stdout)


async def _hand_over(order: str, child: asyncio.subprocess.Process) -> None:
    assert child.stdin is not None, "it was started to take an order"
    if child.stdin.is_closing():
        raise ConnectionResetError
    child.stdin.write(order.encode())
    child.stdin.close()
    await child.stdin.wait_closed()


class _Watch:
    """Reads both pipes of a child and tells how it ended."""

    def __init__(
        self, child: asyncio.subprocess.Process, limits: Limits, on_progress: Callable[[float], None] | None
    ) -> None:
        self._child = child
        self._limits = limits
        self._on_progress = on_progress
        self._lines: deque[str] = deque(maxlen=STDERR_LINES)
        self._partial_line = b""
        self.stdout = b""

    async def until_end(self) -> ChildEnd:
        wall = asyncio.timeout(self._limits.wall_seconds)
        stall = asyncio.timeout(self._limits.stall_seconds)
        try:
            async with wall, stall, asyncio.TaskGroup() as tasks:
                tasks.create_task(self._read_stdout(stall))
                tasks.create_task(self._read_stderr())
                tasks.create_task(self._child.wait())
        except TimeoutError:
            return ChildEnd.STALLED if stall.expired() else ChildEnd.TIMED_OUT
        except ExceptionGroup as group:
            # nothing but `on_progress` can fail here; its error is the caller's own
            raise group.exceptions[0] from None
        return ChildEnd.EXITED

    def stderr_tail(self) -> tuple[str, ...]:
        return (*self._lines, *_as_lines([self._partial_line]))

    async def _read_stdout(self, stall: asyncio.Timeout) -> None:
        assert self._child.stdout is not None
        parser, position = ProgressParser(), -1.0
        while chunk := await self._child.stdout.read(READ_BYTES):
            self.stdout = (self.stdout + chunk)[-self._limits.stdout_bytes :]
            seconds = parser.feed(chunk)
            if seconds is None or seconds == position:
                continue
            position = seconds
            if self._limits.stall_seconds is not None:
                stall.reschedule(asyncio.get_running_loop().time() + self._limits.stall_seconds)
            if self._on_progress is not None:
                self._on_progress(seconds)

    async def _read_stderr(self) -> None:
        assert self._child.stderr is not None
        while chunk := await self._child.stderr.read(READ_BYTES):
            *lines, self._partial_line = (self._partial_line + chunk).split(b"\n")
            self._partial_line = self._partial_line[-STDERR_LINE_CHARS:]
            self._lines.extend(_as_lines(lines))


def _as_lines(raw: list[bytes]) -> list[str]:
    texts = (line.decode(errors="replace").strip() for line in raw)
    return [text[:STDERR_LINE_CHARS] for text in texts if text]


def _before_exec(limits: Limits) -> Callable[[], None]:
    """What the child does to itself between fork and exec; all it needs is looked up before the fork."""
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
    kill = ctypes.c_ulong(signal.SIGKILL)
    parent = os.getpid()
    limited = [(resource.RLIMIT_CORE, 0, 0)]
    if limits.file_bytes is not None:
        limited.append((resource.RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes))
    if limits.cpu_seconds is not None:
        # at the hard limit the kernel kills without saying why
        limited.append((resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + CPU_GRACE_SECONDS))
    if limits.memory_bytes is not None:
        limited.append((resource.RLIMIT_AS, limits.memory_bytes, limits.memory_bytes))
    if limits.open_files is not None:
        limited.append((resource.RLIMIT_NOFILE, limits.open_files, limits.open_files))

    def prepare() -> None:
        if prctl is not None:
            prctl(PR_SET_PDEATHSIG, kill)
            # the worker may have died before the line above
            if os.getppid() != parent:
                os._exit(1)
        for limit, soft, hard in limited:
            resource.setrlimit(limit, (soft, hard))

    return prepare


async def end_child(child: asyncio.subprocess.Process, *, grace_seconds: float) -> None:
    """TERM, then KILL: an encoder inside a long call ignores TERM for minutes."""
    drained = asyncio.gather(_drain(child.stdout), _drain(child.stderr))
    if child.returncode is None:
        _signal_group(child.pid, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                await child.wait()
    # also what the child may have left behind in its group
    _signal_group(child.pid, signal.SIGKILL)
    await child.wait()
    await drained


async def _drain(pipe: asyncio.StreamReader | None) -> None:
    """A child blocked on a full pipe cannot obey TERM, and a pipe not read to its end stays open."""
    while pipe is not None and await pipe.read(READ_BYTES):
        pass


def _signal_group(group: int, number: signal.Signals) -> None:
    # nobody left, or (macOS) only zombies
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


async def _finish_despite_cancellation(work: Coroutine[None, None, None]) -> None:
    """A second cancellation must not leave the child running; it is delivered when the work is done."""
    task = asyncio.ensure_future(work)
    interrupted: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as exc:
            interrupted = exc
    if interrupted is not None:
        raise interrupted
