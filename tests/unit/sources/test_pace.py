"""Only waiting for next to nothing is held against a server."""

from collections.abc import AsyncIterator, Iterator

import pytest

from worker.sources.pace import LEAST_BYTES_PER_SECOND, paced


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def chunks(clock: Clock, sizes: Iterator[int], *, seconds_each: float) -> AsyncIterator[bytes]:
    for size in sizes:
        clock.now += seconds_each
        yield bytes(size)


async def test_server_that_drips_is_given_up() -> None:
    clock = Clock()
    dripping = paced(chunks(clock, iter([1] * 1000), seconds_each=1), window_seconds=30, clock=clock)
    assert [await anext(dripping) for _ in range(29)] == [bytes(1)] * 29
    with pytest.raises(TimeoutError):
        await anext(dripping)


async def test_slow_server_is_waited_for() -> None:
    clock = Clock()
    slow = chunks(clock, iter([LEAST_BYTES_PER_SECOND] * 1000), seconds_each=1)
    assert sum([len(chunk) async for chunk in paced(slow, window_seconds=30, clock=clock)]) == 1000 * 4096


async def test_slow_reader_is_not_the_servers_fault() -> None:
    clock, received = Clock(), 0
    async for chunk in paced(chunks(clock, iter([1] * 100), seconds_each=0), window_seconds=30, clock=clock):
        clock.now += 60
        received += len(chunk)
    assert received == 100
