"""Faults of long jobs: pages sent twice or out of turn, and connections cut while a page is settled."""

import asyncio
import json
import random
import time
from dataclasses import replace

from tests.chaos.fleet import Launch
from tests.chaos.process_lanes import kill_one
from tests.chaos.rig import Rig, Trait

#: a third crash of the same page is taken for its own fault, and rightly ends the run
MOST_CRASHES = 2

#: every message of a page comes twice, and settling a page takes so long that it can be met at it
TWICE_AND_SLOWLY = """
CREATE FUNCTION public.send_twice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM worker.submit('clip.page', NEW.data);
    RETURN NULL;
END $$;
CREATE TRIGGER send_twice AFTER INSERT ON pgboss.job FOR EACH ROW
    WHEN (NEW.name = 'clip.page' AND pg_trigger_depth() = 0) EXECUTE FUNCTION public.send_twice();
CREATE FUNCTION public.take_long() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(0.15);
    RETURN NULL;
END $$;
CREATE TRIGGER take_long AFTER INSERT ON worker.pages FOR EACH ROW EXECUTE FUNCTION public.take_long();
"""
CUT = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE application_name LIKE 'clipboss:%' AND query LIKE '%INSERT INTO worker.pages%' AND state <> 'idle'
"""


def takes_pages(rig: Rig) -> Trait:
    """Straight to S3: the proxy that makes faults is for small objects."""

    def change(launch: Launch, _name: str) -> Launch:
        return replace(launch, env={**launch.env, "QUEUES": "clip,clip.page", "S3_ENDPOINT_URL": rig.s3.endpoint_url})

    return change


async def kill_one_mercifully(rig: Rig, choice: random.Random) -> int:
    connection = await rig.postgres.connect()
    try:
        crashed = await connection.fetchval(
            "SELECT count(*) FROM worker.jobs WHERE status IN ('queued', 'processing') AND crash_count >= $1",
            MOST_CRASHES,
        )
    finally:
        await connection.close()
    return 0 if crashed else await kill_one(rig, choice)


async def send_out_of_turn(rig: Rig, choice: random.Random) -> int:
    """Pages that are finished, that it is not the turn of yet, and that there are none of."""
    connection = await rig.postgres.connect()
    try:
        chains = await connection.fetch("SELECT * FROM worker.partition_progress WHERE NOT completed")
        if not chains:
            return 0
        chain = choice.choice(chains)
        offset = choice.randint(chain["first_offset"], chain["past_offset"] + 1)
        message = {"run": str(chain["run_id"]), "partition": chain["partition_id"], "offset": offset}
        # past the trigger: this one comes once
        await connection.execute("SET session_replication_role = replica")
        await connection.execute("SELECT worker.submit('clip.page', $1::jsonb)", json.dumps(message))
    finally:
        await connection.close()
    return 1


async def cut_while_settling(rig: Rig, _choice: random.Random) -> int:
    """Waits for somebody who settles a page, and cuts the connection under it."""
    connection, deadline = await rig.postgres.connect(), time.monotonic() + 2
    try:
        while time.monotonic() < deadline:
            if cut := await connection.fetchval(CUT):
                return int(cut)
            await asyncio.sleep(0.02)
    finally:
        await connection.close()
    return 0
