"""Tells a slow server from one that only keeps a connection busy, a byte now and then."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable

#: slower than any modem that ever carried media
LEAST_BYTES_PER_SECOND = 4096


async def paced(
    chunks: AsyncIterator[bytes], *, window_seconds: float, clock: Callable[[], float] = time.monotonic
) -> AsyncGenerator[bytes, None]:
    """The same chunks; TimeoutError when `window_seconds` of waiting for them brought next to nothing.

    Only waiting counts: a reader that takes its time is not the server's fault.
    """
    waited, received = 0.0, 0
    while True:
        asked_at = clock()
        chunk = await anext(chunks, None)
        if chunk is None:
            return
        waited += clock() - asked_at
        received += len(chunk)
        if waited >= window_seconds:
            if received < waited * LEAST_BYTES_PER_SECOND:
                raise TimeoutError
            waited, received = 0.0, 0
        yield chunk
