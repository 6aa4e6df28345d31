"""A real PostgreSQL for when DATABASE_URL is not set, shared by all our processes on one directory."""

import asyncio
import json
import logging
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO

import asyncpg

from worker.db.postgres.home import DATABASE, USER, RunningServer, ServerHome, last_lines, open_home
from worker.db.postgres.locks import POLL_SECONDS, FileLock, is_held_exclusively
from worker.errors import DatabaseUnavailable

log = logging.getLogger(__name__)

START_SECONDS = 30.0
LOGIN_SECONDS = 5.0
#: how long `stop` waits for the server's clean end when nobody else uses it
STOP_SECONDS = 10.0


class EmbeddedPostgres:
    """This process's hold on the server of a directory, which runs while at least one process holds it."""

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        """`durable=False` trades safety against power loss for speed; whoever starts the server decides."""
        self._directory = directory
        self._durable = durable
        self._home: ServerHome | None = None
        self._hold: FileLock | None = None
        self._is_abandoned = threading.Event()

    @property
    def home(self) -> Path:
        """Where the data really lies: elsewhere than asked when root runs us where only root may enter."""
        return (self._home.root if self._home else self._directory).absolute()

    async def start(self) -> str:
        """Start the server or join the running one, and return its DSN."""
        self._is_abandoned.clear()
        starting = asyncio.ensure_future(asyncio.to_thread(self.start_blocking))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._is_abandoned.set()
            await asyncio.wait([starting])
            await self.stop()
            raise

    async def stop(self) -> None:
        """Let go; the last one to do so waits until the server has stopped. Calling it twice is fine."""
        await asyncio.to_thread(self.stop_blocking)

    async def __aenter__(self) -> str:
        return await self.start()

    async def __aexit__(self, *exc_info: object) -> None:
        await self.stop()

    def start_blocking(self) -> str:
        """`start` for code without an event loop."""
        try:
            home = open_home(self._directory)
            if home.root != self._directory.absolute():
                log.warning("embedded_postgres_moved wanted=%s used=%s", self._directory, home.root)
            self._home = home
            return self._join(home, deadline=time.monotonic() + START_SECONDS)
        except OSError as exc:
            self.stop_blocking()
            raise DatabaseUnavailable(
                f"the embedded PostgreSQL cannot use {self._directory}: {exc}; "
                "choose another SCRATCH_DIR or set DATABASE_URL"
            ) from exc
        except BaseException:
            self.stop_blocking()
            raise

    def stop_blocking(self) -> None:
        """`stop` for code without an event loop."""
        if self._hold is None or self._home is None:
            return
        is_last = self._hold.is_open and self._hold.try_acquire(exclusive=True)
        self._hold.release()
        self._hold = None
        deadline = time.monotonic() + STOP_SECONDS
        while is_last and is_held_exclusively(self._home.keeper_lock) and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def _join(self, home: ServerHome, *, deadline: float) -> str:
        if self._hold is None:
            # First of all: it waits out a keeper that is stopping the server, and holds off any other.
            hold = FileLock(home.users_lock)
            hold.acquire(exclusive=False, deadline=deadline, give_up=self._is_abandoned.is_set)
            self._hold = hold
        starting = FileLock(home.start_lock)
        starting.acquire(exclusive=True, deadline=deadline, give_up=self._is_abandoned.is_set)
        try:
            return self._find_or_start(home, deadline)
        finally:
            starting.release()

    def _find_or_start(self, home: ServerHome, deadline: float) -> str:
        last_error: BaseException | None = None
        while time.monotonic() < deadline and not self._is_abandoned.is_set():
            if not is_held_exclusively(home.keeper_lock):
                self._spawn_keeper(home, deadline)
            elif (server := home.running_server()) is not None:
                try:
                    asyncio.run(_log_in(server, home.password()))
                    return f"postgresql://{USER}:{home.password()}@127.0.0.1:{server.port}/{DATABASE}"
                except asyncpg.InvalidAuthorizationSpecificationError as exc:
                    raise DatabaseUnavailable(
                        f"the embedded PostgreSQL in {home.root} refuses the password kept beside it"
                    ) from exc
                except (OSError, asyncpg.PostgresError) as exc:
                    last_error = exc
                    time.sleep(POLL_SECONDS)
            else:
                time.sleep(POLL_SECONDS)
        raise DatabaseUnavailable(
            f"the embedded PostgreSQL in {home.root} did not answer within {START_SECONDS:g} s:\n"
            f"{last_lines(home.server_log)}"
        ) from last_error

    def _spawn_keeper(self, home: ServerHome, deadline: float) -> None:
        """Start a keeper and wait for its word; DatabaseUnavailable when that is an error."""
        package_root = Path(__file__).parents[2]
        search_path = [str(package_root), *filter(None, [os.environ.get("PYTHONPATH")])]
        ours, keepers = os.pipe()
        try:
            with home.keeper_log.open("wb") as output:
                subprocess.run(
                    [sys.executable, "-m", "worker.db.postgres.keeper", str(home.root), str(keepers)]
                    + ([] if self._durable else ["--volatile"]),
                    env=os.environ | {"PYTHONPATH": os.pathsep.join(search_path)},
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(keepers,),
                    # Ctrl-C in a terminal is for the user's program; the keeper notices its end by the lock.
                    start_new_session=True,
                    check=True,
                )
        except subprocess.CalledProcessError as exc:
            os.close(ours)
            raise DatabaseUnavailable(
                f"the embedded PostgreSQL's keeper did not start:\n{last_lines(home.keeper_log)}"
            ) from exc
        finally:
            os.close(keepers)
        with os.fdopen(ours, "rb") as report:
            self._read_report(report, home, deadline)

    def _read_report(self, report: BinaryIO, home: ServerHome, deadline: float) -> None:
        while not select.select([report], [], [], 0.1)[0]:
            if self._is_abandoned.is_set() or time.monotonic() > deadline:
                return
        line = report.readline()
        said = json.loads(line) if line else {"error": last_lines(home.keeper_log) or "its keeper was killed"}
        if "error" in said:
            raise DatabaseUnavailable(
                f"the embedded PostgreSQL did not start: {said['error']}\n"
                "Choose another SCRATCH_DIR or set DATABASE_URL."
            )


async def _log_in(server: RunningServer, password: str) -> None:
    """Prove that the server is ours and works; make the database when it is missing."""

    async def connect(database: str) -> asyncpg.Connection:
        return await asyncpg.connect(
            host="127.0.0.1",
            port=server.port,
            user=USER,
            password=password,
            database=database,
            ssl=False,
            timeout=LOGIN_SECONDS,
        )

    try:
        connection = await connect(DATABASE)
    except asyncpg.InvalidCatalogNameError:
        connection = await connect("postgres")
        await connection.execute(f"CREATE DATABASE {DATABASE}")
    await connection.close()
