"""Runs two operations statement by statement on two connections, in every order that their locks allow."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

#: how long a statement may take before we ask whether it waits for the other side
GLANCE_SECONDS = 0.002
STUCK_SECONDS = 20.0
Schedule = tuple[int, ...]


class Side:
    """One connection that stops before each statement until it is told to go on; to the store it looks like a pool."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._connection = connection
        self.pid = connection.get_server_pid()
        self._arrived = asyncio.Event()
        self._turn = asyncio.Semaphore(0)
        self._depth = 0
        self._work: asyncio.Task[Any] | None = None

    async def begin(self, call: Awaitable[Any]) -> None:
        """Start an operation; it stands before its first statement then."""

        async def work() -> Any:
            return await call

        self._arrived.clear()
        self._work = asyncio.create_task(work())
        self._work.add_done_callback(lambda _: self._arrived.set())
        await self._arrived.wait()

    @property
    def is_over(self) -> bool:
        return self._work is not None and self._work.done()

    def outcome(self) -> Any:
        """What the operation returned, or the error it ended with."""
        assert self._work is not None
        return self._work.exception() or self._work.result()

    def go(self) -> None:
        self._arrived.clear()
        self._turn.release()

    async def arrives(self, seconds: float) -> bool:
        """Did it come to its next statement, or to its end, in this time?"""
        try:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        except TimeoutError:
            return False
        return True

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator["Side"]:
        yield self

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        # Savepoints lock nothing and show nothing: no steps of their own.
        is_outer = self._depth == 0
        transaction = self._connection.transaction()
        if is_outer:
            await self._stop()
        await transaction.start()
        self._depth += 1
        try:
            yield
        except BaseException:
            self._depth -= 1
            if is_outer:
                await self._stop()
            await transaction.rollback()
            raise
        self._depth -= 1
        if is_outer:
            await self._stop()
        await transaction.commit()

    async def fetch(self, *call: Any) -> Any:
        return await self._statement(self._connection.fetch, call)

    async def fetchrow(self, *call: Any) -> Any:
        return await self._statement(self._connection.fetchrow, call)

    async def fetchval(self, *call: Any) -> Any:
        return await self._statement(self._connection.fetchval, call)

    async def execute(self, *call: Any) -> Any:
        return await self._statement(self._connection.execute, call)

    async def _statement(self, run: Callable[..., Awaitable[Any]], call: tuple[Any, ...]) -> Any:
        await self._stop()
        if self._depth:
            return await run(*call)
        # By itself a statement commits with its end; taken apart, the other side can come in between.
        transaction = self._connection.transaction()
        await transaction.start()
        try:
            found = await run(*call)
        except BaseException:
            await transaction.rollback()
            raise
        await self._stop()
        await transaction.commit()
        return found

    async def _stop(self) -> None:
        self._arrived.set()
        await self._turn.acquire()


class Race:
    """Plays one schedule: at each point one of the sides that can move makes its next step."""

    def __init__(self, sides: tuple[Side, Side], watcher: "asyncpg.Connection[asyncpg.Record]") -> None:
        self.sides = sides
        self._watcher = watcher

    async def run(self, calls: tuple[Awaitable[Any], Awaitable[Any]], prefix: Schedule) -> list[tuple[int, list[int]]]:
        """Each choice made, with what could have been chosen; beyond `prefix` the first side goes first."""
        for side, call in zip(self.sides, calls, strict=True):
            await side.begin(call)
        waiting: set[int] = set()
        path: list[tuple[int, list[int]]] = []
        while not all(side.is_over for side in self.sides):
            movable = [at for at, side in enumerate(self.sides) if not side.is_over and at not in waiting]
            chosen = prefix[len(path)] if len(path) < len(prefix) else movable[0]
            assert chosen in movable, "the same steps did not lead to the same locks"
            path.append((chosen, movable))
            self.sides[chosen].go()
            # First whoever moved: only when its step is made is it known whether the other still waits for it.
            waiting = {at for at in (chosen, *(waiting - {chosen})) if await self._is_stuck(at)}
            if len(waiting) == 2:
                waiting = set()
                for side in self.sides:  # a deadlock: the server ends one of them
                    assert await side.arrives(STUCK_SECONDS), "both sides wait for each other, for ever"
        return path

    async def _is_stuck(self, at: int) -> bool:
        """Waits until the side has made its step, or waits for a lock of the other side."""
        side, other = self.sides[at], self.sides[1 - at]
        async with asyncio.timeout(STUCK_SECONDS):
            while not await side.arrives(GLANCE_SECONDS):
                if await self._watcher.fetchval("SELECT $1 = ANY (pg_blocking_pids($2))", other.pid, side.pid):
                    return True
        return False


def following(path: list[tuple[int, list[int]]]) -> Schedule | None:
    """The schedule to play next, so that all are played once: the last choice that could have gone the other way."""
    for at in reversed(range(len(path))):
        chosen, movable = path[at]
        if chosen < movable[-1]:
            return (*(earlier for earlier, _ in path[:at]), movable[-1])
    return None
