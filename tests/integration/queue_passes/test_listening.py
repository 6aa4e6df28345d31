"""Hearing of new jobs."""

import asyncio

import asyncpg

from worker.db.pool import Pool
from worker.queue import PgBoss

SOON = 10.0


async def test_sent_job_is_heard_of(queue: PgBoss, dsn: str) -> None:
    await queue.create_queue("other", notify=True)
    async with queue.listen(dsn, ["clip"]) as wakeups, asyncio.timeout(SOON):
        assert await anext(wakeups) == "clip", "the first look is owed to what was sent before"
        await queue.send("other")
        await queue.send("clip", {"n": 1})
        assert await anext(wakeups) == "clip"
        assert [delivery.data for delivery in await queue.fetch("clip")] == [{"n": 1}]


async def test_many_announcements_make_one_wakeup(queue: PgBoss, dsn: str) -> None:
    await queue.create_queue("last", notify=True)
    async with queue.listen(dsn, ["clip", "last"]) as wakeups, asyncio.timeout(SOON):
        assert {await anext(wakeups), await anext(wakeups)} == {"clip", "last"}
        heard: list[str] = []
        listener = queue.listener(dsn, on_job=heard.append, on_ready=lambda: heard.append("ready"))
        other = asyncio.create_task(listener.run())
        while "ready" not in heard:
            await asyncio.sleep(0.01)
        for _ in range(5):
            await queue.send("clip")
        await queue.send("last")
        while "last" not in heard:
            await asyncio.sleep(0.01)
        assert heard == ["ready", *["clip"] * 5, "last"]
        other.cancel()
        assert [await anext(wakeups), await anext(wakeups)] == ["clip", "last"]


async def test_every_queue_comes_up_again_after_a_lost_connection(queue: PgBoss, dsn: str, pool: Pool) -> None:
    async with queue.listen(dsn, ["clip"], name="cut-me-off") as wakeups, asyncio.timeout(SOON):
        assert await anext(wakeups) == "clip"
        await pool.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cut-me-off'"
        )
        assert await anext(wakeups) == "clip"


async def test_connection_is_gone_when_the_listening_ends(queue: PgBoss, dsn: str) -> None:
    async with queue.listen(dsn, ["clip"], name="short-lived") as wakeups, asyncio.timeout(SOON):
        await anext(wakeups)
    watcher = await asyncpg.connect(dsn)
    async with asyncio.timeout(SOON):
        while await watcher.fetchval("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'short-lived'"):
            await asyncio.sleep(0.01)
    await watcher.close()
