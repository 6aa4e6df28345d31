"""Blocking work in a thread that can be told to stop, because a thread cannot be cancelled."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

T = TypeVar("T")

# How long a cancelled caller waits for the tidying up before it goes on without it.
STOP_GRACE_SECONDS = 5.0


async def run_stoppable(executor: Executor | None, work: Callable[[threading.Event], T]) -> T:
    """Run `work(stop)`; on cancellation set `stop` and let the work tidy up before the caller goes on."""
    stop = threading.Event()
    future = asyncio.get_running_loop().run_in_executor(executor, work, stop)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        stop.set()
        # nobody is left to hear how it ended
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait([future], timeout=STOP_GRACE_SECONDS)
        raise
