"""What the schema's own functions and indexes do."""

import hashlib
import json
from typing import Any

import asyncpg
import pytest
from queue_ddl import install

SCHEMA = "Queue-1"
EVERY_QUEUE = {"i4", "i7", "i9", "i11", "i12", "i13", "i14", "i15", "i16", "i17"}
OF_POLICY = {
    "standard": set(),
    "short": {"i1"},
    "singleton": {"i2"},
    "stately": {"i3"},
    "exclusive": {"i6"},
    "key_strict_fifo": {"i8", "i10"},
}


@pytest.fixture
async def db(database: asyncpg.Connection) -> asyncpg.Connection:
    await install(database, SCHEMA)
    return database


async def create_queue(db: asyncpg.Connection, name: str, **options: Any) -> asyncpg.Record:
    await db.execute(f'SELECT "{SCHEMA}".create_queue($1, $2)', name, json.dumps({"policy": "standard"} | options))
    return await db.fetchrow(f'SELECT * FROM "{SCHEMA}".queue WHERE name = $1', name)


async def insert_job(db: asyncpg.Connection, name: str, **columns: Any) -> str:
    columns = {"name": name, **columns}
    places = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
    table: str = await db.fetchval(
        f'INSERT INTO "{SCHEMA}".job ({", ".join(columns)}) VALUES ({places}) '
        "RETURNING (SELECT relname FROM pg_class WHERE oid = job.tableoid)",
        *columns.values(),
    )
    return table


def own_table(queue: str) -> str:
    return "j" + hashlib.sha224(queue.encode()).hexdigest()


async def table_exists(db: asyncpg.Connection, table: str) -> bool:
    return await db.fetchval("SELECT to_regclass($1) IS NOT NULL", f'"{SCHEMA}".{table}')


async def test_queue_has_pg_boss_defaults(db: asyncpg.Connection) -> None:
    queue = await create_queue(db, "clip")
    expected = {
        "policy": "standard",
        "retry_limit": 2,
        "retry_delay": 0,
        "retry_backoff": False,
        "retry_delay_max": None,
        "expire_seconds": 900,
        "retention_seconds": 1209600,
        "deletion_seconds": 604800,
        "warning_queued": 0,
        "dead_letter": None,
        "partition": False,
        "table_name": "job_common",
        "heartbeat_seconds": None,
        "notify": False,
        "ready_history": [],
    }
    assert {column: queue[column] for column in expected} == expected


async def test_queue_takes_its_options(db: asyncpg.Connection) -> None:
    await create_queue(db, "dead")
    queue = await create_queue(
        db,
        "clip",
        policy="short",
        retryLimit=5,
        retryDelay=3,
        retryBackoff=True,
        retryDelayMax=60,
        expireInSeconds=120,
        retentionSeconds=10,
        deleteAfterSeconds=20,
        warningQueueSize=7,
        deadLetter="dead",
        heartbeatSeconds=30,
        notify=True,
    )
    expected = {
        "policy": "short",
        "retry_limit": 5,
        "retry_delay": 3,
        "retry_backoff": True,
        "retry_delay_max": 60,
        "expire_seconds": 120,
        "retention_seconds": 10,
        "deletion_seconds": 20,
        "warning_queued": 7,
        "dead_letter": "dead",
        "heartbeat_seconds": 30,
        "notify": True,
    }
    assert {column: queue[column] for column in expected} == expected


async def test_existing_queue_is_left_alone(db: asyncpg.Connection) -> None:
    await create_queue(db, "clip", retryLimit=5)
    queue = await create_queue(db, "clip", retryLimit=9, partition=True)
    assert (queue["retry_limit"], queue["partition"], queue["table_name"]) == (5, False, "job_common")
    assert not await table_exists(db, own_table("clip"))


async def test_queue_needs_a_policy(db: asyncpg.Connection) -> None:
    with pytest.raises(asyncpg.NotNullViolationError):
        await db.execute(f"SELECT \"{SCHEMA}\".create_queue('clip', '{{}}')")


async def test_queue_cannot_be_its_own_dead_letter(db: asyncpg.Connection) -> None:
    with pytest.raises(asyncpg.CheckViolationError, match="queue_check"):
        await create_queue(db, "clip", deadLetter="clip")


async def test_plain_queue_keeps_its_jobs_in_the_common_table(db: asyncpg.Connection) -> None:
    await create_queue(db, "clip")
    assert await insert_job(db, "clip") == "job_common"


@pytest.mark.parametrize("policy", OF_POLICY)
async def test_partitioned_queue_has_its_own_table_with_its_policys_indexes(
    db: asyncpg.Connection, policy: str
) -> None:
    queue = await create_queue(db, "clip.page/it's", policy=policy, partition=True)
    table = own_table("clip.page/it's")
    assert (queue["partition"], queue["table_name"]) == (True, table)
    assert await insert_job(db, "clip.page/it's", policy=policy, singleton_key="k") == table
    definitions = {
        row["indexname"].removeprefix(f"{table}_"): row["indexdef"].partition(" USING ")[2]
        for row in await db.fetch("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = $1", table)
    }
    common = {
        row["indexname"].removeprefix("job_common_"): row["indexdef"].partition(" USING ")[2]
        for row in await db.fetch("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'job_common'")
    }
    assert definitions.keys() == {"pkey"} | EVERY_QUEUE | OF_POLICY[policy]
    assert definitions == {suffix: common[suffix] for suffix in definitions}
    constraints = await db.fetchval(
        "SELECT array_agg(conname::text) FROM pg_constraint WHERE conrelid = $1::regclass AND contype <> 'n'",
        f'"{SCHEMA}".{table}',
    )
    fifo = {"job_key_strict_fifo_singleton_key_check"} if policy == "key_strict_fifo" else set()
    assert set(constraints) == {f"{table}_pkey", "q_fkey", "dlq_fkey", "cjc"} | fifo


