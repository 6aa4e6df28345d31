"""`python -m tests.chaos`: jobs, workers and every kind of fault for as long as you like; then the reckoning."""

import argparse
import asyncio
import json
import logging
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.chaos.drain import drain_and_check
from tests.chaos.evidence import Evidence, keep
from tests.chaos.lanes import Lane, Storm
from tests.chaos.operator_lanes import operator_lanes
from tests.chaos.pgbouncer import find_pgbouncer
from tests.chaos.process_lanes import process_lanes, trait_lanes
from tests.chaos.report import as_markdown, make_report
from tests.chaos.rig import Pace, Rig, open_rig
from tests.chaos.service_lanes import PoolerLane, service_lanes
from tests.chaos.view import View
from tests.chaos.workload import Mix
from worker.telemetry.logs import configure_logging

#: as many jobs as keep the workers busy, and few enough to be drained in the end
WAITING_JOBS = 150
DRAIN_SECONDS = 60.0
#: whatever hangs, the command ends
GRACE_SECONDS = 900.0


def all_lanes() -> list[Lane]:
    missing = None if find_pgbouncer() else "pgbouncer is not installed"
    return [*process_lanes(), *trait_lanes(), *service_lanes(), PoolerLane(missing), *operator_lanes()]


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    names = [lane.name for lane in all_lanes()]
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long faults are made")
    parser.add_argument("--seed", default=None, help="the same seed draws the same jobs and the same faults")
    parser.add_argument("--lanes", default=None, help=f"comma-separated; all by default: {', '.join(names)}")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--report", type=Path, default=None, help="write the Markdown report here too")
    parser.add_argument("--json", action="store_true", help="print the report as JSON, and nothing else")
    options = parser.parse_args(argv)
    options.seed = options.seed or str(time.time_ns())
    wanted = names if options.lanes is None else [name.strip() for name in options.lanes.split(",")]
    if unknown := set(wanted) - set(names):
        parser.error(f"no such lane: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    options.wanted = wanted
    return options


async def run(options: argparse.Namespace) -> int:
    lanes = [lane for lane in all_lanes() if lane.name in options.wanted]
    pooled = any(lane.name == "pgbouncer" and lane.missing is None for lane in lanes)
    began_at = time.monotonic()
    mix = Mix(media=0.05)
    async with open_rig(seed=options.seed, workers=options.workers, pace=Pace(), mix=mix, pooled=pooled) as rig:
        storm = Storm(rig, lanes)
        with View(lanes, seconds=options.minutes * 60, quiet=options.json) as view:
            view.say(f"seed {options.seed}, directory {rig.directory}")
            await _rage(rig, storm, view, seconds=options.minutes * 60)
            view.say("healing, draining, checking")
            evidence = await drain_and_check(rig, storm, seconds=DRAIN_SECONDS)
        report = make_report(
            evidence,
            lanes,
            command=_command(options),
            seed=options.seed,
            seconds=time.monotonic() - began_at,
            workers=options.workers,
        )
        if options.report is not None:
            options.report.write_text(as_markdown(report))
        print(json.dumps(report.as_dict(), indent=1) if options.json else as_markdown(report))
        if evidence.violations:
            _keep(rig, evidence)
        if not evidence.history.accepted:
            view.say("nothing was proved: no job was accepted")
        return 1 if evidence.violations or not evidence.history.accepted else 0


def _command(options: argparse.Namespace) -> str:
    """What gives the same run again, wherever its report went."""
    words = ["./dev chaos", f"--minutes {options.minutes:g}", f"--seed {options.seed}", f"--workers {options.workers}"]
    return " ".join(words if options.lanes is None else [*words, f"--lanes {options.lanes}"])


async def _rage(rig: Rig, storm: Storm, view: View, *, seconds: float) -> None:
    """Jobs and faults until the time is over, or somebody has seen enough."""
    enough = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, enough.set)
    storm.begin()
    await asyncio.sleep(0)  # lanes that change how workers start come first
    await rig.fleet.start()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not enough.is_set():
        counts = await rig.counts()
        view.show(counts, alive=len(rig.fleet.alive()), started=len(rig.fleet.all))
        # nobody knows how many wait while the database is away
        if counts and counts["queued"] < WAITING_JOBS:
            await rig.workload.submit(rig.postgres, WAITING_JOBS)
        with suppress(TimeoutError):
            await asyncio.wait_for(enough.wait(), 1.0)


def _keep(rig: Rig, evidence: Evidence) -> None:
    target = Path(tempfile.mkdtemp(prefix="clipboss-chaos-evidence-"))
    keep(rig, evidence, target)
    print(f"evidence kept in {target}", file=sys.stderr)


def main() -> None:
    options = parse()
    configure_logging("console", "error")
    # its clients are killed all the time
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)

    async def bounded() -> int:
        async with asyncio.timeout(options.minutes * 60 + GRACE_SECONDS):
            return await run(options)

    sys.exit(asyncio.run(bounded()))


if __name__ == "__main__":
    main()
