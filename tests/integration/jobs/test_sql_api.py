"""The SQL API that any language can call: worker.submit, worker.cancel, worker.retry."""

import random
from uuid import UUID, uuid4

import asyncpg
import pytest

from tests.conftest import Room
from tests.jobs import both_tables, event_kinds, one_attempt
from worker.domain.job import JobStatus, WorkerId
from worker.errors import ClipFailed, InvalidRequest, JobMissing, QueueMissing

ME = WorkerId(uuid4())


async def test_submit_is_part_of_the_callers_transaction(room: Room) -> None:
    async with room.pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await room.desk.submit("clip", {}, connection=connection)
        await transaction.rollback()
    assert (await room.store.acquire("clip", 1, ME)).attempts == []
    assert await room.desk.listing(["clip"]) == []


async def test_submit_takes_pg_boss_options(room: Room) -> None:
    wanted = uuid4()
    options = {"id": str(wanted), "priority": 7, "retryLimit": 5, "expireInSeconds": 60, "startAfter": 120}
    assert await room.desk.submit("clip", {"source": "x"}, options) == wanted
    row = await room.pool.fetchrow(
        "SELECT priority, retry_limit, expire_seconds, policy, start_after - now() > interval '1 minute' AS later, "
        "keep_until - start_after AS kept FROM pgboss.job WHERE id = $1",
        wanted,
    )
    assert row is not None
    assert tuple(row)[:5] == (7, 5, 60, "standard", True)
    assert row["kept"].days == 14


async def test_second_submit_of_an_id_is_refused(room: Room) -> None:
    options = {"id": str(uuid4())}
    assert await room.desk.submit("clip", {}, options) is not None
    assert await room.desk.submit("clip", {}, options) is None


async def test_submit_to_an_unknown_queue_says_so(room: Room) -> None:
    with pytest.raises(QueueMissing, match="'nope' does not exist"):
        await room.desk.submit("nope", {})


async def test_huge_spec_is_refused(room: Room) -> None:
    noise = "".join(random.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=200_000))
    with pytest.raises(InvalidRequest, match="at most 65536"):
        await room.desk.submit("clip", {"source": noise})


async def test_submit_rings_the_bell(room: Room, dsn: str) -> None:
    heard: list[str] = []
    listener = await asyncpg.connect(dsn)
    await listener.add_listener(room.queue.channel, lambda *args: heard.append(args[3]))
    await room.desk.submit("clip", {})
    await room.desk.submit("clip", {}, {"startAfter": 60})
    await listener.execute("SELECT 1")
    await listener.close()
    assert heard == ["clip"]


async def test_cancel_of_a_waiting_job_takes_effect_at_once(room: Room) -> None:
    job_id = await room.desk.submit("clip", {})
    assert job_id is not None
    assert await room.desk.cancel(job_id) == "cancelled"
    assert await both_tables(room, job_id) == ("cancelled", "cancelled")
    assert await event_kinds(room, job_id) == ["submitted", "cancelled"]


async def test_cancel_of_a_job_that_only_pg_boss_knows(room: Room) -> None:
    job_id = await room.queue.send("clip", {"source": "node"})
    assert job_id is not None
    assert await room.desk.cancel(job_id) == "cancelled"
    assert await both_tables(room, job_id) == ("cancelled", "cancelled")


async def test_cancel_of_a_running_job_asks_its_worker(room: Room) -> None:
    await room.desk.submit("clip", {})
    attempt = await one_attempt(room, ME)
    assert await room.desk.cancel(attempt.job_id) == "processing"
    assert (await room.store.beat([attempt.lease])).cancelled == {attempt.job_id}


async def test_cancel_of_a_finished_job_changes_nothing(room: Room) -> None:
    await room.desk.submit("clip", {})
    attempt = await one_attempt(room, ME)
    await room.store.finish(attempt.lease, {})
    assert await room.desk.cancel(attempt.job_id) == "done"
    assert await both_tables(room, attempt.job_id) == ("done", "completed")


