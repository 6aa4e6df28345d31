"""What pg-boss needs done now and then by somebody: with no Node process around, a worker does it.

Any number of processes may, Node's among them: each pass claims its turn or its rows in the database.
"""

from worker.queue import PgBoss
from worker.runtime.loop import PeriodicLoop

#: as often as Node's own passes by default, but for deletion, which Node runs once a day a queue
EXPIRE_SECONDS = 60.0
DELETE_SECONDS = 3600.0
FLOW_SECONDS = 5.0
CRON_SECONDS = 30.0
FORWARD_SECONDS = 5.0


def upkeep_loops(queue: PgBoss) -> list[PeriodicLoop]:
    return [
        PeriodicLoop("expire", queue.expire_once, interval_seconds=EXPIRE_SECONDS),
        PeriodicLoop("delete", queue.delete_once, interval_seconds=DELETE_SECONDS),
        PeriodicLoop("flows", queue.resolve_flows, interval_seconds=FLOW_SECONDS),
        PeriodicLoop("cron", queue.run_cron_once, interval_seconds=CRON_SECONDS),
        PeriodicLoop("cron-forward", queue.work_cron_once, interval_seconds=FORWARD_SECONDS),
    ]
