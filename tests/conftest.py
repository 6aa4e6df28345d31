"""Shared by every test: one PostgreSQL a session, one cloned database a test."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import pytest

from worker.db.embedded import EmbeddedPostgres
from worker.db.migrate import migrate
from worker.db.pool import Pool, open_pool
from worker.jobs.desk import JobDesk
from worker.jobs.recovery import StaleLeases
from worker.jobs.store import JobStore
from worker.queue import PgBoss
from worker.settings import Settings

TEMPLATE = "clipboss_template"
LEASE_SECONDS = 45.0


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The developer's environment must not decide what the tests test."""
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="session")
def server_dsn() -> Iterator[str]:
    """A real PostgreSQL, thrown away afterwards. TEST_DATABASE_URL (a superuser's) uses another one instead."""
    if given := os.environ.get("TEST_DATABASE_URL"):
        yield given
        return
    directory = Path(tempfile.mkdtemp(prefix="clipboss-tests-"))
    directory.chmod(0o755)  # run by root, the server is somebody else and must get in
    server = EmbeddedPostgres(directory / "postgres", durable=False)
    try:
        yield server.start_blocking()
    finally:
        server.stop_blocking()
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def template_database(server_dsn: str) -> str:
    """A migrated database that others are cloned from, which takes a tenth of migrating anew."""

    async def build() -> None:
        admin = await asyncpg.connect(server_dsn)
        await admin.execute(f"DROP DATABASE IF EXISTS {TEMPLATE}")
        await admin.execute(f"CREATE DATABASE {TEMPLATE}")
        await admin.close()
        pool = await open_pool(database_dsn(server_dsn, TEMPLATE), name="tests")
        queue = await PgBoss.install(pool)
        await migrate(pool, queue_schema=queue.schema)
        await pool.close()

    asyncio.run(build())
    return TEMPLATE


@pytest.fixture
async def empty_dsn(server_dsn: str) -> AsyncIterator[str]:
    """A database with nothing in it."""
    async for dsn in _fresh_database(server_dsn, "template1"):
        yield dsn


@pytest.fixture
async def dsn(server_dsn: str, template_database: str) -> AsyncIterator[str]:
    """A migrated database of the test's own."""
    async for dsn in _fresh_database(server_dsn, template_database):
        yield dsn


@pytest.fixture
async def pool(dsn: str) -> AsyncIterator[Pool]:
    pool = await open_pool(dsn, name="tests", size=8)
    yield pool
    await pool.close()


@pytest.fixture
async def queue(pool: Pool) -> PgBoss:
    """A client, and the queue `clip` with three attempts and no delay between them."""
    queue = await PgBoss.attach(pool)
    await queue.create_queue("clip", retry_limit=2, notify=True)
    return queue


@dataclass(frozen=True)
class Room:
    """The jobs room on a test's own database."""

    pool: Pool
    queue: PgBoss
    store: JobStore
    desk: JobDesk
    leases: StaleLeases


@pytest.fixture
def room(pool: Pool, queue: PgBoss) -> Room:
    return Room(
        pool,
        queue,
        JobStore(pool, queue, lease_seconds=LEASE_SECONDS),
        JobDesk(pool, queue),
        StaleLeases(pool, queue, lease_seconds=LEASE_SECONDS),
    )


def database_dsn(server_dsn: str, database: str) -> str:
    return urlunsplit(urlsplit(server_dsn)._replace(path=f"/{database}"))


async def _fresh_database(server_dsn: str, template: str) -> AsyncIterator[str]:
    name = f"test_{uuid4().hex}"
    admin = await asyncpg.connect(server_dsn)
    await admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield database_dsn(server_dsn, name)
    finally:
        await admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
        await admin.close()
