"""Runs stages at the same time: each comes to its end, whatever becomes of the others."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from worker.errors import JobError


async def side_by_side(runs: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """Raises the error of the first run that has one, a fatal one before others.

    What one has stored helps the next attempt, so the others go on. A lost lease and a cancellation stop all at once.
    """
    if len(runs) == 1:
        await runs[0]()
        return
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_error_of(run)) for run in runs]
    except BaseExceptionGroup as exc:
        raise exc.exceptions[0] from exc
    errors = sorted((error for task in tasks if (error := task.result())), key=lambda error: error.retryable)
    if errors:
        raise errors[0]


async def _error_of(run: Callable[[], Awaitable[None]]) -> JobError | None:
    try:
        await run()
    except JobError as exc:
        return exc
    return None
