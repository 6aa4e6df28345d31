"""Goes on at the byte where an upstream connection broke, so that one hiccup does not cost an attempt."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from worker.errors import UpstreamFailure
from worker.sources.ranges import RangeReader

#: waits before going on, in seconds; their number is the number of tries
RESUME_DELAYS = (0.2, 0.5, 1.0)
# Tries are given back only after real progress: one byte per connection must not make an endless read.
_PROGRESS_BYTES = 1 << 20


async def resumed(
    reader: RangeReader, start: int, end: int, *, delays: Sequence[float] = RESUME_DELAYS
) -> AsyncGenerator[bytes, None]:
    """The bytes of `reader.read`, across broken connections."""
    position, tries, last_break = start, 0, start
    while position < end:
        try:
            async with aclosing(reader.read(position, end)) as chunks:
                async for chunk in chunks:
                    position += len(chunk)
                    yield chunk
        except UpstreamFailure:
            if position - last_break >= _PROGRESS_BYTES:
                tries = 0
            if tries >= len(delays):
                raise
            await asyncio.sleep(delays[tries])
            tries, last_break = tries + 1, position
