"""What pages stored goes away when nobody can want it any more."""

from pathlib import Path

import pytest

from tests.integration.continuation.long_jobs import ME, SPEC, LongJobs, pictures, split_into
from worker.continuation.artifacts import SOUND_NAME, picture_name, remove_pages
from worker.continuation.sweep import PageSweep
from worker.domain.job import JobId
from worker.domain.paging import Chain, PageKind
from worker.domain.request import parse_request
from worker.errors import ClipFailed, RetriesExhausted
from worker.stages.keys import artifact_key
from worker.storage.local import LocalStorage

NAMES = [*(picture_name(offset, height) for offset in range(2) for height in (0, 360)), SOUND_NAME]
STORED = (Chain(PageKind.SOUND, 0, 1), Chain(PageKind.PICTURES, 0, 2, (0, 360)))


@pytest.fixture
async def storage(tmp_path: Path) -> LocalStorage:
    storage = LocalStorage(tmp_path / "store")
    await storage.check()
    return storage


@pytest.fixture
def sweep(long: LongJobs, storage: LocalStorage) -> PageSweep:
    return PageSweep(long.runs, storage)


async def store(storage: LocalStorage, job_id: JobId, tmp_path: Path) -> None:
    """What the pages store, and the clip, which is not theirs."""
    file = tmp_path / "some"
    file.write_bytes(b"some")
    for name in [*NAMES, "clip.mp4"]:
        key = artifact_key(parse_request(SPEC), job_id, name)
        await storage.put(key, file, content_type="video/mp4", metadata={})


async def left(storage: LocalStorage, job_id: JobId) -> list[str]:
    keys = {name: artifact_key(parse_request(SPEC), job_id, name) for name in [*NAMES, "clip.mp4"]}
    return [name for name, key in keys.items() if await storage.head(key) is not None]


async def a_day_passes(long: LongJobs) -> None:
    await long.room.pool.execute("UPDATE worker.jobs SET finished_at = finished_at - interval '25 hours'")


async def test_done_job_is_swept_at_once(
    long: LongJobs, sweep: PageSweep, storage: LocalStorage, tmp_path: Path
) -> None:
    job_id = await long.start(*STORED)
    await store(storage, job_id, tmp_path)
    await sweep.run_once()
    assert len(await left(storage, job_id)) == len(NAMES) + 1, "it is still at work"
    await long.finish_all()
    await long.look_again(job_id)
    await sweep.run_once()
    assert await left(storage, job_id) == ["clip.mp4"]
    assert await long.runs.leftovers() == []


async def test_what_was_heard_is_forgotten_with_it(long: LongJobs, sweep: PageSweep) -> None:
    job_id = await long.start(Chain(PageKind.SPEECH, 0, 1))
    await long.finish(await long.page(), {"speech": {"start": 0}, "other": 1})
    await long.look_again(job_id)
    await sweep.run_once()
    assert [page.facts for page in await long.runs.pages(job_id)] == [{"other": 1}]


async def test_job_given_up_for_good_is_swept_at_once(
    long: LongJobs, sweep: PageSweep, storage: LocalStorage, tmp_path: Path
) -> None:
    job_id = await long.start(*STORED)
    await store(storage, job_id, tmp_path)
    sound, page = await long.pages()
    await long.fail_for_good(page, ClipFailed("no"))
    await long.look_again(job_id)
    await sweep.run_once()
    assert len(await left(storage, job_id)) == len(NAMES) + 1, "one of its pages is still at work"
    await long.room.store.mark_cancelled(sound.lease)
    await sweep.run_once()
    assert await left(storage, job_id) == ["clip.mp4"]


@pytest.mark.parametrize("end", ["exhausted", "cancelled"])
async def test_job_that_may_be_revived_keeps_its_pages_for_a_day(
    long: LongJobs, sweep: PageSweep, storage: LocalStorage, tmp_path: Path, end: str
) -> None:
    job_id = await long.start(pictures(0, 2))
    await store(storage, job_id, tmp_path)
    await long.finish(await long.page())
    if end == "exhausted":
        await long.fail_for_good(await long.page(), RetriesExhausted("503"))
        await long.look_again(job_id)
    else:
        await long.room.desk.cancel(job_id)
    await sweep.run_once()
    assert len(await left(storage, job_id)) == len(NAMES) + 1
    await a_day_passes(long)
    await sweep.run_once()
    assert set(await left(storage, job_id)) == {"clip.mp4", SOUND_NAME, *(picture_name(at, 360) for at in range(2))}
    await long.room.desk.retry(job_id)
    assert await long.look_again(job_id) == "anew"


async def test_job_that_was_split_anew_after_a_sweep_is_swept_again(
    long: LongJobs, sweep: PageSweep, storage: LocalStorage, tmp_path: Path
) -> None:
    job_id = await long.start(pictures(0, 1))
    await long.fail_for_good(await long.page())
    await long.look_again(job_id)
    await sweep.run_once()
    assert await long.runs.leftovers() == []
    await long.room.desk.retry(job_id)
    await long.runs.begin((await long.parent(job_id)).lease, split_into(*STORED))
    await store(storage, job_id, tmp_path)
    await long.finish_all()
    await long.look_again(job_id)
    await sweep.run_once()
    assert await left(storage, job_id) == ["clip.mp4"]


async def test_sweep_that_breaks_off_is_taken_up_again(
    long: LongJobs, sweep: PageSweep, storage: LocalStorage, tmp_path: Path
) -> None:
    job_id = await long.start(*STORED)
    await store(storage, job_id, tmp_path)
    await long.finish_all()
    await long.look_again(job_id)
    # as far as it came before its worker was killed
    await remove_pages(storage, parse_request(SPEC), job_id, STORED[:1])
    assert SOUND_NAME not in await left(storage, job_id)
    await sweep.run_once()
    assert await left(storage, job_id) == ["clip.mp4"]


async def test_spec_that_is_understood_no_more_does_not_keep_others_from_being_swept(
    long: LongJobs, sweep: PageSweep, storage: LocalStorage, tmp_path: Path
) -> None:
    odd, job_id = await long.start(*STORED), await long.start(*STORED)
    await store(storage, job_id, tmp_path)
    await long.finish_all()
    for attempt in (await long.room.store.acquire("clip", 2, ME)).attempts:
        await long.look(attempt)
    await long.room.pool.execute("UPDATE worker.jobs SET spec = '{\"old\": 1}' WHERE id = $1", odd)
    await sweep.run_once()
    assert await left(storage, job_id) == ["clip.mp4"]
