"""A suspect runs alone: after those it came with, before anybody new."""

import asyncio

from worker.runtime.solitude import Solitude


class Guest:
    """Takes a seat, says so, and stays until told to leave."""

    def __init__(self, solitude: Solitude, *, alone: bool) -> None:
        self.is_seated = False
        self._leave = asyncio.Event()
        self.task = asyncio.create_task(self._sit(solitude, alone))

    async def _sit(self, solitude: Solitude, alone: bool) -> None:
        async with solitude.seat(alone=alone):
            self.is_seated = True
            await self._leave.wait()
        self.is_seated = False

    async def leave(self) -> None:
        self._leave.set()
        await self.task


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_others_sit_together() -> None:
    solitude = Solitude()
    guests = [Guest(solitude, alone=False) for _ in range(3)]
    await settled()
    assert [guest.is_seated for guest in guests] == [True] * 3
    assert not solitude.is_wanted
    for guest in guests:
        await guest.leave()


async def test_suspect_waits_for_those_it_came_with_and_keeps_others_out() -> None:
    solitude = Solitude()
    early, suspect = Guest(solitude, alone=False), Guest(solitude, alone=True)
    await settled()
    assert (early.is_seated, suspect.is_seated, solitude.is_wanted) == (True, False, True)
    await early.leave()
    await settled()
    late = Guest(solitude, alone=False)
    await settled()
    assert (suspect.is_seated, late.is_seated) == (True, False)
    await suspect.leave()
    await settled()
    assert (late.is_seated, solitude.is_wanted) == (True, False)
    await late.leave()


async def test_two_suspects_run_one_after_the_other() -> None:
    solitude = Solitude()
    first, second = Guest(solitude, alone=True), Guest(solitude, alone=True)
    await settled()
    assert (first.is_seated, second.is_seated) == (True, False)
    await first.leave()
    await settled()
    assert second.is_seated
    await second.leave()


async def test_suspect_that_is_cancelled_while_it_waits_leaves_no_trace() -> None:
    solitude = Solitude()
    early, suspect = Guest(solitude, alone=False), Guest(solitude, alone=True)
    await settled()
    suspect.task.cancel()
    await settled()
    assert not solitude.is_wanted
    late = Guest(solitude, alone=False)
    await settled()
    assert late.is_seated
    await early.leave()
    await late.leave()
