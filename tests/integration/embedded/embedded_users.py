"""Processes that share an embedded server, and what their tests ask of them."""

import asyncio
import json
import os
import select
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import psutil

from worker.db.postgres.home import ServerHome
from worker.db.postgres.locks import is_held_exclusively


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def is_gone(process: psutil.Process) -> bool:
    """Dead; whether its new parent has noticed is not ours to say."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def run_sql(dsn: str, statement: str) -> Any:
    async def run() -> Any:
        connection = await asyncpg.connect(dsn, timeout=5)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    return asyncio.run(run())


@dataclass
class Holder:
    """A process that uses the server."""

    process: subprocess.Popen[bytes]
    _report: dict[str, str] = field(default_factory=dict)

    @property
    def report(self) -> dict[str, str]:
        if not self._report:
            assert self.process.stdout is not None
            assert select.select([self.process.stdout], [], [], 15)[0], "the holder says nothing"
            self._report = json.loads(self.process.stdout.readline())
        return self._report

    @property
    def error(self) -> str:
        assert "error" in self.report, self.report
        return self.report["error"]

    @property
    def dsn(self) -> str:
        assert "dsn" in self.report, self.report
        return self.report["dsn"]

    @property
    def home(self) -> ServerHome:
        assert "home" in self.report, self.report
        return ServerHome(Path(self.report["home"]))

    @property
    def postmaster(self) -> psutil.Process:
        server = self.home.running_server()
        assert server is not None
        return psutil.Process(server.pid)

    @property
    def keeper(self) -> psutil.Process:
        keeper = self.postmaster.parent()
        assert keeper is not None
        assert "worker.db.postgres.keeper" in keeper.cmdline()
        return keeper

    def leave(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=15)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


@dataclass
class User:
    """Somebody who runs holders."""

    uid: int
    gid: int
    python: Path
    program: Path
    environment: dict[str, str]
    templates: Path
    _holders: list[Holder] = field(default_factory=list)

    def prepare(self, directory: Path) -> Path:
        """Make `directory` the home of an empty server without waiting for initdb each time."""
        template = self.templates / str(self.uid)
        if not template.exists():
            holder = self.hold(template)
            assert holder.dsn
            holder.leave()
        subprocess.run(["cp", "-a", template, directory], check=True)
        return directory

    def hold(
        self,
        directory: Path,
        *,
        durable: bool = False,
        environment: dict[str, str] | None = None,
        **options: Any,
    ) -> Holder:
        if self.uid != os.geteuid():
            options |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        process = subprocess.Popen(
            [self.python, self.program, directory, "durable" if durable else "volatile"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self.environment | (environment or {}),
            cwd="/",
            **options,
        )
        self._holders.append(Holder(process))
        return self._holders[-1]

    def close(self) -> None:
        homes = [holder.home for holder in self._holders if "home" in holder._report]
        for holder in self._holders:
            holder.close()
        self._holders.clear()
        for home in homes:
            wait_until(lambda home=home: not home.root.exists() or not is_held_exclusively(home.keeper_lock))
