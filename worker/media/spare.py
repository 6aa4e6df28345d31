"""A child that was started before it is needed: what it has to load first, no job waits for."""

import asyncio
from asyncio.subprocess import Process
from collections.abc import Sequence
from contextlib import suppress

from worker.errors import RetryableError
from worker.media.process import ChildResult, Limits, end_child, finish_child, start_child


class SpareChild:
    """Keeps one child waiting. It gets its order on its input, works on that alone, and ends."""

    def __init__(self, argv: Sequence[str], *, limits: Limits) -> None:
        self._argv = argv
        self._limits = limits
        self._spare: asyncio.Task[Process] | None = None

    async def run(self, order: str) -> ChildResult:
        """The next spare is started when this run is over, so that they do not get in each other's way."""
        try:
            if (spare := self._take()) is not None:
                # one that was killed while it waited is not the order's fault
                with suppress(ConnectionError):
                    return await finish_child(spare, limits=self._limits, order=order)
            return await finish_child(await self._start(), limits=self._limits, order=order)
        finally:
            self.prepare()

    def prepare(self) -> None:
        if self._spare is None:
            self._spare = asyncio.create_task(self._start())

    async def close(self) -> None:
        if self._spare is not None:
            spare, self._spare = self._spare, None
            with suppress(RetryableError):
                await end_child(await spare, grace_seconds=0.0)

    def _take(self) -> Process | None:
        """None while it starts."""
        if self._spare is None or not self._spare.done():
            return None
        spare, self._spare = self._spare, None
        return spare.result() if spare.exception() is None else None

    async def _start(self) -> Process:
        return await start_child(self._argv, limits=self._limits, takes_order=True)
