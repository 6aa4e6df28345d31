"""The children of a running worker, seen from outside: what was run, from when to when."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cost import children_cpu_seconds


@dataclass(slots=True)
class Child:
    """Times are those of the clock on the wall, as the database's are."""

    argv: tuple[str, ...]
    began_at: float
    ended_at: float = 0.0
    #: right while one child runs at a time: what all ended children took since the one before
    cpu_seconds: float = 0.0

    @property
    def name(self) -> str:
        """`ffmpeg`, or the module that our own Python runs."""
        if "-m" in self.argv:
            return self.argv[self.argv.index("-m") + 1].removeprefix("worker.")
        return Path(self.argv[0]).name.split("-")[0]

    def seconds_between(self, start: float, end: float) -> float:
        return max(0.0, min(self.ended_at, end) - max(self.began_at, start))

    def mentions(self, text: str) -> bool:
        return any(text in word for word in self.argv)


@contextmanager
def watched_children() -> Iterator[list[Child]]:
    """Every child that asyncio starts inside the block; the worker does not notice."""
    children, real = list[Child](), asyncio.create_subprocess_exec
    watching, before = set[asyncio.Task[None]](), children_cpu_seconds()

    async def start(*argv: Any, **options: Any) -> asyncio.subprocess.Process:
        child = Child(tuple(map(str, argv)), time.time())
        process = await real(*argv, **options)

        async def until_end() -> None:
            await process.wait()
            child.ended_at = time.time()
            child.cpu_seconds = children_cpu_seconds() - sum(one.cpu_seconds for one in children) - before
            children.append(child)

        watching.add(task := asyncio.create_task(until_end()))
        task.add_done_callback(watching.discard)
        return process

    asyncio.create_subprocess_exec = start  # the same call, with a watch
    try:
        yield children
    finally:
        asyncio.create_subprocess_exec = real


def bare_argv(child: Child, marker: str, folder: Path) -> Sequence[str]:
    """The same command once more, writing into `folder` what it wrote into the directory that names `marker`."""

    def moved(word: str) -> str:
        head, found, tail = word.partition(marker)
        return f"file:{folder / (marker + tail).replace('/', '-')}" if found and head.startswith("file:") else word

    return [moved(word) for word in child.argv]
