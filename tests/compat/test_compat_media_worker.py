"""The media worker beside real Node: on schemas that Node made, while Node upgrades them, and as docs/ shows it."""

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.compat import npm
from tests.compat.harness import NodeBoss, eventually
from tests.processes import Bench
from worker.media.sample import make_sample

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("talk") / "talk.mp4"
    make_sample(path, seconds=3, size=(160, 90))
    return path


@pytest.fixture
def on_empty(empty_dsn: str, tmp_path: Path, talk: Path) -> Bench:
    """Worker processes on a database in which nothing is yet."""
    return Bench(empty_dsn, tmp_path, talk.parent, room=None)  # type: ignore[arg-type]


async def outcome(node: NodeBoss, job_id: str) -> dict[str, Any]:
    """What a Node producer sees of its job, once it has ended."""

    async def ended() -> dict[str, Any] | None:
        (job,) = await node.call("findJobs", "clip", {"id": job_id})
        return job if job["state"] in {"completed", "failed", "cancelled"} else None

    return await eventually(ended, seconds=40, what=f"job {job_id} ends")


@pytest.mark.parametrize("release", ["packages", "older_packages"])
async def test_worker_attaches_to_a_schema_that_node_made(
    on_empty: Bench, talk: Path, release: str, request: pytest.FixtureRequest
) -> None:
    async with NodeBoss(on_empty.dsn, packages=request.getfixturevalue(release)) as node:
        await node.call("createQueue", "graveyard")
        await node.call("createQueue", "clip", {"retryLimit": 0, "deadLetter": "graveyard"})
        good = await node.call("send", "clip", {"source": str(talk), "end": 1, "transcript": False})
        bad = await node.call("send", "clip", {"source": str(talk), "end": "never"})
        migrated = await on_empty.run("migrate")
        assert migrated.returncode == 0, migrated.stderr
        drained = await on_empty.run("run", "--drain")
        assert drained.returncode == 0, drained.stderr
        done, failed = await outcome(node, good), await outcome(node, bad)
        assert (done["state"], done["output"]["frames"]) == ("completed", 30)
        assert (failed["state"], failed["output"]["code"]) == ("failed", "INVALID_REQUEST")
        (buried,) = await node.call("fetch", "graveyard")
        assert buried["data"]["end"] == "never"


async def test_node_upgrades_the_schema_under_a_running_worker(
    on_empty: Bench, talk: Path, packages: Path, older_packages: Path
) -> None:
    spec = {"source": str(talk), "end": 0.5, "transcript": False, "poster": False}
    async with NodeBoss(on_empty.dsn, packages=older_packages) as old:
        await old.call("createQueue", "clip", {"retryLimit": 0})
        assert (await on_empty.run("migrate")).returncode == 0
        with on_empty.worker():
            before = [await old.call("send", "clip", spec) for _ in range(10)]
            async with NodeBoss(on_empty.dsn, packages=packages) as new:  # migrates 37 → 46 as it starts
                after = [await new.call("send", "clip", spec) for _ in range(10)]
                states = [(await outcome(new, job_id))["state"] for job_id in before + after]
                assert states == ["completed"] * 20
        database = await asyncpg.connect(on_empty.dsn)
        assert await database.fetchval("SELECT version FROM pgboss.version") == 46
        assert (
            await database.fetchval("SELECT count(*) FROM worker.jobs WHERE status = 'done' AND attempt_count = 0")
            == 20
        )
        await database.close()
        # A worker that starts now meets 46.
        assert (await on_empty.run("run", "--drain")).returncode == 0


async def test_script_of_the_docs_sends_a_clip_and_prints_its_result(
    on_empty: Bench, talk: Path, packages: Path, tmp_path: Path
) -> None:
    assert (await on_empty.run("migrate")).returncode == 0
    app = tmp_path / "app"
    app.mkdir()
    shutil.copy(ROOT / "docs" / "send-clip.mjs", app)
    (app / "node_modules").symlink_to(packages / "node_modules")
    command = [str(npm.NODE), "send-clip.mjs", str(talk), "0.5", "1.5"]
    env = {"PATH": os.environ["PATH"], "DATABASE_URL": on_empty.dsn}
    with on_empty.worker():
        call = {"cwd": app, "env": env, "capture_output": True, "text": True, "timeout": 50}
        done = await asyncio.to_thread(subprocess.run, command, check=False, **call)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["state"], told["output"]["frames"]) == ("completed", 30)
