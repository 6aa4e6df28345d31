"""Stages at the same time: each comes to its end, and the worst error is told."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from worker.errors import AsrUnavailable, InvalidRequest, JobError, LeaseLost, StorageUploadFailed
from worker.runtime.side_by_side import side_by_side

Run = Callable[[], Awaitable[None]]


class Stages:
    def __init__(self) -> None:
        self.ended: list[str] = []
        self.cancelled: list[str] = []

    def run(self, name: str, seconds: float = 0.0, error: Exception | None = None) -> Run:
        async def run() -> None:
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                self.cancelled.append(name)
                raise
            self.ended.append(name)
            if error is not None:
                raise error

        return run


async def test_they_run_at_the_same_time() -> None:
    barrier = asyncio.Barrier(2)

    async def run() -> None:
        await barrier.wait()

    async with asyncio.timeout(5):
        await side_by_side([run, run])


@pytest.mark.parametrize("first", [True, False])
async def test_the_other_one_ends_before_the_error_is_told(first: bool) -> None:
    stages = Stages()
    runs = [stages.run("upload", 0.05), stages.run("asr", 0.0, AsrUnavailable("gone"))]
    with pytest.raises(AsrUnavailable):
        await side_by_side(runs if first else runs[::-1])
    assert sorted(stages.ended) == ["asr", "upload"]


async def test_a_fatal_error_is_told_before_one_that_may_pass() -> None:
    stages = Stages()
    with pytest.raises(InvalidRequest):
        await side_by_side(
            [stages.run("a", 0, StorageUploadFailed("later")), stages.run("b", 0.01, InvalidRequest("never"))]
        )


@pytest.mark.parametrize("error", [LeaseLost("gone"), KeyError("bug")])
async def test_what_is_no_error_of_the_job_stops_all_at_once(error: Exception) -> None:
    stages = Stages()
    with pytest.raises(type(error)):
        await side_by_side([stages.run("a", 60), stages.run("b", 0, error)])
    assert stages.cancelled == ["a"]


async def test_cancelling_stops_all() -> None:
    stages = Stages()
    task = asyncio.ensure_future(side_by_side([stages.run("a", 60), stages.run("b", 60)]))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(stages.cancelled) == ["a", "b"]


async def test_one_alone_is_just_run() -> None:
    with pytest.raises(JobError, match="alone"):
        await side_by_side([Stages().run("a", 0, StorageUploadFailed("alone"))])
