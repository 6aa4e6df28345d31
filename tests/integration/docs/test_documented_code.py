"""Code in the documents does run: SQL and Python against a real database."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.docs.pages import Block, blocks
from worker.db.pool import Pool
from worker.jobs.desk import JobDesk
from worker.queue import PgBoss

#: the id that the documents use
EXAMPLE = "3f2b8c1e-5d64-4b0a-9a57-0c6f1d2e7a90"


@pytest.fixture
async def desk(pool: Pool, queue: PgBoss) -> JobDesk:
    desk = JobDesk(pool, queue)
    await desk.submit("clip", {"source": "https://example.com/talk.mp4"}, {"id": EXAMPLE})
    return desk


@pytest.mark.parametrize("block", blocks("sql"), ids=str)
async def test_documented_sql_runs(pool: Pool, desk: JobDesk, block: Block) -> None:
    async with pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("CREATE ROLE my_app")
        await connection.execute(block.text)
        await transaction.rollback()


async def test_documented_rights_are_enough_to_send(pool: Pool, desk: JobDesk) -> None:
    (grants,) = [block.text for block in blocks("sql") if "GRANT" in block.text]
    (submit,) = [block.text for block in blocks("sql") if "worker.submit('clip'" in block.text]
    async with pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("CREATE ROLE my_app")
        await connection.execute(grants)
        await connection.execute("SET LOCAL ROLE my_app")
        assert await connection.fetchval(submit) is not None
        await transaction.rollback()


@pytest.mark.parametrize("block", blocks("python"), ids=str)
async def test_documented_python_runs(dsn: str, desk: JobDesk, block: Block) -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[3]), "DATABASE_URL": dsn}
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-W", "error", "-c", block.text],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if "JobDesk" in block.text:
        assert "submitted" in done.stdout
        assert len(await desk.listing(["clip"])) == 3
    else:
        assert done.stdout == "{'to': 'bob'} 0\ndone\n"
