"""What goes wrong on the way of a long job: cancels, crashes, pages that fail, and pages that get lost."""

import asyncio
import time
from collections.abc import AsyncIterator
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.jobs import both_tables, event_kinds
from tests.long_media import (
    Gate,
    decode,
    events,
    files_of,
    finished,
    page,
    pages_queue,
    result_of,
    statuses,
    stored_pages,
    wait_for_event,
)
from tests.processes import Bench, all_gone, children_of, eventually
from tests.servers import RangeServer, range_server
from worker.domain.job import JobStatus
from worker.media.sample import make_sample

DONE, FAILED, CANCELLED = JobStatus.DONE, JobStatus.FAILED, JobStatus.CANCELLED
SECONDS, FPS = 40, 25
#: the sound, and five pages of pictures
PAGES = 6
SHORT_LEASE = {"LEASE_TIMEOUT_SEC": "2", "HEARTBEAT_INTERVAL_SEC": "0.5"}


@pytest.fixture(scope="module")
def long_media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    make_sample(folder / "talk.mp4", seconds=SECONDS, fps=FPS, size=(160, 90))
    return folder


@pytest.fixture
async def long_origin(long_media: Path) -> AsyncIterator[RangeServer]:
    # without a tag, nothing that one page has read serves another
    async with range_server(long_media, etag=None) as server:
        yield server


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    (tmp_path / "gate").mkdir()
    return Gate(tmp_path / "gate")


@pytest.fixture
def long_bench(bench: Bench, long_media: Path, gate: Gate) -> Bench:
    bench.env |= {"LOCAL_SOURCE_ROOTS": f"{long_media},{bench.scratch}", "FFMPEG": str(gate.ffmpeg)}
    bench.env |= {"MAX_CONCURRENCY": "3"}
    return bench


async def submit(bench: Bench, source: Path | str, *, partitions: int, **spec: Any) -> UUID:
    told = source.as_uri() if isinstance(source, Path) else source
    wish = {"pages": {"seconds": 8, "partitions": partitions}, "mode": "exact", "transcript": False}
    return await bench.submit(source=told, **{**wish, **spec})


def artifacts(bench: Bench) -> Path:
    return bench.scratch / "artifacts"


def require_empty_scratch(bench: Bench) -> None:
    assert not list((bench.scratch / "jobs").iterdir())


async def require_whole_clip(bench: Bench, job_id: UUID) -> dict[str, Any]:
    result = await result_of(bench, job_id)
    assert decode(files_of(result)["clip.mp4"]).numbers == list(range(SECONDS * FPS))
    assert not stored_pages(artifacts(bench))
    return result


async def wait_until_running(bench: Bench, run_id: UUID, pages: int) -> None:
    async def are_running() -> bool:
        return (await statuses(bench, run_id))["processing"] == pages

    await eventually(are_running, tell=bench.log)


@pytest.mark.timeout(120)
async def test_cancel_of_a_job_ends_its_pages_and_a_retry_goes_on_with_them(
    long_bench: Bench, long_media: Path, gate: Gate
) -> None:
    bench = long_bench
    job_id = await submit(bench, long_media / "talk.mp4", partitions=2)
    gate.close(page(job_id, 0, 0), page(job_id, 1, 1), page(job_id, 2, 2))
    with bench.worker() as worker:
        await wait_for_event(bench, job_id, "page:finished")
        await wait_until_running(bench, job_id, 3)
        children = await children_of(worker)
        started = time.monotonic()
        assert await bench.room.desk.cancel(job_id) == CANCELLED
        assert await both_tables(bench.room, job_id) == ("cancelled", "cancelled")

        async def are_cancelled() -> bool:
            return set(await statuses(bench, job_id)) <= {"cancelled", "done"}

        await eventually(are_cancelled, seconds=5, tell=bench.log)
        assert await all_gone(children, seconds=2)
        assert time.monotonic() - started < 5
        require_empty_scratch(bench)
        assert (await statuses(bench, job_id))["cancelled"] == 3
        before = await finished(bench, job_id)
        gate.open()
        await bench.room.desk.retry(job_id)
        await bench.wait_for(job_id, DONE, FAILED)
    result = await require_whole_clip(bench, job_id)
    assert result["pages"] == PAGES
    assert len(await events(bench, job_id, "page:finished")) == PAGES, "none was made twice"
    assert set(before) < set(await finished(bench, job_id))


