"""Goes on at the byte where an upstream connection broke, so that one hiccup does not cost an attempt."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from worker.errors import UpstreamFailure
from worker.sources.ranges import RangeReader

#: waits before going on, in seconds; their number is the number of tries
RESUME_DELAYS = (0.2, 0.5, 1.0)
# Tries are given back only after real progress: one byte per connection must not make an endless read.
_PROGRESS_BYTES = 1 << 20
# Whoever asks us to wait longer than this is waited for by the job's next attempt, not by a child.
_PATIENCE_SECONDS = 20.0


class OriginBusyError(Exception):
    """The cause of an UpstreamFailure that is a plea for less: HTTP 429 or 503, or what S3 calls SlowDown."""

    def __init__(self, wait_seconds: float = 0.0) -> None:
        super().__init__(f"asked to wait {wait_seconds:g} s")
        self.wait_seconds = wait_seconds


async def resumed(
    reader: RangeReader,
    start: int,
    end: int,
    *,
    delays: Sequence[float] = RESUME_DELAYS,
    on_busy: Callable[[], None] = lambda: None,
) -> AsyncGenerator[bytes, None]:
    """The bytes of `reader.read`, across broken connections and pleas to wait."""
    position, tries, last_break = start, 0, start
    while position < end:
        try:
            async with aclosing(reader.read(position, end)) as chunks:
                async for chunk in chunks:
                    position += len(chunk)
                    yield chunk
        except UpstreamFailure as exc:
            asked_seconds = 0.0
            if isinstance(exc.__cause__, OriginBusyError):
                asked_seconds = exc.__cause__.wait_seconds
                on_busy()
            if position - last_break >= _PROGRESS_BYTES:
                tries = 0
            if tries >= len(delays) or asked_seconds > _PATIENCE_SECONDS:
                raise
            await asyncio.sleep(max(delays[tries], asked_seconds))
            tries, last_break = tries + 1, position
