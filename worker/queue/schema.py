"""Finds, checks or creates the pg-boss schema. Somebody else's install is never migrated from here."""

from importlib.resources import files

import asyncpg

from worker.db.pool import Connection, Executor, Pool
from worker.db.sql import quote_identifier, render
from worker.errors import SchemaUnsupported
from worker.queue.names import NEWEST_SCHEMA, OLDEST_SCHEMA, advisory_key


async def read_version(db: Executor, schema: str) -> int | None:
    """The schema's number, or None when pg-boss is not installed there."""
    table = f"{quote_identifier(schema)}.version"
    if await db.fetchval("SELECT to_regclass($1)::text", table) is None:
        return None
    version: int | None = await db.fetchval(f"SELECT version FROM {table}")  # noqa: S608 - quoted above
    return version


async def attach_schema(db: Executor, schema: str, *, allow_newer: bool = False) -> int:
    """The number of a schema this client can work with; SchemaUnsupported otherwise."""
    version = await read_version(db, schema)
    if version is None:
        raise SchemaUnsupported(
            f"there is no pg-boss schema {schema!r} in this database; run `python -m worker migrate`, "
            "or start the Node application that owns it, or correct QUEUE_SCHEMA"
        )
    if version < OLDEST_SCHEMA:
        raise SchemaUnsupported(
            f"pg-boss schema {schema!r} is at version {version}; {OLDEST_SCHEMA} or newer is needed: "
            "upgrade pg-boss in the Node application and start it once (pg-boss 12.26 or newer)"
        )
    if version > NEWEST_SCHEMA and not allow_newer:
        raise SchemaUnsupported(
            f"pg-boss schema {schema!r} is at version {version}; "
            f"this release knows up to {NEWEST_SCHEMA}: upgrade clipboss, or set QUEUE_ALLOW_NEWER=1 at your own risk"
        )
    return version


async def ensure_schema(pool: Pool, schema: str, *, allow_newer: bool = False) -> int:
    """Attach, or create the newest version where there is none."""
    if await read_version(pool, schema) is None:
        try:
            async with pool.acquire() as connection, connection.transaction():
                await _create(connection, schema)
        except (asyncpg.DuplicateSchemaError, asyncpg.DuplicateTableError, asyncpg.DuplicateObjectError):
            # An older Node creator does not wait for our lock; whoever came first made it.
            pass
    return await attach_schema(pool, schema, allow_newer=allow_newer)


async def _create(connection: Connection, schema: str) -> None:
    database = await connection.fetchval("SELECT current_database()")
    await connection.execute("SET LOCAL lock_timeout = '30s'")
    await connection.execute("SELECT pg_advisory_xact_lock($1)", advisory_key(database, schema))
    if await read_version(connection, schema) is None:
        ddl = (files("worker.queue") / f"schema_{NEWEST_SCHEMA}.sql").read_text()
        await connection.execute(render(ddl, queue_schema=schema, version=NEWEST_SCHEMA), timeout=60)
