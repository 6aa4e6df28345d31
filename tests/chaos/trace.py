"""What really happened, written outside the database: each worker process appends to a file of its own.

Times are CLOCK_MONOTONIC, which all processes of a machine share, and which no shifted wall clock reaches.
"""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

#: of a process that starts: its boot, its first scan, and that it is ready
FIRST_LINES = 3


class TraceWriter:
    """One `write` a record: a process that is killed leaves whole lines behind."""

    def __init__(self, path: Path, process: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._process = process

    def record(self, kind: str, **facts: Any) -> None:
        line = {"kind": kind, "process": self._process, "at": time.monotonic(), **facts}
        os.write(self._fd, json.dumps(line).encode() + b"\n")


@dataclass(frozen=True, slots=True)
class Taken:
    """A lease as its worker got it. `before` and `after` enclose the statement."""

    process: str
    worker: str
    job: str
    token: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a job's stages in a process; `ended_at` is None when the process died in it."""

    process: str
    job: str
    token: int
    started_at: float
    ended_at: float | None


@dataclass(frozen=True, slots=True)
class Write:
    """A write that the database confirmed for a lease: a beat, an event, the end of an attempt."""

    process: str
    name: str
    job: str
    token: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Hit:
    """A failpoint that fired."""

    process: str
    point: str
    action: str
    at: float


@dataclass(frozen=True, slots=True)
class Scan:
    """A look for stale leases that came to its end. `silent_are_dead`: no grace of an outage went on."""

    process: str
    began_at: float
    ended_at: float
    silent_are_dead: bool


@dataclass(frozen=True, slots=True)
class Traces:
    taken: list[Taken]
    runs: list[Run]
    writes: list[Write]
    hits: list[Hit]
    #: when each process had scanned for stale leases for the first time
    ready: dict[str, float] = field(default_factory=dict)
    scans: list[Scan] = field(default_factory=list)


def read_traces(directory: Path) -> Traces:
    taken, writes, hits = list[Taken](), list[Write](), list[Hit]()
    ready, scans = dict[str, float](), list[Scan]()
    starts, ends = dict[tuple[str, str, int], float](), dict[tuple[str, str, int], float]()
    for line in _lines(directory):
        process, at = line["process"], line["at"]
        match line["kind"]:
            case "taken":
                taken.append(Taken(process, line["worker"], line["job"], line["token"], line["before"], line["after"]))
            case "run":
                starts[process, line["job"], line["token"]] = at
            case "run_ended":
                ends[process, line["job"], line["token"]] = at
            case "wrote":
                for job, token in line["leases"]:
                    writes.append(Write(process, line["name"], job, token, line["before"], at))
            case "ready":
                ready[process] = at
            case "scan":
                scans.append(Scan(process, line["before"], at, line["silent_are_dead"]))
            case "failpoint":
                hits.append(Hit(process, line["point"], line["action"], at))
    runs = [Run(*key, started_at, ends.get(key)) for key, started_at in starts.items()]
    return Traces(taken, runs, writes, hits, ready, scans)


def is_ready(directory: Path, process: str) -> bool:
    """Whether it has begun to work: it says so in one of its first lines."""
    path = directory / f"{process}.jsonl"
    if not path.exists():
        return False
    with path.open() as lines:
        return any(json.loads(line)["kind"] == "ready" for line in islice(lines, FIRST_LINES) if line.endswith("\n"))


def _lines(directory: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(directory.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            yield json.loads(line)
