"""`jobs` shows and steers jobs, for people and for programs."""

from uuid import uuid4

import pytest

from tests.acceptance.cli.conftest import CommandLine
from tests.conftest import Room
from worker.domain.job import JobId


@pytest.fixture
async def job_id(room: Room) -> JobId:
    spec = {"source": "https://example.com/talk.mp4?signature=secret", "start": 5, "mode": "audio"}
    found = await room.desk.submit("clip", spec)
    assert found is not None
    return found


async def test_listing_can_be_read_by_people_and_programs(call: CommandLine, room: Room, job_id: JobId) -> None:
    await room.desk.submit("clip", {"source": "file:///\x1b[31mred.mp4"})
    plain = await call("jobs", "list")
    wanted = await call("jobs", "list", "--status", "queued", "--limit", "1", "--queue", "clip", "--json")
    none = await call("jobs", "list", "--queue", "other", "--json")
    heading, newest, oldest = plain.out.splitlines()
    assert heading.split() == ["ID", "STATUS", "QUEUE", "STAGE", "TRIES", "AGE", "WHAT"]
    assert newest.endswith(r"\x1b[31mred.mp4")
    assert oldest.startswith(f"{job_id}  queued  clip")
    assert oldest.endswith("talk.mp4 5..end audio")
    assert [(job["status"], job["queue"]) for job in wanted.value] == [("queued", "clip")]
    assert none.value == []


async def test_job_is_shown_whole_by_a_shortened_id(call: CommandLine, job_id: JobId) -> None:
    shown = await call("jobs", "show", str(job_id)[:13])
    value = (await call("jobs", "show", str(job_id), "--json")).value
    assert shown.code == 0
    assert "secret" not in shown.out
    assert "submitted" in shown.out
    assert (value["id"], [event["kind"] for event in value["events"]]) == (str(job_id), ["submitted"])


async def test_cancelled_job_can_be_retried_and_an_unknown_one_is_told(call: CommandLine, job_id: JobId) -> None:
    cancelled = await call("jobs", "cancel", str(job_id), "--json")
    watched = await call("jobs", "watch", str(job_id))
    retried = await call("jobs", "retry", str(job_id), str(uuid4()), "--json")
    assert (cancelled.code, [one["status"] for one in cancelled.value]) == (0, ["cancelled"])
    assert (watched.code, watched.err.splitlines()[-1]) == (1, f"error: job {job_id} was cancelled")
    # One that does not exist is told, and does not keep the other from its retry.
    assert (retried.code, [one["status"] for one in retried.value]) == (1, ["queued", None])


async def test_unknown_and_impossible_ids_are_told_apart(call: CommandLine) -> None:
    unknown = await call("jobs", "show", str(uuid4()), "--json")
    impossible = await call("jobs", "show", "tuesday", "--json")
    assert (unknown.code, unknown.value["error"]["code"]) == (1, "JOB_MISSING")
    assert (impossible.code, impossible.value["error"]["code"]) == (2, "USAGE")
    assert "'tuesday' is not a job id" in impossible.err
