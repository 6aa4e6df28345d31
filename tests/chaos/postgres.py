"""A PostgreSQL that the harness stops, starts and cripples at will, on the same port."""

import asyncio
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from worker.db.postgres.cluster import Cluster
from worker.db.postgres.home import DATABASE, USER, ServerHome, open_home
from worker.db.postgres.locks import FileLock

#: what the harness itself meets while the database is down or going down
AWAY = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


@dataclass(frozen=True, slots=True)
class Outage:
    """A time, monotonic, in which workers could not write."""

    began_at: float
    ended_at: float


class ChaosPostgres:
    """The embedded server's programs without its keeper, who would bring the server back at once.

    Durable: after an immediate stop everything that was confirmed must still be there.
    """

    def __init__(self, directory: Path) -> None:
        self.home: ServerHome = open_home(directory)
        self._cluster = Cluster(self.home, durable=True)
        self._lock = FileLock(self.home.server_lock)
        self._server: subprocess.Popen[bytes] | None = None
        self.port: int | None = None
        # The kernel stops the server when the thread that started it ends, so that one lives as long as we do.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="postgres")
        # Two lanes may want to restart it: one after the other.
        self._restarting = asyncio.Lock()
        self.outages: list[Outage] = []

    async def start(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._start)
        if self.port is not None:
            await self._make_database()

    async def stop(self, *, immediate: bool = False) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._stop, immediate)

    async def restart(self, *, immediate: bool, down_seconds: float = 0.0) -> None:
        async with self._restarting, self.outage():
            await self.stop(immediate=immediate)
            try:
                await asyncio.sleep(down_seconds)
            finally:
                # also when the storm ends meanwhile
                await self.start()

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        began_at = time.monotonic()
        try:
            yield
        finally:
            self.outages.append(Outage(began_at, time.monotonic()))

    @asynccontextmanager
    async def read_only(self) -> AsyncIterator[None]:
        """What a worker sees of a failover: its writes are refused, reads go on."""
        async with self.outage():
            await self._alter("ALTER SYSTEM SET default_transaction_read_only = on")
            try:
                yield
            finally:
                await self._heal("ALTER SYSTEM RESET default_transaction_read_only")

    async def close(self) -> None:
        await self.stop(immediate=True)
        self._thread.shutdown()
        self._lock.release()

    @property
    def password(self) -> str:
        return self.home.password()

    def dsn(self, port: int | None = None) -> str:
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{port or self.port}/{DATABASE}"

    async def connect(self) -> Any:
        """For the harness itself: past every proxy, and never read-only."""
        return await asyncpg.connect(
            self.dsn(), server_settings={"application_name": "chaos", "default_transaction_read_only": "off"}
        )

    async def _heal(self, statement: str) -> None:
        """However often another lane takes the database away meanwhile."""
        while True:
            try:
                return await self._alter(statement)
            except AWAY:
                await asyncio.sleep(0.1)

    async def _alter(self, statement: str) -> None:
        connection = await self.connect()
        try:
            await connection.execute(statement)
            await connection.execute("SELECT pg_reload_conf()")
        finally:
            await connection.close()

    async def _make_database(self) -> None:
        host = {"host": "127.0.0.1", "port": self.port, "user": USER, "password": self.password}
        connection = await asyncpg.connect(**host, database="postgres")
        try:
            if not await connection.fetchval("SELECT true FROM pg_database WHERE datname = $1", DATABASE):
                await connection.execute(f"CREATE DATABASE {DATABASE}")
        finally:
            await connection.close()

    def _start(self) -> None:
        if self.port is None:
            self._lock.acquire(exclusive=True, deadline=time.monotonic() + 5)
            self._cluster.prepare()
        self._server, self.port = self._cluster.launch(self.port, inherited_lock=self._lock.fileno())

    def _stop(self, immediate: bool) -> None:
        if self._server is not None:
            self._server.send_signal(signal.SIGQUIT if immediate else signal.SIGINT)
            self._server.wait()
            self._server = None
