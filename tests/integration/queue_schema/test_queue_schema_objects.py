"""The objects that pg-boss looks for by name are there, on any schema name."""

from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
from queue_ddl import install

COLUMNS = {
    "bam": 11,
    "instance": 25,
    "job": 37,
    "job_common": 37,
    "job_dependency": 4,
    "queue": 39,
    "queue_stats": 17,
    "schedule": 10,
    "subscription": 4,
    "version": 6,
    "warning": 5,
}
#: index of job_common: (is unique, keys, predicate as PostgreSQL prints it)
JOB_INDEXES = {
    "i1": (True, "name, COALESCE(singleton_key, ''::text)", "state = 'created' AND policy = 'short'"),
    "i2": (True, "name, COALESCE(singleton_key, ''::text)", "state = 'active' AND policy = 'singleton'"),
    "i3": (
        True,
        "name, state, COALESCE(singleton_key, ''::text)",
        "state <= 'active' AND policy = 'stately'",
    ),
    "i4": (
        True,
        "name, singleton_on, COALESCE(singleton_key, ''::text)",
        "state <> 'cancelled' AND singleton_on IS NOT NULL",
    ),
    "i6": (True, "name, COALESCE(singleton_key, ''::text)", "state <= 'active' AND policy = 'exclusive'"),
    "i7": (False, "name, group_id", "state = 'active' AND group_id IS NOT NULL"),
    "i8": (
        True,
        "name, singleton_key",
        "state = ANY ARRAY['active', 'retry', 'failed'] AND policy = 'key_strict_fifo'",
    ),
    "i9": (False, "name, id", "blocking AND state = 'completed'"),
    "i10": (
        False,
        "name, singleton_key, state DESC, created_on, id INCLUDE start_after",
        "state < 'active' AND NOT blocked AND policy = 'key_strict_fifo'",
    ),
    "i11": (False, "name, priority DESC, created_on, start_after", "state < 'active' AND NOT blocked"),
    "i12": (False, "source_root_id", "source_root_id IS NOT NULL"),
    "i13": (True, "name, singleton_key", "state = 'created' AND upsert_by_key"),
    "i14": (
        False,
        "name, state, blocked, start_after",
        "state = ANY ARRAY['created', 'retry', 'active', 'failed']",
    ),
    "i15": (False, "name, created_on", ""),
    "i16": (False, "name, completed_on", "completed_on IS NOT NULL"),
    "i17": (False, "name, singleton_key, created_on", "state < 'active' AND singleton_key IS NOT NULL"),
}
CONSTRAINTS = {
    "bam": {"bam_pkey"},
    "instance": {"instance_pkey"},
    "job": {"job_pkey"},
    "job_common": {"job_common_pkey", "q_fkey", "dlq_fkey", "job_key_strict_fifo_singleton_key_check"},
    "job_dependency": {"job_dependency_pkey"},
    "queue": {"queue_pkey", "queue_check", "queue_dead_letter_fkey"},
    "queue_stats": {"queue_stats_pkey"},
    "schedule": {"schedule_pkey", "schedule_kind_check", "schedule_name_fkey"},
    "subscription": {"subscription_pkey", "subscription_name_fkey"},
    "version": {"version_pkey"},
    "warning": {"warning_pkey"},
}
FUNCTIONS = {
    "create_queue": ("queue_name text, options jsonb", "void", "v"),
    "delete_queue": ("queue_name text", "void", "v"),
    "job_now": ("", "timestamp with time zone", "s"),
    "job_table_format": ("command text, table_name text", "text", "i"),
    "job_table_run": (
        "command text, tbl_name text DEFAULT NULL::text, queue_name text DEFAULT NULL::text",
        "void",
        "v",
    ),
    "job_table_run_async": (
        (
            "command_name text, version integer, command text, tbl_name text DEFAULT NULL::text, "
            "queue_name text DEFAULT NULL::text"
        ),
        "void",
        "v",
    ),
}


@pytest.fixture(params=["pgboss", "Queue-1"])
async def schema(request: pytest.FixtureRequest, database: asyncpg.Connection) -> str:
    await install(database, request.param)
    name: str = request.param
    return name


