"""One long job whose workers are killed, whose messages come twice and out of turn, and whose connections are cut."""

import asyncio
import io
import json
import time
from typing import Any
from uuid import UUID, uuid4

import av
import pytest

from tests.chaos.lanes import Lane, Storm
from tests.chaos.page_lanes import (
    TWICE_AND_SLOWLY,
    cut_while_settling,
    kill_one_mercifully,
    send_out_of_turn,
    takes_pages,
)
from tests.chaos.rig import Pace, Rig, open_rig
from tests.chaos.workload import Mix
from tests.media_facts import burnt_in_numbers
from worker.media.sample import make_sample

SECONDS, FPS = 60, 25
PAGE_SECONDS, PARTITIONS = 3, 3
PICTURE_PAGES = SECONDS // PAGE_SECONDS
#: how often each must have struck for the run to prove something
LEAST_STRIKES = {"sigkill": 2, "out of turn": 5, "cut": 3}
NONE_LEFT = "SELECT count(*) FROM worker.jobs WHERE status IN ('queued', 'processing')"


@pytest.mark.timeout(240)
@pytest.mark.xdist_group("chaos")
async def test_long_job_is_put_together_once_and_as_on_a_quiet_day_whatever_happens_to_its_pages() -> None:
    pace = Pace(max_concurrency=2, lease_seconds=3.0)
    async with open_rig(seed="pages", workers=3, pace=pace, mix=Mix(media=0)) as rig:
        rig.traits.append(takes_pages(rig))
        make_sample(rig.directory / "media" / "talk.mp4", seconds=SECONDS, fps=FPS, size=(160, 90), speech=False)
        await _execute(rig, "UPDATE pgboss.queue SET retry_limit = 100, retry_delay = 0, retry_backoff = false")
        await rig.fleet.start()
        quiet = await _done(rig, await _submit(rig), seconds=60)

        await _execute(rig, TWICE_AND_SLOWLY)
        storm = Storm(
            rig,
            [
                Lane("sigkill", 3, kill_one_mercifully),
                Lane("out of turn", 0.4, send_out_of_turn),
                Lane("cut", 0.3, cut_while_settling),
            ],
        )
        job_id = await _submit(rig)
        storm.begin()
        stormy = await _done(rig, job_id, seconds=120)
        await storm.end()
        rig.traits.append(takes_pages(rig))
        struck = {lane.name: lane.count for lane in storm.lanes}
        print(f"{struck}")
        assert {name: least for name, least in LEAST_STRIKES.items() if struck[name] < least} == {}, struck
        assert await rig.wait_until_ended(seconds=60), "messages are left"
        await _require_each_page_once(rig, job_id)
        _require_same(rig, quiet, stormy)


async def _require_each_page_once(rig: Rig, job_id: UUID) -> None:
    wanted = {(0, 0)} | {
        (1 + chain, offset)
        for chain in range(PARTITIONS)
        for offset in range(PICTURE_PAGES * chain // PARTITIONS, PICTURE_PAGES * (chain + 1) // PARTITIONS)
    }
    rows = await _fetch(rig, "SELECT partition_id, page_offset FROM worker.pages WHERE run_id = $1", job_id)
    assert sorted(tuple(row) for row in rows) == sorted(wanted)
    events = await _fetch(rig, "SELECT kind, data FROM worker.job_events WHERE job_id = $1 ORDER BY id", job_id)
    told = [json.loads(data) for kind, data in events if kind == "page:finished"]
    # in turn, and each once: no chain ever went back
    for partition in range(1 + PARTITIONS):
        offsets = [each["offset"] for each in told if each["partition"] == partition]
        assert offsets == sorted(offset for chain, offset in wanted if chain == partition)
    kinds = [kind for kind, _ in events]
    assert (kinds.count("split"), kinds.count("done"), kinds.count("failed")) == (1, 1, 0)
    finalized = [kind for kind, data in events if kind == "stage:finished" and json.loads(data)["stage"] == "finalize"]
    assert len(finalized) == 1, "put together once"
    ours = await _fetch(rig, "SELECT status, error_code, count(*) FROM worker.jobs GROUP BY 1, 2")
    assert {(row["status"], row["error_code"]) for row in ours} == {("done", None)}


def _require_same(rig: Rig, quiet: dict[str, Any], stormy: dict[str, Any]) -> None:
    def facts(result: dict[str, Any]) -> dict[str, Any]:
        return {name: told for name, told in result.items() if name not in {"artifacts", "timings_ms", "lease_token"}}

    assert facts(stormy) == facts(quiet)
    clips = [_content(rig, result, "clip") for result in (quiet, stormy)]
    assert burnt_in_numbers(clips[1]) == burnt_in_numbers(clips[0]) == list(range(SECONDS * FPS))
    assert _samples(clips[1]) == _samples(clips[0])
    assert _times(clips[1]) == _times(clips[0])
    assert [told["kind"] for told in stormy["artifacts"]] == [told["kind"] for told in quiet["artifacts"]]


def _content(rig: Rig, result: dict[str, Any], kind: str) -> bytes:
    (key,) = [told["key"] for told in result["artifacts"] if told["kind"] == kind]
    return rig.s3.client().get_object(Bucket=rig.s3.bucket, Key=f"out/{key}")["Body"].read()


def _samples(clip: bytes) -> bytes:
    with av.open(io.BytesIO(clip)) as container:
        return b"".join(frame.to_ndarray().tobytes() for frame in container.decode(audio=0))


def _times(clip: bytes) -> list[int]:
    with av.open(io.BytesIO(clip)) as container:
        return [frame.pts or 0 for frame in container.decode(video=0)]


async def _submit(rig: Rig) -> UUID:
    job_id = uuid4()
    spec = {
        "source": (rig.directory / "media" / "talk.mp4").as_uri(),
        "mode": "exact",
        "transcript": False,
        "pages": {"seconds": PAGE_SECONDS, "partitions": PARTITIONS},
    }
    await _fetch(
        rig, "SELECT worker.submit('clip', $1::jsonb, $2::jsonb)", json.dumps(spec), json.dumps({"id": str(job_id)})
    )
    return job_id


async def _done(rig: Rig, job_id: UUID, *, seconds: float) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        (job,) = await _fetch(rig, "SELECT status, result, error_message FROM worker.jobs WHERE id = $1", job_id)
        assert job["status"] not in {"failed", "cancelled"}, job["error_message"]
        if job["status"] == "done":
            result: dict[str, Any] = json.loads(job["result"])
            return result
        await asyncio.sleep(0.2)
    raise AssertionError(f"not done within {seconds} s: {await rig.counts()}")


async def _fetch(rig: Rig, statement: str, *values: object) -> list[Any]:
    connection = await rig.postgres.connect()
    try:
        found: list[Any] = await connection.fetch(statement, *values)
        return found
    finally:
        await connection.close()


async def _execute(rig: Rig, statements: str) -> None:
    connection = await rig.postgres.connect()
    try:
        await connection.execute(statements)
    finally:
        await connection.close()
