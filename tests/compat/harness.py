"""A real pg-boss in a Node process of its own, called like a Python object."""

import asyncio
import contextlib
import itertools
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeVar
from uuid import UUID

from tests.compat import npm
from worker.db.pool import Pool, open_pool

DRIVER = npm.HERE / "node" / "driver.mjs"
NEWEST = npm.HERE / "node"
OLDER = npm.HERE / "node-12.27"
#: background passes as often as pg-boss allows
SUPERVISING = {
    "supervise": True,
    "superviseIntervalSeconds": 1,
    "monitorIntervalSeconds": 1,
    "maintenanceIntervalSeconds": 1,
    "flowIntervalSeconds": 1,
}
_LONGEST_LINE_BYTES = 64 * 2**20
T = TypeVar("T")


class NodeError(Exception):
    """pg-boss threw; `code` is PostgreSQL's when it came from there."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(f"{error.get('name')}: {error.get('message')}")
        self.message = str(error.get("message"))
        self.code = error.get("code")


class NodeBoss:
    """One Node process with one PgBoss instance, which ends with the block.

    `call` reaches every method of pg-boss by its name, and the extras of driver.mjs. The options are those of
    pg-boss's constructor; without more, it does nothing in the background.
    """

    def __init__(self, dsn: str, *, packages: Path, **options: Any) -> None:
        self.options = {"connectionString": dsn, "supervise": False, "schedule": False, "max": 4, **options}
        self._packages = packages
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._log: list[str] = []

    async def __aenter__(self) -> Self:
        await self.spawn()
        try:
            await self.call("start", self.options, timeout=30)
        except BaseException:
            await self.kill()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    async def call(self, method: str, *args: Any, timeout: float = 15) -> Any:
        """What the method returned, as JSON has it; NodeError if it threw."""
        number = next(self._numbers)
        if self._process.returncode is not None:
            raise AssertionError(f"pg-boss did not answer to {method}: its process ended\n{self.log()}")
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        request = json.dumps({"id": number, "method": method, "args": args}, default=_as_json) + "\n"
        try:
            self._stdin.write(request.encode())
            await self._stdin.drain()
            async with asyncio.timeout(timeout):
                return await answer
        except (TimeoutError, OSError) as exc:
            raise AssertionError(f"pg-boss did not answer to {method}: {exc!r}\n{self.log()}") from exc
        finally:
            del self._waiting[number]

    @property
    def pid(self) -> int:
        return self._process.pid

    def close_stdin(self) -> None:
        self._stdin.close()

    def log(self) -> str:
        return "".join(self._log[-100:])

    async def spawn(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            str(npm.NODE),
            str(DRIVER),
            str(self._packages),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LONGEST_LINE_BYTES,
            env={name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ} | {"TZ": "UTC"},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdin = self._process.stdin
        self._readers = [
            asyncio.create_task(self._read_answers(self._process.stdout)),
            asyncio.create_task(self._read_log(self._process.stderr)),
        ]

    async def kill(self) -> None:
        """The end without goodbye, as when its machine dies."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await asyncio.gather(*self._readers)
        self._stdin.close()
        with contextlib.suppress(OSError):
            await self._stdin.wait_closed()

    async def _read_answers(self, stdout: asyncio.StreamReader) -> None:
        async for line in stdout:
            answer = json.loads(line)
            waiting = self._waiting.get(answer["id"])
            if waiting is None or waiting.done():
                continue
            if "error" in answer:
                waiting.set_exception(NodeError(answer["error"]))
            else:
                waiting.set_result(answer["result"])
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionResetError("the Node process ended"))

    async def _read_log(self, stderr: asyncio.StreamReader) -> None:
        async for line in stderr:
            self._log.append(line.decode(errors="replace"))


def _as_json(value: Any) -> Any:
    match value:
        case UUID():
            return str(value)
        case datetime():
            return {"$date": value.isoformat()}
        case _:
            raise TypeError(f"{value!r} cannot be sent to Node")


@asynccontextmanager
async def pool_of(dsn: str, *, size: int = 4) -> AsyncIterator[Pool]:
    pool = await open_pool(dsn, name="tests", size=size)
    try:
        yield pool
    finally:
        await pool.close()


async def eventually(check: Callable[[], Awaitable[T | None]], *, seconds: float = 10, what: str = "") -> T:
    """What `check` finds, as soon as it finds something."""
    deadline = time.monotonic() + seconds
    while not (found := await check()):
        assert time.monotonic() < deadline, f"did not happen within {seconds} s: {what}"
        await asyncio.sleep(0.03)
    return found


async def job_row(pool: Pool, job_id: UUID | str | None) -> dict[str, Any]:
    """The job as it stands in the database."""
    row = await pool.fetchrow("SELECT * FROM pgboss.job WHERE id = $1", job_id if job_id is None else UUID(str(job_id)))
    assert row is not None, f"job {job_id} does not exist"
    return dict(row)


async def job_in_state(pool: Pool, job_id: UUID | str | None, state: str, *, seconds: float = 10) -> dict[str, Any]:
    """The job, as soon as it is in `state`."""

    async def reached() -> dict[str, Any] | None:
        row = await job_row(pool, job_id)
        return row if row["state"] == state else None

    return await eventually(reached, seconds=seconds, what=f"job {job_id} in state {state}")


async def sent(answer: Awaitable[UUID | None]) -> UUID:
    """The id of a job that must have been accepted."""
    job_id = await answer
    assert job_id is not None, "the job was refused"
    return job_id
