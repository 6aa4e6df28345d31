"""What a whole worker answers to scrapes and probes: while its loop hangs, and while its database refuses everybody."""

import asyncio
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg

from tests.conftest import Room
from tests.processes import eventually
from worker.app import open_app, open_worker
from worker.settings import Settings
from worker.telemetry.backlog import FRESH_SECONDS


def settings_for(dsn: str, scratch: Path, **changes: object) -> Settings:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return Settings(
        _env_file=None, database_url=dsn, scratch_dir=scratch, asr_engine="none", metrics_port=port, **changes
    )  # type: ignore[call-arg]


def get(settings: Settings, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{settings.metrics_port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, exc.read().decode()


async def scrape(settings: Settings) -> dict[str, float]:
    status, text = await asyncio.to_thread(get, settings, "/metrics")
    assert status == 200
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in lines}


async def test_worker_whose_loop_hangs_is_not_healthy_and_says_so_by_itself(
    dsn: str, room: Room, tmp_path: Path
) -> None:
    settings = settings_for(dsn, tmp_path, lease_timeout_sec=2, heartbeat_interval_sec=0.5)
    async with open_app(settings, role="hang") as app, open_worker(app) as supervisor:
        running = asyncio.create_task(supervisor.run())

        async def healthy() -> bool:
            return (await asyncio.to_thread(get, settings, "/healthz"))[0] == 200

        await eventually(healthy)
        loop = asyncio.get_running_loop()
        answers = loop.run_in_executor(
            None, lambda: (time.sleep(2), get(settings, "/healthz"), get(settings, "/metrics"))
        )
        # Nothing of the worker's loop runs meanwhile, and scrapes are answered all the same.
        time.sleep(4)
        _, (status, _), (scraped, text) = await answers
        assert (status, scraped) == (503, 200)
        (lag,) = [line.split()[1] for line in text.splitlines() if line.startswith("worker_loop_lag_seconds")]
        assert float(lag) > 1
        await eventually(healthy)
        supervisor.stop()
        await running


async def test_scrapes_go_on_while_the_database_refuses_everybody(
    server_dsn: str, dsn: str, room: Room, tmp_path: Path
) -> None:
    name = urlsplit(dsn).path.strip("/")
    await room.desk.submit("clip", {"source": "https://example.com/a.mp4"})
    settings = settings_for(dsn, tmp_path)
    admin = await asyncpg.connect(server_dsn)
    try:
        async with open_app(settings, role="away") as app, open_worker(app):

            async def told() -> bool:
                return (await scrape(settings)).get('worker_pending_jobs{queue="clip"}') == 1

            await eventually(told)
            await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            await admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)

            async def aged() -> dict[str, float] | None:
                found = await scrape(settings)
                return found if found["worker_snapshot_age_seconds"] > FRESH_SECONDS + 1 else None

            assert (await eventually(aged))['worker_pending_jobs{queue="clip"}'] == 1
            await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")

            async def fresh() -> bool:
                return (await scrape(settings))["worker_snapshot_age_seconds"] < FRESH_SECONDS

            await eventually(fresh)
    finally:
        await admin.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        await admin.close()
