"""The embedded server as the code around it sees it."""

import asyncio
import time
from pathlib import Path

import asyncpg
import pytest
from embedded_users import User

from worker.db.embedded import EmbeddedPostgres
from worker.db.postgres.home import ServerHome
from worker.db.postgres.locks import is_held_exclusively
from worker.errors import DatabaseUnavailable


async def test_context_manager_gives_a_dsn_and_stops_at_its_end(scratch: Path) -> None:
    async with EmbeddedPostgres(scratch / "postgres", durable=False) as dsn:
        connection = await asyncpg.connect(dsn)
        assert await connection.fetchval("SELECT current_database()") == "clipboss"
        assert await connection.fetchval("SHOW server_encoding") == "UTF8"
        await connection.close()
    with pytest.raises(OSError, match=r"Connect call failed|refused"):
        await asyncpg.connect(dsn)


async def test_durable_unless_told_otherwise(scratch: Path) -> None:
    async with EmbeddedPostgres(scratch / "postgres") as dsn:
        connection = await asyncpg.connect(dsn)
        assert await connection.fetchval("SHOW fsync") == "on"
        await connection.close()
    async with EmbeddedPostgres(scratch / "postgres", durable=False) as dsn:
        connection = await asyncpg.connect(dsn)
        assert await connection.fetchval("SHOW fsync") == "off"
        await connection.close()


async def test_two_holds_of_one_process_are_two_users(scratch: Path, us: User) -> None:
    us.prepare(scratch / "postgres")
    first = EmbeddedPostgres(scratch / "postgres", durable=False)
    second = EmbeddedPostgres(scratch / "postgres", durable=False)
    assert await first.start() == await second.start()
    await first.stop()
    await first.stop()
    assert await second.start() == await second.start()
    await second.stop()
    assert not is_held_exclusively(ServerHome(second.home).keeper_lock)


async def test_joining_a_running_server_costs_little_more_than_a_connection(scratch: Path, us: User) -> None:
    us.prepare(scratch / "postgres")

    async def seconds_to_join() -> float:
        begun = time.perf_counter()
        server = EmbeddedPostgres(scratch / "postgres", durable=False)
        await server.start()
        taken = time.perf_counter() - begun
        await server.stop()
        return taken

    async def seconds_to_connect(dsn: str) -> float:
        begun = time.perf_counter()
        connection = await asyncpg.connect(dsn)
        taken = time.perf_counter() - begun
        await connection.close()
        return taken

    async with EmbeddedPostgres(scratch / "postgres", durable=False) as dsn:
        # The best of a few: the machine may be busy with something else.
        joined = min([await seconds_to_join() for _ in range(5)])
        connected = min([await seconds_to_connect(dsn) for _ in range(5)])
    assert joined - connected < 0.05


async def test_cancelled_start_lets_go(scratch: Path) -> None:
    server = EmbeddedPostgres(scratch / "postgres", durable=False)
    starting = asyncio.create_task(server.start())
    keeper_lock = ServerHome(scratch / "postgres").keeper_lock
    async with asyncio.timeout(10):
        while not (keeper_lock.exists() and is_held_exclusively(keeper_lock)):
            await asyncio.sleep(0.01)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    async with asyncio.timeout(10):
        while is_held_exclusively(keeper_lock):
            await asyncio.sleep(0.01)


async def test_failed_start_holds_nothing(scratch: Path) -> None:
    (scratch / "postgres").touch()
    server = EmbeddedPostgres(scratch / "postgres", durable=False)
    with pytest.raises(DatabaseUnavailable, match="SCRATCH_DIR"):
        await server.start()
    await server.stop()
