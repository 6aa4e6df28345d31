"""What people and Node applications do to jobs meanwhile, through the SQL API and through pg-boss."""

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from tests.chaos.lanes import Lane
from tests.chaos.rig import Rig
from worker.queue import PgBoss

QUEUE = "clip"


async def cancel(rig: Rig, choice: random.Random) -> int:
    async with _connection(rig) as connection:
        return int(await connection.fetchval("SELECT worker.cancel($1)", rig.workload.pick(choice)) is not None)


async def retry(rig: Rig, choice: random.Random) -> int:
    """Revives the ended; a few, so that what kills its worker does not do so for ever."""
    async with _connection(rig) as connection:
        ended = await _ended(connection)
        if not ended:
            return 0
        await connection.fetchval("SELECT worker.retry($1)", choice.choice(ended))
        return 1


async def node_cancel(rig: Rig, choice: random.Random) -> int:
    job_id = rig.workload.pick(choice)
    rig.remember("cancelled", job_id)
    async with _client(rig) as queue:
        return len(await queue.cancel(QUEUE, [job_id]))


async def node_revive(rig: Rig, choice: random.Random) -> int:
    """Node's `retry` of a failed job and `resume` of a cancelled one: a second delivery of a job that had ended."""
    async with _connection(rig) as connection:
        ended = await _ended(connection)
    if not ended:
        return 0
    job_id = choice.choice(ended)
    rig.remember("revived", job_id)
    async with _client(rig) as queue:
        return len(await queue.retry(QUEUE, [job_id])) + len(await queue.resume(QUEUE, [job_id]))


async def node_fail(rig: Rig, choice: random.Random) -> int:
    """Another client fails a job that one of ours is working on: delivered again while it still runs."""
    async with _connection(rig) as connection:
        running = await connection.fetch("SELECT id FROM worker.jobs WHERE status = 'processing' ORDER BY id")
    if not running:
        return 0
    job_id = choice.choice(running)["id"]
    rig.remember("failed", job_id)
    async with _client(rig) as queue:
        return len(await queue.fail(QUEUE, [job_id], [{"message": "failed by another client"}]))


def operator_lanes() -> list[Lane]:
    return [
        Lane("cancel", 1.5, cancel),
        Lane("retry", 2.5, retry),
        Lane("node-cancel", 2, node_cancel),
        Lane("node-revive", 2, node_revive),
        Lane("node-fail", 3, node_fail),
    ]


async def _ended(connection: Any) -> list[Any]:
    rows = await connection.fetch(
        "SELECT id FROM worker.jobs WHERE status IN ('failed', 'cancelled') "
        "AND coalesce(spec #>> '{chaos,kill}', '') <> 'always' ORDER BY id"
    )
    return [row["id"] for row in rows]


@asynccontextmanager
async def _connection(rig: Rig) -> AsyncIterator[Any]:
    connection = await rig.postgres.connect()
    try:
        await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
        yield connection
    finally:
        connection.terminate()


@asynccontextmanager
async def _client(rig: Rig) -> AsyncIterator[PgBoss]:
    """A pg-boss client with connections of its own, as another application has them."""
    pool = await asyncpg.create_pool(
        rig.postgres.dsn(),
        min_size=1,
        max_size=1,
        server_settings={"application_name": "node", "default_transaction_read_only": "off"},
        init=lambda connection: connection.set_type_codec(
            "jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads
        ),
    )
    try:
        yield await PgBoss.attach(pool)
    finally:
        pool.terminate()
