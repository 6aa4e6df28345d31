"""Brings schema `worker` forward: numbered files, each applied once, in order, never changed afterwards."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from worker.db.pool import Connection, Pool
from worker.db.sql import render
from worker.errors import ConfigError, SchemaUnsupported

_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
#: one migrator at a time; any number will do as long as it stays the same
_LOCK = 0x636C6970626F7373


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def migrations_folder() -> Path:
    """`migrations/` lies beside the package in a checkout and inside it in a wheel."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "migrations"
    return inside if inside.is_dir() else package.parent / "migrations"


def read_migrations(folder: Path | None = None) -> list[Migration]:
    found = []
    for path in sorted((folder or migrations_folder()).glob("*.sql")):
        name = _NAME.fullmatch(path.name)
        if not name:
            raise ConfigError(f"{path.name} is not a migration's name (expected 0001_what_it_does.sql)")
        found.append(Migration(int(name[1]), name[2], path.read_text()))
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise ConfigError("migrations must be numbered 0001, 0002, … without gaps")
    return found


async def migrate(pool: Pool, *, queue_schema: str, folder: Path | None = None) -> list[Migration]:
    """Apply what is missing; returns what was applied. Safe to run from many machines at once."""
    applied = []
    for migration in read_migrations(folder):
        async with pool.acquire() as connection, connection.transaction():
            # Held until commit; a session lock would not survive a pooler.
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
            if not await _is_applied(connection, migration, queue_schema):
                await connection.execute(render(migration.text, queue_schema=queue_schema, version=0), timeout=600)
                await _record(connection, migration, queue_schema)
                applied.append(migration)
    return applied


async def require_migrated(pool: Pool, *, queue_schema: str, folder: Path | None = None) -> None:
    """SchemaUnsupported unless the database is exactly where this code expects it."""
    known = read_migrations(folder)
    try:
        rows = await pool.fetch("SELECT version, checksum, queue_schema FROM worker.migrations ORDER BY version")
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError) as exc:
        raise SchemaUnsupported(
            "the database has no clipboss tables; run `python -m worker migrate` with the same DATABASE_URL"
        ) from exc
    if len(rows) < len(known):
        raise SchemaUnsupported("the database is older than this worker; run `python -m worker migrate`")
    if len(rows) > len(known):
        raise SchemaUnsupported("the database is newer than this worker; upgrade the worker")
    for row, migration in zip(rows, known, strict=True):
        _check(migration, row["checksum"], row["queue_schema"], queue_schema)


async def refuse_other_schema(pool: Pool, *, queue_schema: str) -> None:
    """SchemaUnsupported when the database was migrated for another queue schema; nothing is written."""
    if await pool.fetchval("SELECT to_regclass('worker.migrations')::text") is None:
        return
    for row in await pool.fetch("SELECT DISTINCT queue_schema FROM worker.migrations"):
        _check_schema(row["queue_schema"], queue_schema)


async def _is_applied(connection: Connection, migration: Migration, queue_schema: str) -> bool:
    await connection.execute("CREATE SCHEMA IF NOT EXISTS worker")
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS worker.migrations (version int PRIMARY KEY, name text NOT NULL, "
        "checksum text NOT NULL, queue_schema text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
    )
    row = await connection.fetchrow(
        "SELECT checksum, queue_schema FROM worker.migrations WHERE version = $1", migration.version
    )
    if row is None:
        return False
    _check(migration, row["checksum"], row["queue_schema"], queue_schema)
    return True


async def _record(connection: Connection, migration: Migration, queue_schema: str) -> None:
    await connection.execute(
        "INSERT INTO worker.migrations (version, name, checksum, queue_schema) VALUES ($1, $2, $3, $4)",
        migration.version,
        migration.name,
        migration.checksum,
        queue_schema,
    )


def _check(migration: Migration, checksum: str, applied_schema: str, queue_schema: str) -> None:
    label = f"{migration.version:04}_{migration.name}"
    if checksum != migration.checksum:
        raise SchemaUnsupported(
            f"migration {label} was changed after it had been applied; restore it and add a new migration instead"
        )
    _check_schema(applied_schema, queue_schema)


def _check_schema(applied_schema: str, queue_schema: str) -> None:
    if applied_schema != queue_schema:
        raise SchemaUnsupported(
            f"this database was migrated for QUEUE_SCHEMA={applied_schema}, not {queue_schema}; use that name"
        )
