"""A busy worker, scraped all the while, takes four connections and no more; what it tells is right and names no job."""

import asyncio
import re
import socket
import urllib.request
from collections import Counter

from prometheus_client.parser import text_string_to_metric_families

from tests.processes import Bench
from worker.domain.job import JobStatus

#: as docs/operations.md says
BUDGET = {"work": 2, "beats": 1, "listen": 1}
JOBS, AT_ONCE = 12, 4
#: by what the connection is for; the sampler's own is called otherwise
CONNECTIONS = """
SELECT CASE WHEN application_name ~ ':beats$' THEN 'beats' WHEN application_name ~ ':listen$' THEN 'listen'
       ELSE 'work' END AS purpose, count(*) AS taken
FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'clipboss:%' GROUP BY 1
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def scrape(port: int) -> str | None:
    """None while nobody listens yet."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            return str(answer.read().decode())
    except ConnectionRefusedError:
        return None
    except urllib.error.URLError as exc:
        if isinstance(exc.reason, ConnectionRefusedError):
            return None
        raise


def value(text: str, name: str, **labels: str) -> float:
    (found,) = [
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and sample.labels == labels
    ]
    return found


async def test_busy_worker_keeps_to_its_connections_while_it_is_scraped(bench: Bench) -> None:
    pool, port = bench.room.pool, free_port()
    source = str(bench.media / "talk.mp4")
    jobs = [await bench.submit(source=source, start=n * 0.4, end=n * 0.4 + 2, mode="exact") for n in range(JOBS)]
    most: Counter[str] = Counter()
    busiest = total = 0
    told: list[str] = []
    with bench.worker(MAX_CONCURRENCY=str(AT_ONCE), METRICS_PORT=str(port), HEARTBEAT_INTERVAL_SEC="0.2"):
        while await pool.fetchval("SELECT count(*) FROM worker.jobs WHERE status IN ('queued', 'processing')"):
            taken = Counter({row["purpose"]: row["taken"] for row in await pool.fetch(CONNECTIONS)})
            most, total = most | taken, max(total, taken.total())
            running = await pool.fetchval("SELECT count(*) FROM worker.jobs WHERE status = 'processing'")
            busiest = max(busiest, running)
            if text := await asyncio.to_thread(scrape, port):
                told.append(text)
        for job_id in jobs:
            assert (await bench.job(job_id)).status == JobStatus.DONE, bench.log()
        last = await asyncio.to_thread(scrape, port)

    assert busiest == AT_ONCE, "it was not busy"
    assert all(most[purpose] <= BUDGET[purpose] for purpose in most), most
    assert total <= sum(BUDGET.values())
    assert last is not None
    assert value(last, "worker_job_duration_seconds_count", queue="clip", outcome="done") == JOBS
    assert value(last, "worker_snapshot_age_seconds") < 60
    assert max(value(text, "worker_concurrent_jobs") for text in told) == AT_ONCE
    seen = [value(text, "worker_active_jobs", queue="clip") for text in told if "worker_active_jobs{" in text]
    assert seen
    assert max(seen) <= AT_ONCE
    # No label carries an id of a job, or of anything else that grows.
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}", "".join(told) + last)
