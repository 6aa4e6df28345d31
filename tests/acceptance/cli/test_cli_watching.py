"""Jobs are followed to their end, and it is told when nobody works on them."""

import asyncio
import io

from rich.console import Console

from tests.conftest import Room
from worker.cli.watch import Lines, follow
from worker.domain.job import JobStatus


async def test_job_that_nobody_takes_is_remarked_upon_once_and_followed_on(room: Room) -> None:
    job_id = await room.desk.submit("clip", {"source": "https://example.com/a.mp4"})
    assert job_id is not None
    said = io.StringIO()
    view = Lines(Console(file=said, width=200), {job_id: "a talk"})
    following = asyncio.create_task(follow(room.desk, [job_id], view, patience_seconds=0))
    async with asyncio.timeout(10):
        while "is one running" not in said.getvalue():
            await asyncio.sleep(0.02)
        await room.desk.cancel(job_id)
        [ended] = await following
    assert ended.status is JobStatus.CANCELLED
    assert [line.split(":")[0] for line in said.getvalue().splitlines()] == [
        "a talk",
        "no worker has taken it yet; is one running for this database and queue?",
        "a talk",
    ]
