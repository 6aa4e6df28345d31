"""A job that took its worker down twice runs alone: should it do so again, it hurts nobody else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Solitude:
    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._in_company = 0
        self._suspects = 0
        self._is_alone = False

    @property
    def is_wanted(self) -> bool:
        """A suspect runs or waits for the others to end: nothing new may be taken on."""
        return self._suspects > 0

    @asynccontextmanager
    async def seat(self, *, alone: bool) -> AsyncIterator[None]:
        """Room to run in, with others or alone. Who came with a suspect goes before it."""
        async with self._alone() if alone else self._among_others():
            yield

    @asynccontextmanager
    async def _among_others(self) -> AsyncIterator[None]:
        async with self._changed:
            await self._changed.wait_for(lambda: not self._is_alone)
            self._in_company += 1
        try:
            yield
        finally:
            self._in_company -= 1
            await self._tell()

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        self._suspects += 1
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: not self._is_alone and not self._in_company)
                self._is_alone = True
            try:
                yield
            finally:
                self._is_alone = False
        finally:
            self._suspects -= 1
            await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()
