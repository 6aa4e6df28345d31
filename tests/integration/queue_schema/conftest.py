"""A database of its own for every test, on one server."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from worker.db.embedded import EmbeddedPostgres


@pytest.fixture(scope="session")
def schema_server() -> Iterator[str]:
    directory = Path(tempfile.mkdtemp(prefix="clipboss-schema-"))
    directory.chmod(0o755)
    server = EmbeddedPostgres(directory / "postgres", durable=False)
    yield server.start_blocking()
    server.stop_blocking()
    shutil.rmtree(directory)


@pytest.fixture
async def database(schema_server: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to a fresh, empty database."""
    name = f"test_{uuid4().hex}"
    owner = await asyncpg.connect(schema_server)
    await owner.execute(f"CREATE DATABASE {name}")
    connection = await asyncpg.connect(schema_server, database=name)
    yield connection
    await connection.close()
    await owner.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await owner.close()