@pytest.mark.timeout(120)
async def test_page_that_fails_for_good_fails_its_job_and_nothing_is_left(
    long_bench: Bench, long_media: Path, gate: Gate
) -> None:
    bench = long_bench
    source = bench.scratch / "broken.mp4"
    source.write_bytes((long_media / "talk.mp4").read_bytes())
    job_id = await submit(bench, source, partitions=2)
    gate.close(page(job_id, 1, 1), page(job_id, 2, 2))
    with bench.worker() as worker:
        await wait_for_event(bench, job_id, "page:finished", count=2)
        await wait_until_running(bench, job_id, 2)
        children = await children_of(worker)
        with source.open("r+b") as file:
            file.truncate(source.stat().st_size * 6 // 10)
        # the other page still waits: it is the job that ends it
        gate.open()
        gate.close(page(job_id, 1, 1))
        job = await bench.wait_for(job_id, FAILED)

        async def are_over() -> bool:
            return not {"queued", "processing"} & set(await statuses(bench, job_id))

        await eventually(are_over, seconds=5, tell=bench.log)
        assert await all_gone(children, seconds=2)
        require_empty_scratch(bench)
    failed = await bench.job(page(job_id, 2, 2).job_id)
    assert failed.status is FAILED
    assert job.error_code == failed.error_code
    assert (job.error_message or "").startswith("page 3 (pictures from 16.0 to 24.0 s): ")
    assert (await statuses(bench, job_id)) == {"done": 2, "failed": 1, "cancelled": 1}
    assert (await event_kinds(bench.room, job_id)).count("stage:finished") <= 3, "it only looked"
    with bench.worker():
        await eventually(lambda: asyncio.to_thread(lambda: not stored_pages(artifacts(bench))), tell=bench.log)


@pytest.mark.timeout(120)
async def test_damage_that_a_clip_in_one_piece_survives_is_survived_in_pages(
    long_bench: Bench, long_media: Path
) -> None:
    bench, damaged_bytes = long_bench, 20_000
    source, content = bench.scratch / "damaged.mp4", bytearray((long_media / "talk.mp4").read_bytes())
    middle = len(content) // 2
    content[middle : middle + damaged_bytes] = bytes(damaged_bytes)
    source.write_bytes(content)
    one, split = await submit(bench, source, partitions=2, pages="never"), await submit(bench, source, partitions=2)
    with bench.worker():
        whole = await bench.wait_for(one, DONE, FAILED)
        paged = await bench.wait_for(split, DONE, FAILED)
    assert whole.result is not None, whole.error_message
    assert paged.result is not None, paged.error_message
    assert paged.result["frames"] == whole.result["frames"] < SECONDS * FPS
    numbers = [decode(files_of(result)["clip.mp4"]).numbers for result in (whole.result, paged.result)]
    assert numbers[0] == numbers[1]
    open_jobs = "SELECT count(*) FROM worker.jobs WHERE status IN ('queued', 'processing')"
    assert await bench.room.pool.fetchval(open_jobs) == 0


@pytest.mark.timeout(120)
async def test_retry_after_a_passing_error_goes_on_behind_the_finished_pages(
    long_bench: Bench, long_origin: RangeServer, gate: Gate
) -> None:
    bench = long_bench
    await pages_queue(bench.room, retry_limit=1)
    job_id = await submit(bench, long_origin.url("talk.mp4"), partitions=1)
    gate.close(page(job_id, 1, 2))
    with bench.worker(SOURCE_READ_TIMEOUT_SEC="1"):
        await wait_for_event(bench, job_id, "page:finished", count=3)
        long_origin.status = 503
        gate.open()
        job = await bench.wait_for(job_id, FAILED, seconds=60)
        assert job.error_code == "RETRIES_EXHAUSTED"
        rows = await bench.room.pool.fetch("SELECT * FROM worker.pages WHERE run_id = $1", job_id)
        assert len(rows) == 3
        long_origin.status = None
        said = await bench.run("jobs", "retry", str(job_id))
        assert said.returncode == 0, said.stderr
        await bench.wait_for(job_id, DONE)
    await require_whole_clip(bench, job_id)
    after = await bench.room.pool.fetch("SELECT * FROM worker.pages WHERE run_id = $1", job_id)
    assert {(row["partition_id"], row["page_offset"], row["finished_at"]) for row in rows} < {
        (row["partition_id"], row["page_offset"], row["finished_at"]) for row in after
    }
    assert len(after) == len(await events(bench, job_id, "page:finished")) == PAGES


@pytest.mark.timeout(120)
async def test_pages_that_got_lost_or_damaged_in_storage_are_made_again(
    long_bench: Bench, long_media: Path, gate: Gate
) -> None:
    bench = long_bench
    job_id = await submit(bench, long_media / "talk.mp4", partitions=2, renditions=[60])
    gate.close(page(job_id, 2, 4))
    with bench.worker():
        await wait_for_event(bench, job_id, "page:finished", count=PAGES - 1)
        stored = artifacts(bench) / str(job_id) / "pages"
        assert len(stored_pages(artifacts(bench))) >= 1 + 2 * 4
        (stored / "sound.m4a").unlink()
        (stored / "00000.mp4").unlink()
        content = bytearray((stored / "00002.mp4").read_bytes())
        content[len(content) // 2] ^= 0xFF
        (stored / "00002.mp4").write_bytes(content)
        (stored / "00003-60.mp4").unlink()
        gate.open()
        await bench.wait_for(job_id, DONE, FAILED, seconds=60)
    result = await require_whole_clip(bench, job_id)
    assert decode(files_of(result)["clip-60.mp4"]).numbers == list(range(SECONDS * FPS))
    redone = [event["pages"] for event in await events(bench, job_id, "redone:page-damaged")]
    assert sorted(chain.from_iterable(redone)) == [0, 0, 2, 3]
    assert (await bench.job(job_id)).attempt_count == 0


@pytest.mark.timeout(120)
async def test_job_whose_only_worker_was_killed_in_the_middle_of_a_page_is_ended_by_another(
    long_bench: Bench, long_media: Path, gate: Gate
) -> None:
    bench = long_bench
    job_id = await submit(bench, long_media / "talk.mp4", partitions=2)
    gate.close(page(job_id, 1, 1))
    with bench.worker(**SHORT_LEASE) as worker:
        await wait_for_event(bench, job_id, "page:finished", count=PAGES - 2)
        await wait_until_running(bench, job_id, 1)
        children = await children_of(worker)
        worker.kill()
        assert await all_gone(children, seconds=2)
    gate.open()
    with bench.worker(**SHORT_LEASE):
        job = await bench.wait_for(job_id, DONE, FAILED)
    await require_whole_clip(bench, job_id)
    assert (job.attempt_count, job.crash_count) == (0, 0)
    killed = await bench.job(page(job_id, 1, 1).job_id)
    assert (killed.status, killed.crash_count) == (DONE, 1)
    require_empty_scratch(bench)
    assert len(await events(bench, job_id, "page:finished")) == PAGES