async def test_retry_gives_a_failed_job_one_more_attempt(room: Room) -> None:
    await room.desk.submit("clip", {})
    attempt = await one_attempt(room, ME)
    await room.store.give_up(attempt.lease, ClipFailed("no"))
    assert await room.desk.retry(attempt.job_id) == "queued"
    assert await both_tables(room, attempt.job_id) == ("queued", "retry")
    again = await one_attempt(room, ME)
    assert again.job_id == attempt.job_id
    assert again.number <= again.max_attempts


async def test_retry_of_a_cancelled_job_that_never_ran(room: Room) -> None:
    job_id = await room.desk.submit("clip", {})
    assert job_id is not None
    await room.desk.cancel(job_id)
    assert await room.desk.retry(job_id) == "queued"
    assert (await one_attempt(room, ME)).number == 1


async def test_retry_of_a_job_whose_pg_boss_row_was_deleted_by_age(room: Room) -> None:
    await room.desk.submit("clip", {"source": "x"})
    attempt = await one_attempt(room, ME)
    await room.store.give_up(attempt.lease, ClipFailed("no"))
    await room.pool.execute("DELETE FROM pgboss.job")
    await room.desk.retry(attempt.job_id)
    assert (await one_attempt(room, ME)).spec == {"source": "x"}


async def test_retry_of_a_done_job_changes_nothing(room: Room) -> None:
    await room.desk.submit("clip", {})
    attempt = await one_attempt(room, ME)
    await room.store.finish(attempt.lease, {})
    assert await room.desk.retry(attempt.job_id) == "done"


async def test_unknown_job_is_named(room: Room) -> None:
    nobody = uuid4()
    for action in (room.desk.cancel, room.desk.retry, room.desk.show):
        with pytest.raises(JobMissing, match=str(nobody)):
            await action(nobody)


async def test_listing_includes_what_only_pg_boss_knows(room: Room) -> None:
    sent = await room.queue.send("clip", {"source": "node"})
    submitted = await room.desk.submit("clip", {"source": "python"})
    jobs = await room.desk.listing(["clip"])
    assert [job.id for job in jobs] == [submitted, sent]
    assert {job.status for job in jobs} == {JobStatus.QUEUED}
    assert await room.desk.listing(["clip"], status=JobStatus.DONE) == []


async def test_functions_are_not_open_to_everybody(room: Room) -> None:
    await room.pool.execute("CREATE ROLE nobody_special NOLOGIN; GRANT USAGE ON SCHEMA worker TO nobody_special")
    try:
        async with room.pool.acquire() as connection, connection.transaction():
            await connection.execute("SET LOCAL ROLE nobody_special")
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                async with connection.transaction():
                    await connection.execute("SELECT worker.submit('clip', '{}')")
    finally:
        await room.pool.execute("REVOKE USAGE ON SCHEMA worker FROM nobody_special; DROP ROLE nobody_special")


async def test_job_is_found_by_the_beginning_of_its_id(room: Room) -> None:
    for name in ("abcd0000-0000-4000-8000-000000000001", "abcd0000-0000-4000-8000-000000000002"):
        await room.desk.submit("clip", {}, {"id": name})
    sent = await room.queue.send("clip", {}, id=UUID("ffff0000-0000-4000-8000-000000000003"))
    assert len(await room.desk.find("abcd", ["clip"])) == 2
    assert await room.desk.find("FFFF0000-0000-4", ["clip"]) == [sent]
    assert await room.desk.find("1234", ["clip"]) == []


async def test_listing_of_one_queue(room: Room) -> None:
    await room.queue.create_queue("other")
    await room.desk.submit("clip", {})
    mine = await room.desk.submit("other", {})
    assert [job.id for job in await room.desk.listing(["clip"], queue="other")] == [mine]
