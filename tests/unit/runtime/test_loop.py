"""The periodic loop: woken, failing, stopping."""

import asyncio

from worker.runtime.loop import PeriodicLoop


class Turns:
    """Counts turns and lets a test wait for the n-th."""

    def __init__(self, fail: int = 0) -> None:
        self.count = 0
        self.fail = fail
        self._changed = asyncio.Condition()

    async def __call__(self) -> None:
        async with self._changed:
            self.count += 1
            self._changed.notify_all()
        if self.count <= self.fail:
            raise ConnectionError("away")

    async def reach(self, count: int) -> None:
        async with asyncio.timeout(5), self._changed:
            await self._changed.wait_for(lambda: self.count >= count)


async def test_wake_up_means_another_turn_at_once() -> None:
    turns = Turns()
    loop = PeriodicLoop("test", turns, interval_seconds=3600)
    running = asyncio.create_task(loop.run())
    await turns.reach(1)
    loop.wake()
    await turns.reach(2)
    loop.stop()
    await running


async def test_wake_up_during_a_turn_is_not_lost() -> None:
    gate = asyncio.Event()
    seen = 0

    async def slow() -> None:
        nonlocal seen
        seen += 1
        await gate.wait()

    loop = PeriodicLoop("test", slow, interval_seconds=3600)
    running = asyncio.create_task(loop.run())
    await asyncio.sleep(0)
    loop.wake()
    gate.set()
    async with asyncio.timeout(5):
        while seen < 2:
            await asyncio.sleep(0)
    loop.stop()
    await running


async def test_failing_work_is_tried_again() -> None:
    turns = Turns(fail=2)
    loop = PeriodicLoop("test", turns, interval_seconds=0.001)
    running = asyncio.create_task(loop.run())
    await turns.reach(4)
    loop.stop()
    await running


async def test_stop_waits_for_the_turn_in_progress() -> None:
    gate = asyncio.Event()
    finished = []

    async def slow() -> None:
        await gate.wait()
        finished.append(True)

    loop = PeriodicLoop("test", slow, interval_seconds=3600)
    running = asyncio.create_task(loop.run())
    await asyncio.sleep(0)
    loop.stop()
    gate.set()
    await asyncio.wait_for(running, 5)
    assert finished == [True]


async def test_failing_work_is_tried_again_sooner_than_the_interval_and_never_spins() -> None:
    turns = Turns(fail=99)
    loop = PeriodicLoop("test", turns, interval_seconds=3600, longest_pause_seconds=0.01)
    running = asyncio.create_task(loop.run())
    await turns.reach(3)
    before = turns.count
    await asyncio.sleep(0.05)
    assert turns.count - before <= 6
    loop.stop()
    await running
