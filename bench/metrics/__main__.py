"""What one look at the queues costs a scrape, with millions of jobs in the table: `./dev bench metrics`."""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from worker.app import install
from worker.db.embedded import EmbeddedPostgres
from worker.db.pool import Pool, open_pool
from worker.jobs.backlog import COUNT_LIMIT, Backlog
from worker.queue import PgBoss
from worker.settings import Settings
from worker.telemetry.backlog import QueueDepth

#: what the project promises, at a million queued and a million finished jobs
PROMISED_MS = 100
QUEUES = ("clip", "clip.page")
FILL = """
INSERT INTO pgboss.job (name, data, policy, state, created_on, start_after, started_on, completed_on)
SELECT 'clip', '{"source": "https://example.com/talk.mp4"}', 'standard',
       (CASE WHEN number <= $1::int THEN 'created' ELSE 'completed' END)::pgboss.job_state, at, at,
       CASE WHEN number > $1 THEN at END, CASE WHEN number > $1 THEN at END
FROM (SELECT number, now() - make_interval(secs => number % 100000) AS at
      FROM generate_series(1, $1::int + $2::int) AS number) AS filling
"""


async def measure(dsn: str, *, queued: int, finished: int, times: int) -> dict[str, list[float]]:
    """Milliseconds of each look, before and after VACUUM has seen the rows."""
    settings = Settings(_env_file=None)  # type: ignore[call-arg]  # of pydantic-settings, unknown to its types
    pool = await open_pool(dsn, name="bench", size=2)
    try:
        await install(pool, settings)
        backlog = Backlog(pool, await PgBoss.attach(pool), QUEUES)
        empty = await look(backlog, times)
        await pool.execute(FILL, queued, finished, timeout=1200)
        await pool.execute("ANALYZE pgboss.job_common", timeout=600)
        fresh = await look(backlog, times)
        await vacuum(pool)
        settled = await look(backlog, times)
        told = {depth.queue: depth for depth in await backlog.read()}
        check(told["clip"], queued)
    finally:
        await pool.close()
    return {"empty table": empty, "just written": fresh, "vacuumed": settled}


async def look(backlog: Backlog, times: int) -> list[float]:
    await backlog.read()
    spent = []
    for _ in range(times):
        started = time.perf_counter()
        await backlog.read()
        spent.append((time.perf_counter() - started) * 1000)
    return spent


async def vacuum(pool: Pool) -> None:
    await pool.execute("VACUUM ANALYZE pgboss.job_common", timeout=600)


def check(depth: QueueDepth, queued: int) -> None:
    if depth.pending != min(queued, COUNT_LIMIT) or depth.active:
        raise AssertionError(f"{queued} were queued, and told is {depth}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev bench metrics", description=__doc__)
    parser.add_argument("--queued", type=int, default=1_000_000)
    parser.add_argument("--finished", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=50)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="clipboss-bench-") as name:
        Path(name).chmod(0o755)  # run by root, the server is somebody else and must get in
        server = EmbeddedPostgres(Path(name) / "postgres", durable=False)
        try:
            dsn = server.start_blocking()
            found = asyncio.run(measure(dsn, queued=asked.queued, finished=asked.finished, times=asked.times))
        finally:
            server.stop_blocking()
    print(f"one look at the queues, {asked.queued} queued and {asked.finished} finished; milliseconds")
    for label, spent in found.items():
        print(f"  {label:<13} median {statistics.median(spent):7.2f}   slowest {max(spent):7.2f}")
    if statistics.median(found["vacuumed"]) > PROMISED_MS:
        sys.exit(f"slower than the {PROMISED_MS} ms promised")


if __name__ == "__main__":
    main()
