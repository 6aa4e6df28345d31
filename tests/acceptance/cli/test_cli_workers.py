"""`workers` shows who lives and what they are at, for people and for programs."""

from uuid import uuid4

import pytest

from tests.acceptance.cli.conftest import CommandLine
from tests.conftest import Room
from tests.jobs import one_attempt
from worker.domain.job import JobId, WorkerId
from worker.jobs.workers import Place, QueueTotal, WorkerRows


@pytest.fixture
def rows(room: Room) -> WorkerRows:
    return WorkerRows(room.pool, room.queue)


async def begin(rows: WorkerRows, host: str) -> WorkerId:
    return await rows.start("1.2.3", expected_seconds=10, place=Place(host, 17, 2))


async def test_listing_can_be_read_by_people_and_programs(call: CommandLine, room: Room, rows: WorkerRows) -> None:
    working, stopped = await begin(rows, "host-a"), await begin(rows, "host-b")
    await rows.stop(stopped)
    await rows.heartbeat(working, successes=5, errors=1, last_error="CLIP_FAILED: \x1b[31mred")
    await rows.progress(working, {"clip": QueueTotal(4, JobId(uuid4())), "clip.page": QueueTotal(2)})
    await room.desk.submit("clip", {"source": "https://example.com/talk.mp4?signature=secret"})
    job = await one_attempt(room, working)
    plain, all_of_them = await call("workers"), await call("workers", "--all", "--json")
    heading, worker, gap, job_heading, held = plain.out.splitlines()
    assert heading.split()[:8] == ["ID", "STATE", "HEARD", "JOBS", "DONE", "ERRORS", "WHERE", "UP"]
    assert worker.split()[:2] == [str(working), "alive"]
    assert "1/2   5     1       host-a:17" in worker
    assert worker.endswith(r"1.2.3    clip 4, clip.page 2  CLIP_FAILED: \x1b[31mred")
    assert gap == ""
    assert job_heading.split()[:3] == ["WORKER", "JOB", "QUEUE"]
    assert held.startswith(f"{working}  {job.job_id}  clip   starting 0%  1")
    assert held.endswith("talk.mp4")
    states = {each["id"]: (each["state"], len(each["jobs"])) for each in all_of_them.value}
    assert states == {str(working): ("alive", 1), str(stopped): ("stopped", 0)}
    (one,) = [each for each in all_of_them.value if each["state"] == "alive"]
    assert (one["successes"], one["errors"], one["queues"][1]["processed"]) == (5, 1, 2)


async def test_nobody_there_is_said_and_an_empty_list(call: CommandLine, rows: WorkerRows) -> None:
    await rows.stop(await begin(rows, "host-a"))
    plain, value = await call("workers"), await call("workers", "--json")
    assert (plain.code, plain.out) == (0, "")
    assert "no workers run" in plain.err
    assert value.value == []


async def test_worker_without_a_row_is_shown_with_what_it_holds(call: CommandLine, room: Room) -> None:
    await room.desk.submit("clip", {"source": "https://example.com/talk.mp4"})
    unknown = WorkerId(uuid4())
    await one_attempt(room, unknown)
    plain = await call("workers")
    assert plain.out.splitlines()[1].split()[:4] == [str(unknown), "unregistered", "-", "1/?"]
