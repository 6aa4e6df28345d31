"""Two thousand jobs through four workers that are killed and frozen all the time, and nothing lost or doubled."""

import asyncio
import tempfile
import time
from pathlib import Path

import pytest

from tests.chaos.drain import drain_and_check
from tests.chaos.evidence import Evidence, keep, summary
from tests.chaos.invariants import recovery_latencies
from tests.chaos.lanes import Lane, Storm
from tests.chaos.process_lanes import freeze_one, kill_one
from tests.chaos.rig import Pace, Rig, open_rig
from tests.chaos.service_lanes import fail_s3
from tests.chaos.workload import Mix

SEED = "l1"
JOBS = 2000
STORM_SECONDS = 130
#: where everything takes longer, so do the faults
LONGEST_STORM_SECONDS = 300
#: how often each must have struck for the run to prove something
LEAST_STRIKES = {"sigkill": 10, "sigstop": 3, "s3-errors": 3}


@pytest.mark.timeout(800)
@pytest.mark.xdist_group("chaos")
async def test_nothing_is_lost_or_doubled_among_2000_jobs_under_kills_freezes_and_a_restart() -> None:
    async with open_rig(seed=SEED, workers=4, pace=Pace(), mix=Mix()) as rig:
        await rig.workload.submit(rig.postgres, JOBS)
        storm = Storm(
            rig,
            [
                Lane("sigkill", 3, kill_one),
                Lane("sigstop", 10, freeze_one),
                Lane("s3-errors", 0.01, fail_s3),
            ],
        )
        await rig.fleet.start()
        storm.begin()
        restart = asyncio.create_task(_restart_on_the_way(rig))
        await _until_ended_or_struck_enough(rig, storm)
        await restart
        # On a slow machine some jobs are left; without faults they are done sooner or later.
        evidence = await drain_and_check(rig, storm, seconds=60)
        _require_none(rig, evidence)
        assert len(rig.postgres.outages) == 1
        assert _missing_strikes(storm) == {}
        assert len(recovery_latencies(evidence.history)) >= 10


@pytest.mark.timeout(150)
@pytest.mark.xdist_group("chaos")
@pytest.mark.parametrize("store", ["unfenced", "fenced"])
async def test_a_store_without_fences_is_caught_and_the_real_one_is_not(store: str) -> None:
    """Were it not, the test above would prove nothing.

    Jobs that take longer than a lease are still running elsewhere when the worker they were taken from wakes up.
    """
    pace = Pace(lease_seconds=2.0, beat_seconds=0.4, scan_seconds=0.4, max_concurrency=4)
    mix = Mix(transient=0, fatal=0, kills_once=0, kills_always=0, artifact=0, child=0, media=0, sleep_ms=(2500, 4000))
    async with open_rig(seed="fences", workers=3, pace=pace, mix=mix, store=store) as rig:
        await rig.workload.submit(rig.postgres, 60)
        storm = Storm(rig, [Lane("sigstop", 0.7, freeze_one)])
        await rig.fleet.start()
        storm.begin()
        await rig.wait_until_ended(seconds=60)
        evidence = await drain_and_check(rig, storm, seconds=30)
        assert storm.lanes[0].count >= 3
        if store == "fenced":
            _require_none(rig, evidence)
        else:
            assert "fence" in {violation.check for violation in evidence.violations}


async def _until_ended_or_struck_enough(rig: Rig, storm: Storm) -> None:
    started = time.monotonic()
    while not await rig.wait_until_ended(seconds=1):
        passed = time.monotonic() - started
        if passed > LONGEST_STORM_SECONDS or (passed > STORM_SECONDS and not _missing_strikes(storm)):
            return


def _missing_strikes(storm: Storm) -> dict[str, int]:
    struck = {lane.name: lane.count for lane in storm.lanes}
    return {name: struck[name] for name, least in LEAST_STRIKES.items() if struck[name] < least}


async def _restart_on_the_way(rig: Rig) -> None:
    deadline = time.monotonic() + STORM_SECONDS / 2
    while (await rig.counts())["done"] < JOBS / 2 and time.monotonic() < deadline:
        await asyncio.sleep(0.5)
    await rig.postgres.restart(immediate=True, down_seconds=1.0)


def _require_none(rig: Rig, evidence: Evidence) -> None:
    if evidence.violations:
        target = Path(tempfile.mkdtemp(prefix="clipboss-chaos-evidence-"))
        keep(rig, evidence, target)
        pytest.fail(f"{summary(evidence.violations)}\nevidence: {target}")
