"""Looking at jobs."""

from uuid import uuid4

import pytest

from worker.errors import ConfigError, JobMissing
from worker.queue import PgBoss


async def test_job_is_read_whole(queue: PgBoss) -> None:
    job_id = await queue.send("clip", {"x": 1}, priority=3, singleton_key="k", group={"id": "g"})
    assert job_id is not None
    (delivery,) = await queue.fetch("clip")
    await queue.complete("clip", [delivery.fence], ["ok"])
    job = await queue.get_job_by_id("clip", job_id)
    assert job is not None
    assert (job.id, job.name, job.state, job.data, job.output) == (
        job_id,
        "clip",
        "completed",
        {"x": 1},
        {"value": "ok"},
    )
    assert (job.priority, job.singleton_key, job.group_id, job.policy) == (3, "k", "g", "standard")
    assert job.created_on <= job.started_on <= job.completed_on  # type: ignore[operator]
    assert await queue.get_job_by_id("clip", uuid4()) is None
    assert await queue.get_job_by_id("nope", job_id) is None


async def test_jobs_are_found_by_what_they_are(queue: PgBoss) -> None:
    for n in range(4):
        await queue.send("clip", {"n": n, "odd": bool(n % 2)}, singleton_key=f"k{n // 2}")
    await queue.fetch("clip")
    numbers = [job.data["n"] for job in await queue.find_jobs("clip")]
    assert numbers == [0, 1, 2, 3]
    assert [job.data["n"] for job in await queue.find_jobs("clip", key="k0")] == [0, 1]
    assert [job.data["n"] for job in await queue.find_jobs("clip", data={"odd": True})] == [1, 3]
    assert [job.data["n"] for job in await queue.find_jobs("clip", queued=True)] == [1, 2, 3]
    assert [job.data["n"] for job in await queue.find_jobs("clip", queued=True, key="k0", data={"odd": True})] == [1]


async def test_pages_follow_one_another(queue: PgBoss) -> None:
    # In one statement: created_on alone does not tell them apart.
    await queue.insert("clip", [{} for _ in range(7)])
    whole = [job.id for job in await queue.find_jobs("clip")]
    pages, after = [], None
    while page := await queue.find_jobs("clip", limit=3, after=after):
        after = page[-1].id
        pages.append([job.id for job in page])
    assert [len(page) for page in pages] == [3, 3, 1]
    assert sum(pages, []) == whole  # noqa: RUF017
    with pytest.raises(JobMissing, match="to go on after"):
        await queue.find_jobs("clip", after=uuid4())
    with pytest.raises(ConfigError, match="limit"):
        await queue.find_jobs("clip", limit=0)
