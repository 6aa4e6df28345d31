"""Connections: what a person is told when there is none, and finding the way back."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from worker.app import open_app, open_worker
from worker.db.listen import Listener
from worker.db.pool import Pool, open_pool
from worker.errors import DatabaseUnavailable
from worker.queue import PgBoss
from worker.settings import Settings


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"netloc": "clipboss:hunter2@127.0.0.1:1"}, "cannot be reached"),
        ({"path": "/no_such_database"}, "no such database"),
        ({"scheme": "mysql"}, "not a PostgreSQL address"),
    ],
)
async def test_what_is_wrong_is_said_without_the_password(dsn: str, change: dict[str, str], words: str) -> None:
    with pytest.raises(DatabaseUnavailable, match=words) as caught:
        await open_pool(urlunsplit(urlsplit(dsn)._replace(**change)), name="tests")
    assert "hunter2" not in str(caught.value)


async def test_wrong_password(dsn: str) -> None:
    parts = urlsplit(dsn)
    wrong = urlunsplit(parts._replace(netloc=f"{parts.username}:hunter2@{parts.hostname}:{parts.port}"))
    with pytest.raises(DatabaseUnavailable, match="refused the login"):
        await open_pool(wrong, name="tests")


async def test_connections_are_named_and_speak_json(dsn: str) -> None:
    pool = await open_pool(dsn, name="clipboss:test")
    try:
        assert await pool.fetchval("SELECT current_setting('application_name')") == "clipboss:test"
        assert await pool.fetchval("SELECT $1::jsonb", {"a": [1, None]}) == {"a": [1, None]}
    finally:
        await pool.close()


async def test_listener_hears_again_after_its_connection_was_cut(dsn: str, pool: Pool) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    ready: asyncio.Queue[bool] = asyncio.Queue()
    listener = Listener(
        dsn, name="listener-under-test", channels={"bell": heard.put_nowait}, on_ready=lambda: ready.put_nowait(True)
    )
    running = asyncio.create_task(listener.run())
    try:
        async with asyncio.timeout(15):
            await ready.get()
            await pool.execute("SELECT pg_notify('bell', 'first')")
            assert await heard.get() == "first"
            await pool.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'listener-under-test'"
            )
            await ready.get()
            await pool.execute("SELECT pg_notify('bell', 'second')")
            assert await heard.get() == "second"
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_worker_takes_at_most_four_connections(dsn: str, pool: Pool, queue: PgBoss, tmp_path: Path) -> None:
    settings = Settings(_env_file=None, database_url=dsn, asr_engine="none", scratch_dir=tmp_path)
    async with open_app(settings, role="budget") as app:
        jobs = [await app.desk.submit("clip", {}) for _ in range(20)]
        async with open_worker(app) as supervisor:
            running = asyncio.create_task(supervisor.run(drain=True))
            most = 0
            while not running.done():
                count = (
                    "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'clipboss:%' AND datname = $1"
                )
                most = max(most, await pool.fetchval(count, urlsplit(dsn).path.strip("/")))
                await asyncio.sleep(0.01)
            await running
        assert {(await app.desk.show(job)).error_code for job in jobs if job} == {"INVALID_REQUEST"}
    assert 1 <= most <= 4
