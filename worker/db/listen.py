"""Hears NOTIFY on a connection of its own, and finds its way back after every loss."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

import asyncpg

from worker.db.pool import open_connection
from worker.errors import DatabaseUnavailable

# The standard library's: structlog would make importing the queue client several times slower.
log = logging.getLogger(__name__)

#: a half-open connection looks healthy until something is asked of it
CHECK_SECONDS = 10.0
FIRST_RETRY_SECONDS = 0.2
LONGEST_RETRY_SECONDS = 10.0


class Listener:
    """Calls `channels[name](payload)` for each notification and `on_ready()` each time it listens (again)."""

    def __init__(
        self,
        dsn: str,
        *,
        name: str,
        channels: Mapping[str, Callable[[str], None]],
        on_ready: Callable[[], None],
    ) -> None:
        self._dsn = dsn
        self._name = name
        self._channels = channels
        self._on_ready = on_ready

    async def run(self) -> None:
        """Until cancelled. Never raises: notifications are a hint, polling is the promise."""
        delay = FIRST_RETRY_SECONDS
        while True:
            try:
                await self._listen()
                delay = FIRST_RETRY_SECONDS
            except (
                DatabaseUnavailable,
                asyncpg.PostgresError,
                asyncpg.InterfaceError,
                OSError,
                TimeoutError,
            ) as exc:
                log.warning("listener_lost: %s; retrying in %.1f s", str(exc) or type(exc).__name__, delay)
                await asyncio.sleep(delay)
                delay = min(delay * 2, LONGEST_RETRY_SECONDS)

    async def _listen(self) -> None:
        connection = await open_connection(self._dsn, name=self._name)
        try:
            closed = asyncio.Event()
            connection.add_termination_listener(lambda _: closed.set())
            for channel in self._channels:
                await connection.add_listener(channel, self._hear)
            # Listen first, look second: what was sent in between is found by the look.
            self._on_ready()
            while not closed.is_set():
                try:
                    await asyncio.wait_for(closed.wait(), CHECK_SECONDS)
                except TimeoutError:
                    await connection.execute("SELECT 1", timeout=CHECK_SECONDS)
        finally:
            connection.terminate()

    def _hear(self, _connection: Any, _pid: int, channel: str, payload: object) -> None:
        self._channels[channel](str(payload))
