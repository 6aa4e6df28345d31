"""Faults of processes: killed, frozen, told to stop, robbed of their children, started with trouble built in."""

import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace

import psutil

from tests.chaos.fleet import Launch, WorkerProcess
from tests.chaos.lanes import Lane
from tests.chaos.rig import Rig

#: fills up before a clip of the sample is written
TINY_DISK = "192k"
#: S3 refuses signatures that are a quarter of an hour off, so more than this would only test S3
MOST_SKEW_SECONDS = 13 * 60
FAILPOINT_PROBABILITY = 0.003


async def kill_one(rig: Rig, choice: random.Random) -> int:
    worker = _one(rig, choice)
    if worker is None or _is_last_at_work(rig, worker):
        return 0
    rig.fleet.kill(worker)
    return 1


async def freeze_one(rig: Rig, choice: random.Random) -> int:
    """For two leases: long enough to be taken for dead, and to come back."""
    worker = _one(rig, choice)
    # With all but one frozen, recovery would wait for nobody's fault.
    if worker is None or sum(not each.is_frozen for each in rig.fleet.alive()) <= 2 or _is_last_at_work(rig, worker):
        return 0
    rig.fleet.freeze(worker)
    return 1


async def terminate_some(rig: Rig, choice: random.Random) -> int:
    workers = [worker for worker in rig.fleet.alive() if not worker.is_frozen]
    struck = choice.sample(workers, choice.randint(0, max(0, len(workers) - 1)))
    signals = 0
    for worker in struck:
        # once: let jobs end; twice: hand them back at once
        for _ in range(choice.randint(1, 2)):
            rig.fleet.terminate(worker)
            signals += 1
    return signals


async def kill_a_child(rig: Rig, choice: random.Random) -> int:
    children = rig.fleet.child_processes()
    if not children:
        return 0
    try:
        choice.choice(children).kill()
    except psutil.NoSuchProcess:
        return 0
    return 1


def process_lanes() -> list[Lane]:
    return [
        Lane("sigkill", 3, kill_one),
        Lane("sigstop", 10, freeze_one),
        Lane("sigterm", 15, terminate_some),
        Lane("child-kill", 2, kill_a_child),
    ]


class TraitLane(Lane):
    """Strikes when a worker starts: every so often one of them gets a trait."""

    def __init__(
        self, name: str, share: float, change: Callable[[Launch, random.Random], Launch], missing: str | None = None
    ) -> None:
        super().__init__(name, 3600, _nothing, missing)
        self._share = share
        self._change = change

    async def run(self, rig: Rig) -> None:
        rig.traits.append(lambda launch, process: self._apply(rig, launch, process))

    def _apply(self, rig: Rig, launch: Launch, process: str) -> Launch:
        choice = random.Random(f"{rig.seed}:{self.name}:{process}")
        if choice.random() >= self._share:
            return launch
        self.count += 1
        return self._change(launch, choice)


def trait_lanes() -> list[Lane]:
    return [
        TraitLane("clock-skew", 0.3, _shift_clock),
        TraitLane("failpoints", 0.4, _set_failpoints),
        TraitLane("disk-full", 0.1, _shrink_disk, missing=_why_no_tiny_disk()),
    ]


async def _nothing(_rig: Rig, _choice: random.Random) -> int:
    return 0


def _one(rig: Rig, choice: random.Random) -> WorkerProcess | None:
    workers = [worker for worker in rig.fleet.alive() if not worker.is_frozen]
    return choice.choice(workers) if workers else None


def _is_last_at_work(rig: Rig, worker: WorkerProcess) -> bool:
    """On a slow machine workers take longer to start than to be struck: without this no work would ever be done."""
    return not [each for each in rig.at_work() if each is not worker]


def _with_env(launch: Launch, **more: str) -> Launch:
    return replace(launch, env={**launch.env, **more})


def _shift_clock(launch: Launch, choice: random.Random) -> Launch:
    return _with_env(launch, CHAOS_CLOCK_SHIFT_SEC=str(choice.randint(-MOST_SKEW_SECONDS, MOST_SKEW_SECONDS)))


def _set_failpoints(launch: Launch, choice: random.Random) -> Launch:
    return _with_env(
        launch, CHAOS_FAILPOINT_PROBABILITY=str(FAILPOINT_PROBABILITY), CHAOS_SEED=str(choice.getrandbits(64))
    )


def _shrink_disk(launch: Launch, _choice: random.Random) -> Launch:
    """A disk of its own, visible to this worker alone, gone with it."""
    mount = 'mount -t tmpfs -o size="$1" none "$2" && shift 2 && exec "$@"'
    wrapper = (*_namespace(), "sh", "-c", mount, "sh", TINY_DISK, launch.env["SCRATCH_DIR"])
    return replace(_with_env(launch, SCRATCH_MIN_FREE_MB="0"), wrapper=wrapper)


def _namespace() -> tuple[str, ...]:
    # -r: who is not root becomes root of a namespace of his own
    return ("unshare", "-m") if _can(("unshare", "-m", "true")) else ("unshare", "-Urm")


def _why_no_tiny_disk() -> str | None:
    if shutil.which("unshare") is None:
        return "there is no `unshare` here"
    if not (_can(("unshare", "-m", "true")) or _can(("unshare", "-Urm", "true"))):
        return "mount namespaces are not allowed here"
    return None


def _can(argv: tuple[str, ...]) -> bool:
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0
