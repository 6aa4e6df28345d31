"""All real parts of a run, on loopback: PostgreSQL, S3, proxies in front of both, an origin, and the workers."""

import asyncio
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.chaos.fleet import Fleet, Launch, WorkerProcess, inherited_environment
from tests.chaos.pgbouncer import pgbouncer
from tests.chaos.postgres import AWAY, ChaosPostgres
from tests.chaos.proxy import FaultProxy
from tests.chaos.s3_faults import S3FaultProxy
from tests.chaos.trace import is_ready
from tests.chaos.workload import Mix, Workload
from tests.servers import S3Server, range_server, seaweedfs
from worker.app import install
from worker.db.pool import open_pool
from worker.media.sample import make_sample
from worker.settings import Settings

#: one worker in so many goes through PgBouncer, if there is one
POOLED_EVERY = 4


@dataclass(frozen=True, slots=True)
class Pace:
    """Settings of the workers, shortened so that minutes show what takes hours."""

    lease_seconds: float = 3.0
    beat_seconds: float = 0.5
    scan_seconds: float = 0.5
    poll_seconds: float = 0.2
    max_concurrency: int = 8
    shutdown_seconds: float = 1.0


#: changes how a process is started; returns the change
Trait = Callable[[Launch, str], Launch]


@dataclass(slots=True)
class Rig:
    directory: Path
    pace: Pace
    seed: str
    postgres: ChaosPostgres
    s3: S3Server
    s3_faults: S3FaultProxy
    #: one in front of the database for each worker
    proxies: list[FaultProxy]
    workload: Workload
    store: str = "fenced"
    #: port of PgBouncer, if it runs
    pooled_port: int | None = None
    traits: list[Trait] = field(default_factory=list)
    #: jobs whose pg-boss rows were moved by the harness, by deed
    node_deeds: dict[str, set[str]] = field(default_factory=dict)
    fleet: Fleet = field(init=False)
    mark: str = field(default_factory=lambda: uuid4().hex)

    def __post_init__(self) -> None:
        self.fleet = Fleet(len(self.proxies), self._launch, logs=self.logs, thaw_seconds=2 * self.pace.lease_seconds)

    @property
    def logs(self) -> Path:
        return self.directory / "logs"

    @property
    def traces(self) -> Path:
        return self.directory / "traces"

    @property
    def scratch(self) -> Path:
        return self.directory / "scratch"

    def plain_launch(self, port: int) -> Launch:
        return Launch(
            {
                **inherited_environment(),
                "CHAOS_RUN": self.mark,
                "CHAOS_TRACES": str(self.traces),
                "CHAOS_STORE": self.store,
                "DATABASE_URL": self.postgres.dsn(port),
                "QUEUES": "clip",
                "MAX_CONCURRENCY": str(self.pace.max_concurrency),
                "POLL_INTERVAL_SEC": str(self.pace.poll_seconds),
                "HEARTBEAT_INTERVAL_SEC": str(self.pace.beat_seconds),
                "LEASE_TIMEOUT_SEC": str(self.pace.lease_seconds),
                "RECOVERY_SCAN_INTERVAL_SEC": str(self.pace.scan_seconds),
                "SHUTDOWN_TIMEOUT_SEC": str(self.pace.shutdown_seconds),
                "SCRATCH_DIR": str(self.scratch),
                "STORAGE_URL": f"s3://{self.s3.bucket}/out",
                "S3_ENDPOINT_URL": self.s3_faults.url,
                "AWS_ACCESS_KEY_ID": self.s3.access_key,
                "AWS_SECRET_ACCESS_KEY": self.s3.secret_key,
                "LOCAL_SOURCE_ROOTS": str(self.directory / "media"),
                "ALLOW_PRIVATE_SOURCES": "true",
                "ASR_ENGINE": "none",
                "LOG_FORMAT": "json",
            }
        )

    def _launch(self, slot: int, name: str) -> Launch:
        launch = self.plain_launch(self.proxies[slot].port)
        for trait in self.traits:
            launch = trait(launch, name)
        return launch

    def is_pooled(self, slot: int) -> bool:
        return self.pooled_port is not None and slot % POOLED_EVERY == 1

    def at_work(self) -> list[WorkerProcess]:
        """Those that live, have started, and are not frozen."""
        working = [worker for worker in self.fleet.alive() if not worker.is_frozen]
        return [worker for worker in working if is_ready(self.traces, worker.name)]

    async def counts(self) -> Counter[str]:
        """Jobs by status, as the database has them now; empty while it is away."""
        with suppress(*AWAY):
            connection = await self.postgres.connect()
            try:
                rows = await connection.fetch(
                    """
                    SELECT CASE WHEN ours.status = 'queued' AND theirs.state = 'cancelled'
                                THEN 'cancelled' ELSE ours.status END AS status, count(*)
                    FROM worker.jobs ours JOIN pgboss.job theirs ON theirs.name = ours.queue AND theirs.id = ours.id
                    GROUP BY 1
                    """
                )
                # not empty, though there may be no job yet
                return Counter({"queued": 0} | {row["status"]: row["count"] for row in rows})
            finally:
                connection.terminate()
        return Counter()

    async def wait_until_ended(self, *, seconds: float) -> bool:
        """Whether every job came to its end in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            counts = await self.counts()
            if counts and not counts["queued"] and not counts["processing"]:
                return True
            await asyncio.sleep(0.25)
        return False

    async def wait_while_jobs_end(self, *, patience_seconds: float) -> bool:
        """Whether every job came to its end, before none did for so long."""
        ended, patient_until = -1, time.monotonic() + patience_seconds
        while time.monotonic() < patient_until:
            counts = await self.counts()
            if counts and not counts["queued"] and not counts["processing"]:
                return True
            if (now_ended := counts["done"] + counts["failed"] + counts["cancelled"]) > ended:
                ended, patient_until = now_ended, time.monotonic() + patience_seconds
            await asyncio.sleep(0.25)
        return False

    def remember(self, deed: str, job_id: object) -> None:
        self.node_deeds.setdefault(deed, set()).add(str(job_id))


@asynccontextmanager
async def open_rig(
    *, seed: str, workers: int, pace: Pace, mix: Mix, store: str = "fenced", pooled: bool = False
) -> AsyncIterator[Rig]:
    """Everything started but the workers. The directory is removed at the end, unless it was moved away."""
    directory = Path(tempfile.mkdtemp(prefix="clipboss-chaos-"))
    directory.chmod(0o755)  # run by root, the database's server is somebody else and must get in
    for name in ("logs", "traces", "scratch", "media", "s3"):
        (directory / name).mkdir()
    async with AsyncExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        postgres = ChaosPostgres(directory / "postgres")
        await postgres.start()
        stack.push_async_callback(postgres.close)
        await _install(postgres)
        assert postgres.port is not None
        pooled_port = stack.enter_context(pgbouncer(postgres.port, postgres.password)) if pooled else None
        s3 = stack.enter_context(seaweedfs(directory / "s3"))
        s3_faults = await stack.enter_async_context(S3FaultProxy(s3.endpoint_url, seed=f"{seed}:s3"))
        proxies = [
            await stack.enter_async_context(FaultProxy(_target(postgres, pooled_port, slot))) for slot in range(workers)
        ]
        if mix.media:
            mix = await _with_sources(mix, directory / "media", stack)
        rig = Rig(
            directory, pace, seed, postgres, s3, s3_faults, proxies, Workload(mix, f"{seed}:jobs"), store, pooled_port
        )
        stack.push_async_callback(rig.fleet.kill_all)
        yield rig


def _target(postgres: ChaosPostgres, pooled_port: int | None, slot: int) -> int:
    assert postgres.port is not None
    return pooled_port if pooled_port is not None and slot % POOLED_EVERY == 1 else postgres.port


async def _install(postgres: ChaosPostgres) -> None:
    pool = await open_pool(postgres.dsn(), name="chaos")
    await install(pool, Settings(_env_file=None, queues=("clip",), max_attempts=3))
    await pool.close()


async def _with_sources(mix: Mix, media: Path, stack: AsyncExitStack) -> Mix:
    sample = await asyncio.to_thread(make_sample, media / "talk.mp4", seconds=8, size=(320, 180))
    origin = await stack.enter_async_context(range_server(media))
    fields: dict[str, Any] = {name: getattr(mix, name) for name in Mix.__dataclass_fields__}
    return Mix(**{**fields, "sources": (sample.as_uri(), origin.url(sample.name))})


def rng(rig: Rig, purpose: str) -> random.Random:
    """A source of chance of its own for each purpose: one lane more does not change what the others do."""
    return random.Random(f"{rig.seed}:{purpose}")
