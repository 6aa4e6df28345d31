"""The command line as its users call it: a process, in a directory of its own, with nothing in the environment."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from worker.media.sample import make_sample

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        """The one JSON value on stdout."""
        [line] = self.out.splitlines()
        return json.loads(line)


@dataclass(frozen=True)
class CommandLine:
    directory: Path
    env: dict[str, str] = field(default_factory=dict)

    async def __call__(self, *args: str, stdin: str = "", **env: str) -> Finished:
        call: dict[str, Any] = {"input": stdin, "capture_output": True, "text": True, "timeout": 55}
        found = await asyncio.to_thread(
            subprocess.run, self._argv(args), cwd=self.directory, env=self._environment(env), check=False, **call
        )
        assert "Traceback" not in found.stderr, found.stderr
        assert "\x1b" not in found.stdout + found.stderr
        return Finished(found.returncode, found.stdout, found.stderr)

    @contextmanager
    def started(self, *args: str, **env: str) -> Iterator[subprocess.Popen[str]]:
        """A process that goes on; killed at the end, if it still lives."""
        process = subprocess.Popen(
            self._argv(args),
            cwd=self.directory,
            env=self._environment(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def _argv(self, args: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "worker", *args]

    def _environment(self, extra: dict[str, str]) -> dict[str, str]:
        bare = {"PATH": os.environ["PATH"], "HOME": str(self.directory), "PYTHONPATH": str(ROOT)}
        return bare | self.env | extra


@pytest.fixture(scope="session")
def bare_directory() -> Iterator[Path]:
    """Where nothing has ever run; open to all, because an embedded server of root's is somebody else."""
    directory = Path(tempfile.mkdtemp(prefix="clipboss-cli-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli-media")
    return make_sample(folder / "a talk.mp4", seconds=5, size=(320, 180))


@pytest.fixture
def call(dsn: str, tmp_path: Path) -> CommandLine:
    """On a migrated database."""
    return CommandLine(tmp_path, {"DATABASE_URL": dsn})


@pytest.fixture
def call_without_database(tmp_path: Path) -> CommandLine:
    return CommandLine(tmp_path)
