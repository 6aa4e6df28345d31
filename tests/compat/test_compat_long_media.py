"""A long job that plain Node pg-boss sends: what it sees while the pages run, and in the end."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.compat.conftest import StartNode
from tests.compat.harness import eventually
from tests.long_media import Gate, page, wait_for_event
from tests.processes import Bench
from worker.domain.job import JobId
from worker.domain.paging import PAGE_QUEUE
from worker.media.sample import make_sample


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sample(tmp_path_factory.mktemp("talk") / "talk.mp4", seconds=12, size=(160, 90), speech=False)


@pytest.mark.timeout(90)
async def test_node_sends_a_long_job_and_sees_one_job_with_one_result(
    dsn: str, room: Any, tmp_path: Path, talk: Path, start_node: StartNode
) -> None:
    (tmp_path / "gate").mkdir()
    gate, bench = Gate(tmp_path / "gate"), Bench(dsn, tmp_path, talk.parent, room)
    node = await start_node()
    spec = {"source": str(talk), "mode": "exact", "transcript": False, "pages": {"seconds": 4, "partitions": 1}}
    job_id = JobId(UUID(await node.call("send", "clip", spec, {"priority": 7})))

    async def state(*wanted: str) -> dict[str, Any] | None:
        (job,) = await node.call("findJobs", "clip", {"id": str(job_id)})
        return job if job["state"] in wanted else None

    gate.close(page(job_id, 1, 1))
    with bench.worker(FFMPEG=str(gate.ffmpeg)):
        await wait_for_event(bench, job_id, "page:finished", count=2)
        waiting = await eventually(lambda: state("created"), seconds=20, what="the job waits for its pages")
        assert (waiting["retryCount"], waiting["output"]) == (0, None)
        pages = await node.call("findJobs", PAGE_QUEUE, {})
        assert {(each["data"]["run"], each["priority"]) for each in pages} == {(str(job_id), 7)}
        gate.open()
        done = await eventually(lambda: state("completed", "failed"), seconds=40, what="the job ends")
    assert (done["state"], done["output"]["frames"], done["output"]["pages"]) == ("completed", 360, 4)
    assert done["retryCount"] == 0
    assert {each["state"] for each in await node.call("findJobs", PAGE_QUEUE, {})} == {"completed"}


@pytest.mark.timeout(90)
async def test_cancel_by_node_ends_the_pages_of_a_job_that_waits(
    dsn: str, room: Any, tmp_path: Path, talk: Path, start_node: StartNode
) -> None:
    (tmp_path / "gate").mkdir()
    gate, bench = Gate(tmp_path / "gate"), Bench(dsn, tmp_path, talk.parent, room)
    node = await start_node()
    spec = {"source": str(talk), "mode": "exact", "transcript": False, "pages": {"seconds": 4, "partitions": 1}}
    job_id = JobId(UUID(await node.call("send", "clip", spec)))
    gate.close(page(job_id, 1, 1))
    with bench.worker(FFMPEG=str(gate.ffmpeg), HEARTBEAT_INTERVAL_SEC="0.3"):
        await wait_for_event(bench, job_id, "page:finished", count=2)
        await node.call("cancel", "clip", str(job_id))

        async def are_cancelled() -> bool:
            held = await bench.job(page(job_id, 1, 1).job_id)
            return held.status == "cancelled" and (await bench.job(job_id)).status == "cancelled"

        # within a minute; at once when a worker starts, which looks for such jobs first
        with bench.worker(FFMPEG=str(gate.ffmpeg), QUEUES="nothing"):
            await eventually(are_cancelled, seconds=30, what="the pages are cancelled")
