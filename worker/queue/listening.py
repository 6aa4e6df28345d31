"""Hears that queues with `notify` have new jobs, as a stream of queue names."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress

from worker.db.listen import Listener
from worker.queue.core import Core


class Wakeups:
    """Names of queues worth a look, each once however often it was announced meanwhile."""

    def __init__(self, queues: Collection[str]) -> None:
        self._queues = dict.fromkeys(queues)
        self._waiting: dict[str, None] = {}
        self._is_any = asyncio.Event()

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        await self._is_any.wait()
        name = next(iter(self._waiting))
        del self._waiting[name]
        if not self._waiting:
            self._is_any.clear()
        return name

    def announce(self, queue: str) -> None:
        if queue in self._queues:
            self._waiting[queue] = None
            self._is_any.set()

    def announce_all(self) -> None:
        for queue in self._queues:
            self.announce(queue)


class Listening(Core):
    @asynccontextmanager
    async def listen(
        self, dsn: str, queues: Collection[str], *, name: str = "clipboss-listen"
    ) -> AsyncIterator[Wakeups]:
        """A stream of queue names to fetch from, over a connection of its own to the same database.

            async with boss.listen(dsn, ["mail"]) as wakeups:
                async for queue in wakeups:
                    jobs = await boss.fetch(queue, 10)

        Every queue comes up once at the start and after each lost connection. It is a hint: jobs that become due
        later, retries and queues without `notify` are announced by nobody, so poll as well, if seldom.
        """
        wakeups = Wakeups(queues)
        listener = self.listener(dsn, on_job=wakeups.announce, on_ready=wakeups.announce_all, name=name)
        listening = asyncio.create_task(listener.run())
        try:
            yield wakeups
        finally:
            listening.cancel()
            with suppress(asyncio.CancelledError):
                await listening

    def listener(
        self, dsn: str, *, on_job: Callable[[str], None], on_ready: Callable[[], None], name: str = "clipboss-listen"
    ) -> Listener:
        """The same with callbacks: `on_job(queue)`, and `on_ready()` whenever it listens (again). Call its `run()`."""
        return Listener(dsn, name=name, channels={self.channel: on_job}, on_ready=on_ready)
