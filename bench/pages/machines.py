"""Worker processes that may only have a share of the processor, as if each ran on a machine of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
PERIOD_MICROSECONDS = 100_000
STARTED = "worker_started"


class NoShares(Exception):
    """This machine does not let us divide its processor; the message says why."""


@dataclass(frozen=True, slots=True)
class Hall:
    """Where the machines stand: what all of them share."""

    directory: Path
    dsn: str
    media: Path


@contextmanager
def machines(hall: Hall, shares: Sequence[float | None]) -> Iterator[None]:
    """One worker for each share, in cores; None: as much as it can get. Started when the block is entered."""
    with ExitStack() as stack:
        logs = []
        for number, cores in enumerate(shares):
            room = hall.directory / f"machine-{time.monotonic_ns()}-{number}"
            room.mkdir(parents=True)
            group = stack.enter_context(_group(room.name, cores)) if cores is not None else None
            logs.append(stack.enter_context(_worker(hall, room, group)))
        for log in logs:
            _wait_for_start(log)
        yield


def _wait_for_start(log: Path) -> None:
    deadline = time.monotonic() + 120
    while STARTED not in log.read_text():
        if time.monotonic() > deadline:
            raise SystemExit(f"a worker did not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.1)


@contextmanager
def _worker(hall: Hall, room: Path, group: Path | None) -> Iterator[Path]:
    log = room / "worker.log"
    # whoever is in a group has all its children there
    enter = ["sh", "-c", f'echo $$ > {group / "cgroup.procs"}; exec "$@"', "sh"] if group is not None else []
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*enter, sys.executable, "-m", "worker", "run"],
            env={
                **{name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG") if name in os.environ},
                "DATABASE_URL": hall.dsn,
                "SCRATCH_DIR": str(room),
                "STORAGE_URL": (hall.directory / "artifacts").as_uri(),
                "LOCAL_SOURCE_ROOTS": str(hall.media),
                "LOG_FORMAT": "json",
                "POLL_INTERVAL_SEC": "0.5",
                "MAX_CONCURRENCY": "1",
            },
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
        try:
            yield log
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(60)
            process.kill()
            process.wait()


@contextmanager
def _group(name: str, cores: float) -> Iterator[Path]:
    quota = round(cores * PERIOD_MICROSECONDS)
    if (CGROUPS / "cpu").is_dir():
        group, told = CGROUPS / "cpu" / f"clipboss-{name}", {"cpu.cfs_quota_us": f"{quota}"}
    else:
        group, told = CGROUPS / f"clipboss-{name}", {"cpu.max": f"{quota} {PERIOD_MICROSECONDS}"}
    try:
        group.mkdir()
        for file, value in told.items():
            (group / file).write_text(value)
    except OSError as exc:
        raise NoShares(f"{group}: {exc.strerror}; it takes root, and the cpu controller of cgroups") from exc
    try:
        yield group
    finally:
        _remove(group)


def _remove(group: Path) -> None:
    """As soon as the last of its processes is gone."""
    for _ in range(100):
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.1)
        else:
            return
