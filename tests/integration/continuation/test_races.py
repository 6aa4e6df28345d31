"""Acts on one long job that meet: nobody waits in a circle, no wake-up is lost, and both tables agree afterwards."""

import pytest

from tests.integration.continuation.long_jobs import CHAINS, LongJobs, pictures, place, split_into
from tests.integration.continuation.races import Act, Ring, Scene, Setting
from worker.domain.outcome import Snoozed
from worker.domain.paging import PAGE_QUEUE
from worker.errors import RetriesExhausted

pytestmark = pytest.mark.timeout(120)


async def fresh(long: LongJobs) -> Scene:
    job_id = await long.submit()
    return Scene(job_id, await long.parent(job_id))


async def at_work(long: LongJobs) -> Scene:
    """Both chains are at their first page of two."""
    job_id = await long.start()
    return Scene(job_id, None, {place(page): page for page in await long.pages()})


async def looking(long: LongJobs) -> Scene:
    scene = await at_work(long)
    scene.looking = await long.parent(scene.job_id)
    return scene


async def last_two(long: LongJobs) -> Scene:
    job_id = await long.start(pictures(0, 1), pictures(1, 2))
    return Scene(job_id, None, {place(page): page for page in await long.pages()})


async def last_one(long: LongJobs) -> Scene:
    job_id = await long.start(pictures(0, 1))
    pages = {place(page): page for page in await long.pages()}
    return Scene(job_id, await long.parent(job_id), pages)


async def twins(long: LongJobs) -> Scene:
    """Two deliveries of the same page; the other one stands under (1, 2)."""
    job_id = await long.start(pictures(0, 2))
    page = await long.page()
    await long.room.queue.send(PAGE_QUEUE, page.spec)
    return Scene(job_id, None, {(0, 0): page, (1, 2): await long.page()})


async def silent(long: LongJobs) -> Scene:
    """Its worker was lost while it looked at its pages, and with it one of them."""
    scene = await looking(long)
    assert scene.looking is not None
    await long.silence(scene.looking)
    await long.silence(scene.pages[1, 2])
    await long.room.pool.execute("UPDATE worker.jobs SET crash_count = 2 WHERE id = $1", scene.job_id)
    return scene


async def orphaned(long: LongJobs) -> Scene:
    """Somebody deleted the deliveries of the job and of a page that waits."""
    scene = await at_work(long)
    await long.finish(scene.pages.pop((0, 0)))
    await long.room.pool.execute("DELETE FROM pgboss.job WHERE state < 'active'")
    return scene


async def stopping(long: LongJobs) -> Scene:
    scene = await at_work(long)
    await long.room.desk.cancel(scene.job_id)
    return scene


async def finish(long: LongJobs, scene: Scene) -> None:
    await long.finish(scene.pages[0, 0])


async def finish_other(long: LongJobs, scene: Scene) -> None:
    await long.finish(next(page for at, page in scene.pages.items() if at != (0, 0)))


async def fail(long: LongJobs, scene: Scene) -> None:
    await long.fail_for_good(scene.pages[0, 0], RetriesExhausted("503"))


async def stop(long: LongJobs, scene: Scene) -> None:
    await long.room.store.mark_cancelled(scene.pages[0, 0].lease)


async def begin(long: LongJobs, scene: Scene) -> None:
    assert scene.looking is not None
    await long.runs.begin(scene.looking.lease, split_into(*CHAINS))


async def snooze(long: LongJobs, scene: Scene) -> None:
    assert scene.looking is not None
    await long.runs.snooze(scene.looking.lease, Snoozed())


async def cancel(long: LongJobs, scene: Scene) -> None:
    await long.room.desk.cancel(scene.job_id)


async def retry(long: LongJobs, scene: Scene) -> None:
    await long.room.desk.retry(scene.job_id)


async def beat(long: LongJobs, scene: Scene) -> None:
    await long.room.store.beat([page.lease for page in scene.pages.values()])


async def recover(long: LongJobs, scene: Scene) -> None:
    await long.room.leases.recover(silent_are_dead=True)


async def strays(long: LongJobs, scene: Scene) -> None:
    await long.settle_strays()


@pytest.mark.parametrize(
    ("setting", "acts"),
    [
        (last_one, (snooze, finish)),
        (last_two, (finish, finish_other)),
    ],
    ids=["a look and the last page", "the last two pages"],
)
def test_last_page_is_never_slept_over(ring: Ring, setting: Setting, acts: tuple[Act, Act]) -> None:
    for scene in ring.scenes(setting, acts):
        assert ring.ground.run(ring.long.waits_seconds(scene.job_id)) <= 0
        assert ring.ground.run(ring.long.bring_to_an_end(scene.job_id)) == "done"
        ring.ground.run(ring.long.require_sound())


@pytest.mark.parametrize(
    ("setting", "acts", "ends"),
    [
        (twins, (finish, finish_other), ("done",)),
        (at_work, (finish, finish_other), ("done",)),
        (looking, (snooze, finish), ("done",)),
        (looking, (snooze, fail), ("failed",)),
        (looking, (snooze, cancel), ("cancelled",)),
        (fresh, (begin, cancel), ("cancelled",)),
        (at_work, (cancel, finish), ("cancelled",)),
        (at_work, (cancel, fail), ("cancelled",)),
        (at_work, (cancel, beat), ("cancelled",)),
        (silent, (recover, finish), ("failed",)),
        (silent, (recover, cancel), ("cancelled", "failed")),
        (silent, (recover, recover), ("failed",)),
        (silent, (recover, beat), ("failed",)),
        (orphaned, (strays, cancel), ("cancelled",)),
        (orphaned, (strays, finish_other), ("cancelled",)),
        (orphaned, (strays, strays), ("cancelled",)),
        (stopping, (retry, stop), ("done", "failed")),
    ],
    ids=lambda value: (
        value.__name__ if callable(value) else "-".join(getattr(each, "__name__", each) for each in value)
    ),
)
def test_acts_that_meet_leave_a_job_that_comes_to_its_end(
    ring: Ring, setting: Setting, acts: tuple[Act, Act], ends: tuple[str, ...]
) -> None:
    for scene in ring.scenes(setting, acts):
        assert ring.ground.run(settled(ring.long, scene)) in ends
        ring.ground.run(ring.long.require_sound())


async def settled(long: LongJobs, scene: Scene) -> str:
    """Whoever still holds a page hears what a beat tells, and acts on it."""
    status = await long.bring_to_an_end(scene.job_id)
    for lease in await long.held_pages(scene.job_id):
        answer = await long.room.store.beat([lease])
        await (long.room.store.mark_cancelled(lease) if answer.cancelled else long.finish_as(lease))
    assert await long.held_pages(scene.job_id) == []
    return status if status != "queued" else await long.bring_to_an_end(scene.job_id)
