"""A long-lived child process that speaks JSON lines and does not outlive its owner."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from worker.errors import AsrUnavailable

#: between TERM and KILL
TERM_GRACE_SECONDS = 5.0
_LINE_LIMIT_BYTES = 16 << 20
_STDERR_TAIL_BYTES = 2048


class Child:
    """One Python module running as a process of its own, in its own process group."""

    def __init__(self, module: str, process: asyncio.subprocess.Process) -> None:
        self._module = module
        self._process = process
        self._stderr_tail = bytearray()
        self._stderr_reader = asyncio.create_task(self._read_stderr())
        self._ending: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, module: str, *arguments: str) -> "Child":
        """Run `python -m module arguments`; it is told its owner's pid, see `worker.asr.orphan`."""
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                module,
                *arguments,
                str(os.getpid()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_LINE_LIMIT_BYTES,
                start_new_session=True,
            )
        except OSError as exc:
            raise AsrUnavailable(f"The speech process {module} could not be started: {exc.strerror}.") from exc
        return cls(module, process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None and self._ending is None

    async def send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        try:
            await self._process.stdin.drain()
        except ConnectionError as exc:
            raise await self._death() from exc

    async def receive(self, *, patience_seconds: float) -> dict[str, Any]:
        """The child's next message. One that is late, cut off or not JSON ends the child."""
        assert self._process.stdout is not None
        try:
            async with asyncio.timeout(patience_seconds):
                line = await self._process.stdout.readline()
            if not line.endswith(b"\n"):
                raise await self._death()
            message: dict[str, Any] = json.loads(line)
        except TimeoutError as exc:
            await self.stop()
            raise AsrUnavailable(
                f"The speech process {self._module} said nothing for {patience_seconds:g} s "
                "(ASR_TIMEOUT_SEC) and was killed."
            ) from exc
        except ValueError as exc:  # also a line beyond the limit
            await self.stop()
            raise AsrUnavailable(f"The speech process {self._module} answered with something other than JSON.") from exc
        return message

    async def stop(self) -> None:
        """TERM, then KILL. The process ends and is reaped even when the caller is cancelled meanwhile."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        try:
            self._signal_group(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TERM_GRACE_SECONDS):
                    await self._process.wait()
        finally:
            self._signal_group(signal.SIGKILL)
        await self._process.wait()
        await self._stderr_reader
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _signal_group(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    async def _death(self) -> AsrUnavailable:
        await self.stop()
        last_words = self._stderr_tail.decode(errors="replace").strip()
        said = f"; it last wrote: {last_words}" if last_words else ""
        return AsrUnavailable(
            f"The speech process {self._module} ended before it had answered ({self._end_in_words()}){said}"
        )

    def _end_in_words(self) -> str:
        code = self._process.returncode
        assert code is not None
        return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        while block := await self._process.stderr.read(4096):
            self._stderr_tail += block
            del self._stderr_tail[:-_STDERR_TAIL_BYTES]
