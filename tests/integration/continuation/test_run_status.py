"""worker.run_status: what an operator sees of long jobs."""

from typing import Any
from uuid import UUID

import pytest

from tests.integration.continuation.long_jobs import CHAINS, ME, LongJobs, pictures
from tests.jobs import one_attempt
from worker.domain.paging import PAGE_QUEUE


async def status(long: LongJobs, job_id: UUID) -> dict[str, Any]:
    row = await long.room.pool.fetchrow("SELECT * FROM worker.run_status WHERE run_id = $1", job_id)
    assert row is not None
    return dict(row)


async def is_stuck(long: LongJobs, job_id: UUID) -> bool:
    return bool((await status(long, job_id))["is_stuck"])


async def test_run_that_moves(long: LongJobs) -> None:
    job_id = await long.start(*CHAINS)
    await long.deliver(await long.page_at(0, 0))
    expected = {
        "queue": "clip",
        "status": "queued",
        "error_code": None,
        "finished_at": None,
        "pages": 4,
        "finished_pages": 1,
        "percent": 25.0,
        "partitions": 2,
        "open_partitions": 2,
        "running_pages": 1,
        "waiting_pages": 1,
        "failed_pages": 0,
        "is_stuck": False,
    }
    seen = await status(long, job_id)
    assert {name: seen[name] for name in expected} == expected
    assert seen["last_page_at"] > seen["created_at"]


async def test_run_whose_page_vanished_is_stuck_until_its_job_looks(long: LongJobs) -> None:
    job_id = await long.start(*CHAINS)
    assert not await is_stuck(long, job_id)
    await long.room.pool.execute("DELETE FROM worker.jobs WHERE run_id = $1", job_id)
    assert await is_stuck(long, job_id)
    await long.look_again(job_id)
    assert not await is_stuck(long, job_id)


@pytest.mark.parametrize(
    ("fate", "expected"),
    [
        ("UPDATE pgboss.job SET start_after = now() - interval '6 minutes' WHERE id = $1", True),
        ("UPDATE pgboss.job SET start_after = now() - interval '4 minutes' WHERE id = $1", False),
        ("DELETE FROM pgboss.job WHERE id = $1", True),
        ("UPDATE pgboss.job SET state = 'completed' WHERE id = $1", True),
    ],
    ids=["overdue", "nearly", "deleted", "settled by somebody"],
)
async def test_run_that_nobody_looks_after_is_stuck(long: LongJobs, fate: str, expected: bool) -> None:
    job_id = await long.start(*CHAINS)
    await long.room.pool.execute(fate, job_id)
    assert await is_stuck(long, job_id) is expected


async def test_run_that_is_looked_at_is_not_stuck(long: LongJobs) -> None:
    job_id = await long.start(*CHAINS)
    await long.parent(job_id)
    assert not await is_stuck(long, job_id)


@pytest.mark.parametrize("end", ["done", "failed", "cancelled"])
async def test_run_that_is_over_is_not_stuck(long: LongJobs, end: str) -> None:
    job_id = await long.start(pictures(0, 2))
    if end == "done":
        await long.finish_all()
        await long.look_again(job_id)
    elif end == "failed":
        await long.fail_for_good(await one_attempt(long.room, ME, PAGE_QUEUE))
        await long.look_again(job_id)
    else:
        await long.room.desk.cancel(job_id)
    seen = await status(long, job_id)
    assert (seen["status"], seen["is_stuck"]) == (end, False)
    assert seen["percent"] == (100.0 if end == "done" else 0.0)


async def test_run_that_is_split_anew_counts_its_new_pages_only(long: LongJobs) -> None:
    job_id = await long.start(*CHAINS)
    await long.deliver(await long.page_at(0, 0))
    await long.runs.drop(job_id)
    seen = await status(long, job_id)
    assert (seen["pages"], seen["finished_pages"], seen["percent"], seen["is_stuck"]) == (0, 0, 0.0, False)


async def test_node_may_still_alter_its_table(long: LongJobs) -> None:
    """A view of it would be in the way of pg-boss's own migrations."""
    await long.room.pool.execute("ALTER TABLE pgboss.job ALTER COLUMN start_after TYPE timestamptz(3)")
    await long.start(*CHAINS)