async def test_version_is_the_only_row(schema: str, database: asyncpg.Connection) -> None:
    rows = await database.fetch(f'SELECT version FROM "{schema}".version')
    assert [row["version"] for row in rows] == [46]


async def test_tables_have_their_columns(schema: str, database: asyncpg.Connection) -> None:
    rows = await database.fetch(
        "SELECT table_name, count(*) FROM information_schema.columns WHERE table_schema = $1 GROUP BY 1",
        schema,
    )
    days = [datetime.now(UTC), datetime.now(UTC) + timedelta(days=1)]
    partitions = {f"queue_stats_{day:%Y%m%d}": COLUMNS["queue_stats"] for day in days}
    assert dict(rows) == COLUMNS | partitions


async def test_statistics_partitions_are_utc_days(schema: str, database: asyncpg.Connection) -> None:
    await database.execute("SET timezone = 'America/New_York'")
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for moment in (today, today + timedelta(days=2, microseconds=-1)):
        await database.execute(f"INSERT INTO \"{schema}\".queue_stats (name, captured_on) VALUES ('q', $1)", moment)
    for moment in (today - timedelta(microseconds=1), today + timedelta(days=2)):
        with pytest.raises(asyncpg.CheckViolationError, match="no partition"):
            await database.execute(f"INSERT INTO \"{schema}\".queue_stats (name, captured_on) VALUES ('q', $1)", moment)


async def test_states_are_in_order(schema: str, database: asyncpg.Connection) -> None:
    states = await database.fetchval(f'SELECT enum_range(NULL::"{schema}".job_state)::text[]')
    assert states == ["created", "retry", "active", "completed", "cancelled", "failed"]


async def test_constraints_have_the_names_migrations_use(schema: str, database: asyncpg.Connection) -> None:
    rows = await database.fetch(
        """SELECT c.relname, array_agg(conname::text) FROM pg_constraint JOIN pg_class c ON c.oid = conrelid
        WHERE connamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)
        AND contype <> 'n' AND c.relname NOT LIKE 'queue_stats_2%' GROUP BY 1""",
        schema,
    )
    assert {table: set(names) for table, names in rows} == CONSTRAINTS


async def test_indexes_of_jobs(schema: str, database: asyncpg.Connection) -> None:
    assert await job_indexes(database, schema, "job_common") == JOB_INDEXES


async def test_other_indexes(schema: str, database: asyncpg.Connection) -> None:
    rows = await database.fetch(
        r"""SELECT indexname FROM pg_indexes WHERE schemaname = $1 AND indexname !~ '_pkey$'
        AND tablename <> 'job_common' AND tablename !~ '^queue_stats_2'""",
        schema,
    )
    assert {row["indexname"] for row in rows} == {"job_dep_parent_idx", "warning_i1", "queue_stats_i1"}


async def test_functions_have_their_signatures(schema: str, database: asyncpg.Connection) -> None:
    rows = await database.fetch(
        """SELECT proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), provolatile::text
        FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = $1""",
        schema,
    )
    assert {name: tuple(signature) for name, *signature in rows} == FUNCTIONS


async def job_indexes(database: asyncpg.Connection, schema: str, table: str) -> dict[str, tuple[bool, str, str]]:
    """The numbered indexes of a job table, in a form that does not name the table or the schema."""
    rows = await database.fetch(
        r"""SELECT substring(c.relname FROM '_(i\d+)$') AS suffix, indisunique AS is_unique,
            substring(pg_get_indexdef(i.indexrelid) FROM 'USING btree (.*?)(?: WHERE .*)?$') AS keys,
            COALESCE(pg_get_expr(indpred, indrelid), '') AS predicate
        FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE indrelid = format('%I.%I', $1::text, $2::text)::regclass AND c.relname ~ '_i\d+$'""",
        schema,
        table,
    )

    def plain(text: str) -> str:
        bare = text.replace("::text)", ")").replace(f'::"{schema}".job_state', "").replace(f"::{schema}.job_state", "")
        return bare.replace("(", "").replace(")", "")

    return {
        row["suffix"]: (
            row["is_unique"],
            row["keys"][1:].replace(") INCLUDE (", " INCLUDE ").removesuffix(")"),
            plain(row["predicate"]),
        )
        for row in rows
    }
