"""Queue policies are unique indexes: what they refuse must not spoil a caller's transaction or the rest of a batch."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import asyncpg

from worker.db.pool import Connection, Pool

T = TypeVar("T")
R = TypeVar("R")


@asynccontextmanager
async def transaction(pool: Pool, connection: Connection | None) -> AsyncIterator[Connection]:
    """One of our own, or a savepoint in the caller's: what fails inside leaves the caller's usable."""
    if connection is None:
        async with pool.acquire() as own, own.transaction():
            yield own
    else:
        async with connection.transaction():
            yield connection


async def fetch_apart(
    pool: Pool, connection: Connection | None, statement: str, *arguments: Any
) -> list[asyncpg.Record]:
    """One statement that a policy may refuse; by itself it needs no transaction, which saves two round trips."""
    if connection is None:
        return await pool.fetch(statement, *arguments)
    async with connection.transaction():
        return await connection.fetch(statement, *arguments)


async def each_that_fits(run: Callable[[Sequence[T]], Awaitable[list[R]]], asked: Sequence[T]) -> list[R]:
    """All at once, or one by one if a policy has no room for some of them; those are left as they were."""
    try:
        return await run(asked)
    except asyncpg.UniqueViolationError:
        if len(asked) == 1:
            return []
    return [result for each in asked for result in await each_that_fits(run, [each])]
