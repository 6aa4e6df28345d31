"""The whole client on a schema with no more than pg-boss 12.27 (37) has."""

from worker.db.pool import Pool
from worker.db.sql import load_queries
from worker.queue import PgBoss
from worker.queue.options import Policy


async def test_no_statement_names_what_the_schema_lacks(old_queue: PgBoss, pool: Pool) -> None:
    statements = load_queries("worker.queue", queue_schema=old_queue.schema, queue_version=old_queue.version)
    async with pool.acquire() as connection:
        for statement in statements.values():
            await connection.prepare(statement)


async def test_life_of_a_job(old_queue: PgBoss) -> None:
    job_id = await old_queue.send("clip", {"n": 1}, singleton_key="k")
    assert await old_queue.update("clip", {"n": 2}, singleton_key="k") == [job_id]
    (delivery,) = await old_queue.fetch("clip", group_concurrency=1)
    assert (delivery.id, delivery.data) == (job_id, {"n": 2})
    await old_queue.cancel("clip", [delivery.fence])
    assert await old_queue.resume("clip", [delivery.id]) == {job_id}
    (again,) = await old_queue.fetch("clip")
    await old_queue.fail("clip", [again.fence])
    (last,) = await old_queue.fetch("clip")
    assert await old_queue.complete("clip", [last.fence], [{"ok": True}]) == {job_id}
    job = await old_queue.get_job_by_id("clip", last.id)
    assert job is not None
    assert (job.state, job.retry_count, job.output, job.source_root_id) == ("completed", 2, {"ok": True}, None)


async def test_dead_letter_and_back(old_queue: PgBoss) -> None:
    await old_queue.create_queue("dead")
    await old_queue.create_queue("q", policy="short", dead_letter="dead")
    for n in range(2):
        job_id = await old_queue.send("q", n)
        assert job_id is not None
        await old_queue.dead_letter("q", [job_id], [{"message": "no"}])
    assert [job.output for job in await old_queue.find_jobs("dead")] == [{"message": "no"}] * 2
    done = await old_queue.redrive("dead")
    assert (len(done.moved), len(done.refused)) == (1, 1)
    (refused,) = await old_queue.find_jobs("dead")
    assert (refused.state, refused.output["reason"]) == ("failed", "redrive_conflict")


async def test_policies(old_queue: PgBoss) -> None:
    expected: dict[Policy, list[str]] = {
        "standard": ["a1", "a2", "b1"],
        "short": ["a1", "b1"],
        "singleton": ["a1", "b1"],
        "stately": ["a1", "b1"],
        "exclusive": ["a1", "b1"],
        "key_strict_fifo": ["a1", "b1"],
    }
    for policy, claimed in expected.items():
        await old_queue.create_queue(policy, policy=policy)
        for data in ("a1", "a2", "b1"):
            await old_queue.send(policy, data, singleton_key=data[0])
        assert [delivery.data for delivery in await old_queue.fetch(policy, 9)] == claimed