@pytest.mark.parametrize("partition", [False, True])
async def test_deleted_queue_takes_its_jobs_with_it_and_no_others(db: asyncpg.Connection, partition: bool) -> None:
    await create_queue(db, "doomed", partition=partition)
    await create_queue(db, "kept")
    for queue in ("doomed", "kept"):
        await insert_job(db, queue)
    await db.execute(f"SELECT \"{SCHEMA}\".delete_queue('doomed')")
    assert [row["name"] for row in await db.fetch(f'SELECT name FROM "{SCHEMA}".job')] == ["kept"]
    assert [row["name"] for row in await db.fetch(f'SELECT name FROM "{SCHEMA}".queue')] == ["kept"]
    assert not await table_exists(db, own_table("doomed"))


async def test_deleting_an_unknown_queue_is_fine(db: asyncpg.Connection) -> None:
    await db.execute(f"SELECT \"{SCHEMA}\".delete_queue('unknown')")


@pytest.mark.parametrize("partition", [False, True])
@pytest.mark.parametrize(
    ("policy", "state", "refused", "accepted"),
    [
        ("short", "created", "created", "active"),
        ("singleton", "active", "active", "created"),
        ("stately", "retry", "retry", "created"),
        ("exclusive", "active", "created", "completed"),
        ("key_strict_fifo", "failed", "active", "created"),
    ],
)
async def test_policy_refuses_what_it_must_and_no_more(
    db: asyncpg.Connection, partition: bool, policy: str, state: str, refused: str, accepted: str
) -> None:
    await create_queue(db, "clip", policy=policy, partition=partition)
    await insert_job(db, "clip", policy=policy, state=state, singleton_key="k")
    with pytest.raises(asyncpg.UniqueViolationError):
        await insert_job(db, "clip", policy=policy, state=refused, singleton_key="k")
    await insert_job(db, "clip", policy=policy, state=accepted, singleton_key="k")
    await insert_job(db, "clip", policy=policy, state=refused, singleton_key="other")


async def test_strict_fifo_needs_a_key(db: asyncpg.Connection) -> None:
    await create_queue(db, "clip", policy="key_strict_fifo")
    with pytest.raises(asyncpg.CheckViolationError, match="job_key_strict_fifo_singleton_key_check"):
        await insert_job(db, "clip", policy="key_strict_fifo")


async def test_job_of_an_unknown_queue_fails_at_commit(db: asyncpg.Connection) -> None:
    transaction = db.transaction()
    await transaction.start()
    await insert_job(db, "unknown")
    with pytest.raises(asyncpg.ForeignKeyViolationError, match="q_fkey"):
        await transaction.commit()


async def test_clock_is_the_transactions(db: asyncpg.Connection) -> None:
    assert await db.fetchval(f'SELECT "{SCHEMA}".job_now() = now()')


async def test_ddl_for_jobs_is_rewritten_for_one_table(db: asyncpg.Connection) -> None:
    command = "CREATE INDEX job_i20 ON pgboss.job (state) WHERE state = 'created'::pgboss.job_state"
    assert await db.fetchval(f'SELECT "{SCHEMA}".job_table_format($1, $2)', command, "jabc") == (
        "CREATE INDEX jabc_i20 ON pgboss.jabc (state) WHERE state = 'created'::pgboss.job_state"
    )


@pytest.mark.parametrize(
    ("arguments", "tables"),
    [
        ("", {"job_common", own_table("own")}),
        (", tbl_name => 'job_common'", {"job_common"}),
        (", queue_name => 'own'", {own_table("own")}),
    ],
)
async def test_ddl_runs_now_or_later_on_the_tables_asked_for(
    db: asyncpg.Connection, arguments: str, tables: set[str]
) -> None:
    await create_queue(db, "own", partition=True)
    await create_queue(db, "plain")
    command = f'CREATE INDEX job_i20 ON "{SCHEMA}".job (state)'
    await db.execute(f'SELECT "{SCHEMA}".job_table_run($1{arguments})', command)
    made = await db.fetch("SELECT tablename FROM pg_indexes WHERE indexname ~ '_i20$'")
    assert {row["tablename"] for row in made} == tables

    await db.execute(f"SELECT \"{SCHEMA}\".job_table_run_async('later', 47, $1{arguments})", command)
    left = await db.fetch(f'SELECT name, version, status, queue, table_name, command FROM "{SCHEMA}".bam')
    assert {tuple(row) for row in left} == {
        (
            "later",
            47,
            "pending",
            "own" if table == own_table("own") else None,
            table,
            f'CREATE INDEX {table}_i20 ON "{SCHEMA}".{table} (state)',
        )
        for table in tables
    }
