"""The calm after the storm: everything healed, all work done, every worker gone."""

from tests.chaos.evidence import Evidence, gather
from tests.chaos.lanes import Storm
from tests.chaos.proxy import Mode
from tests.chaos.rig import Rig

STOP_SECONDS = 20.0
#: to start on a busy machine, to sweep, and to stop
SWEEP_SECONDS = 60.0


async def drain_and_check(rig: Rig, storm: Storm, *, seconds: float) -> Evidence:
    """`seconds`: for how long none of the jobs that are left may end; those that do not are found lost by the check."""
    await storm.end()
    for proxy in rig.proxies:
        proxy.mode = Mode.PASS
    for worker in rig.fleet.alive():
        if worker.launch.wrapper or "CHAOS_FAILPOINT_PROBABILITY" in worker.launch.env:
            # comes back without its trouble
            rig.fleet.terminate(worker)
    await rig.wait_while_jobs_end(patience_seconds=seconds)
    await rig.fleet.stop(seconds=STOP_SECONDS)
    assert rig.postgres.port is not None
    # What the killed left on disk is swept by the next worker that starts.
    await rig.fleet.run_to_end(rig.plain_launch(rig.postgres.port), "--drain", seconds=SWEEP_SECONDS)
    return await gather(rig)
