"""The composition root: with the pipeline, the only file that knows every class."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import structlog

from worker import __version__
from worker.continuation.store import RunStore
from worker.continuation.sweep import PageSweep
from worker.db.embedded import EmbeddedPostgres
from worker.db.listen import Listener
from worker.db.migrate import Migration, migrate, refuse_other_schema, require_migrated
from worker.db.pool import STATEMENT_TIMEOUT_SECONDS, Pool, open_pool
from worker.domain.paging import PAGE_QUEUE
from worker.jobs.backlog import Backlog
from worker.jobs.desk import JobDesk
from worker.jobs.recovery import StaleLeases
from worker.jobs.store import JobStore
from worker.jobs.strays import Strays
from worker.jobs.workers import Place, WorkerRows
from worker.pipeline import media_courses, s3_options
from worker.queue import PgBoss
from worker.runtime.active import ActiveJobs
from worker.runtime.dispatcher import Dispatcher
from worker.runtime.executor import Executor
from worker.runtime.heartbeat import Heartbeat
from worker.runtime.loop import PeriodicLoop
from worker.runtime.progress import ProgressWriter
from worker.runtime.pulse import Pulse, Ticker
from worker.runtime.recovery import RecoveryScanner
from worker.runtime.registry import Registry
from worker.runtime.scratch import Scratch
from worker.runtime.supervisor import Supervisor
from worker.runtime.sweep import LeftoverSweep, StraySweep
from worker.runtime.tally import Tally
from worker.runtime.upkeep import upkeep_loops
from worker.settings import Settings
from worker.stages.base import Courses
from worker.storage.base import Storage
from worker.storage.location import open_storage
from worker.telemetry.backlog import BacklogGauges
from worker.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)

#: with one connection for beats and one for LISTEN, a worker takes four
POOL_SIZE = 2
#: part of a lease after which its holder lets go of a job it could not renew; the rest is for killing children
HOLDS = 0.8
#: part of a lease for which the worker's loop may stand still before its beats are withheld
STALLED = 0.5
#: part of a lease after which a statement without an answer is given up: time is left to repeat it elsewhere
ANSWERED = 0.25
LEAST_TIMEOUT_SECONDS = 5.0
TICK_SECONDS = 0.25
#: how often holders look whether they must let go: a small part of what a lease leaves them for it
FENCE = 0.05
MOST_FENCE_SECONDS = 1.0
PROGRESS_SECONDS = 0.5
STRAY_SECONDS = 60.0
LEFTOVER_SECONDS = 600.0
#: of queues that we create: longer than pg-boss's 15 minutes, because media is long
EXPIRE_SECONDS = 2 * 60 * 60
RETRY_DELAY_SECONDS = 5
RETRY_DELAY_MAX_SECONDS = 300


@dataclass(frozen=True, slots=True)
class App:
    """An open database with clipboss in it."""

    settings: Settings
    dsn: str
    pool: Pool
    queue: PgBoss
    desk: JobDesk


@asynccontextmanager
async def open_app(
    settings: Settings, *, role: str, say: Callable[[str], None] = lambda _line: None
) -> AsyncIterator[App]:
    """Connect, to an embedded server when DATABASE_URL is not set; that one is kept up to date by itself."""
    async with _open_database(settings, role=role, say=say) as (dsn, pool):
        if settings.database_url is None:
            await install(pool, settings)
        else:
            await require_migrated(pool, queue_schema=settings.queue_schema)
        queue = await PgBoss.attach(pool, schema=settings.queue_schema, allow_newer=settings.queue_allow_newer)
        yield App(settings, dsn, pool, queue, JobDesk(pool, queue))


@asynccontextmanager
async def open_bare_pool(
    settings: Settings, *, role: str, say: Callable[[str], None] = lambda _line: None
) -> AsyncIterator[Pool]:
    """Connect without asking what is in the database: for `migrate` and `doctor`."""
    async with _open_database(settings, role=role, say=say) as (_dsn, pool):
        yield pool


async def install(pool: Pool, settings: Settings) -> list[Migration]:
    """Create or bring up to date: the queue's schema (only where there is none), our tables, the queues."""
    # Before anything is created: a database that belongs to another queue schema is left as it is.
    await refuse_other_schema(pool, queue_schema=settings.queue_schema)
    queue = await PgBoss.install(pool, schema=settings.queue_schema, allow_newer=settings.queue_allow_newer)
    applied = await migrate(pool, queue_schema=settings.queue_schema)
    await ensure_queues(queue, settings)
    return applied


async def ensure_queues(queue: PgBoss, settings: Settings) -> None:
    # pages of long jobs need theirs, whoever works on it
    for name in dict.fromkeys((*settings.queues, PAGE_QUEUE)):
        if await queue.get_queue(name) is None:
            await queue.create_queue(
                name,
                notify=True,
                retry_limit=settings.max_attempts - 1,
                retry_delay=RETRY_DELAY_SECONDS,
                retry_backoff=True,
                retry_delay_max=RETRY_DELAY_MAX_SECONDS,
                expire_in_seconds=EXPIRE_SECONDS,
            )


@asynccontextmanager
async def open_worker(
    app: App,
    *,
    make_courses: Callable[[Settings, Storage, RunStore, AsyncExitStack], Awaitable[Courses]] = media_courses,
    make_store: Callable[[Pool, PgBoss, float], JobStore] = JobStore,
) -> AsyncIterator[Supervisor]:
    """A worker, ready to `run()`; other courses make another kind of worker on the same machinery."""
    settings = app.settings
    metrics = Metrics()
    active = ActiveJobs()
    store = make_store(app.pool, app.queue, settings.lease_timeout_sec)
    runs = RunStore(app.pool, app.queue, store)
    ticker = Ticker(interval_seconds=TICK_SECONDS, stall_seconds=settings.lease_timeout_sec * STALLED, metrics=metrics)
    fence_seconds = min(MOST_FENCE_SECONDS, settings.lease_timeout_sec * FENCE)
    tally = Tally()
    name = f"clipboss:{socket.gethostname()}:{os.getpid()}"
    async with AsyncExitStack() as stack:
        storage = await open_checked_storage(settings, stack)
        scratch = Scratch(settings.scratch_dir, min_free_bytes=settings.scratch_min_free_mb * 2**20)
        leftovers, pages = LeftoverSweep(scratch, storage), PageSweep(runs, storage)
        if settings.metrics_port is not None:
            backlog = Backlog(app.pool, app.queue, settings.queues)
            metrics.registry.register(BacklogGauges(backlog.read, asyncio.get_running_loop()))
            server = metrics.serve(settings.metrics_port, host=settings.metrics_host, is_alive=ticker.is_moving)
            stack.callback(server.stop)
        await ensure_queues(app.queue, settings)
        executor = Executor(
            await make_courses(settings, storage, runs, stack),
            store=store,
            runs=runs,
            scratch=scratch,
            solitude=active.solitude,
            tally=tally,
            metrics=metrics,
        )
        heartbeat = Heartbeat(
            app.dsn,
            store,
            active,
            name=f"{name}:beats",
            timeout_seconds=settings.lease_timeout_sec * ANSWERED,
            is_alive=ticker.is_moving,
            metrics=metrics,
        )
        recovery = RecoveryScanner(
            StaleLeases(app.pool, app.queue, lease_seconds=settings.lease_timeout_sec),
            metrics=metrics,
        )
        # Before the first look for work: what was handed back is due again at once.
        await recovery.run_once()
        strays = StraySweep(Strays(app.pool, app.queue), metrics=metrics)
        progress = ProgressWriter(store, active)
        registry = make_registry(app, tally)
        dispatcher = Dispatcher(
            store,
            active,
            executor.run,
            queues=settings.queues,
            worker_id=lambda: registry.worker_id,
            max_concurrency=settings.max_concurrency,
            lease_holds_seconds=settings.lease_timeout_sec * HOLDS,
            metrics=metrics,
        )
        # Whoever rang while nothing could be taken was not heard.
        registry.on_registered = dispatcher.look_again
        # Last, so that nobody who fails to start is taken for dead, and first to be undone.
        stack.push_async_callback(registry.leave)
        await registry.register()
        yield Supervisor(
            dispatcher=dispatcher,
            active=active,
            beats=Pulse("heartbeat", heartbeat.run_once, heartbeat.close, seconds=settings.heartbeat_interval_sec),
            keeping=[
                PeriodicLoop("tick", ticker.run_once, interval_seconds=TICK_SECONDS),
                PeriodicLoop("fence", heartbeat.stop_expired, interval_seconds=fence_seconds),
                PeriodicLoop("progress", progress.run_once, interval_seconds=PROGRESS_SECONDS),
                *registry.loops(),
            ],
            taking=[
                PeriodicLoop("recovery", recovery.run_once, interval_seconds=settings.recovery_scan_interval_sec),
                PeriodicLoop("strays", strays.run_once, interval_seconds=STRAY_SECONDS),
                PeriodicLoop("leftovers", leftovers.run_once, interval_seconds=LEFTOVER_SECONDS),
                PeriodicLoop("pages", pages.run_once, interval_seconds=STRAY_SECONDS),
                *upkeep_loops(app.queue),
            ],
            make_listener=lambda on_job, on_cancel, on_ready: Listener(
                app.dsn,
                name=f"{name}:listen",
                channels={app.queue.channel: on_job, "worker_cancel": on_cancel},
                on_ready=on_ready,
            ),
            poll_seconds=settings.poll_interval_sec,
            shutdown_seconds=settings.shutdown_timeout_sec,
        )


def make_registry(app: App, tally: Tally) -> Registry:
    settings = app.settings
    return Registry(
        WorkerRows(app.pool, app.queue, timeout_seconds=_statement_timeout(settings)),
        tally,
        version=__version__,
        place=Place(socket.gethostname(), os.getpid(), settings.max_concurrency),
        queues=settings.queues,
        interval_seconds=settings.heartbeat_interval_sec,
        retention_seconds=settings.worker_retention_days * 24 * 60 * 60,
    )


async def open_checked_storage(settings: Settings, stack: AsyncExitStack) -> Storage:
    storage = open_storage(settings.artifacts_url, s3=s3_options(settings))
    stack.push_async_callback(storage.close)
    await storage.check()
    return storage


@asynccontextmanager
async def _open_database(
    settings: Settings, *, role: str, say: Callable[[str], None]
) -> AsyncIterator[tuple[str, Pool]]:
    async with AsyncExitStack() as stack:
        if settings.database_url is not None:
            dsn = settings.database_url.get_secret_value()
        else:
            embedded = EmbeddedPostgres(settings.scratch_dir.absolute() / "postgres")
            dsn = await stack.enter_async_context(embedded)
            say(f"DATABASE_URL is not set: using the embedded PostgreSQL in {embedded.home}")
        pool = await open_pool(
            dsn, name=f"clipboss:{role}", size=POOL_SIZE, timeout_seconds=_statement_timeout(settings)
        )
        stack.push_async_callback(_close_pool, pool)
        yield dsn, pool


def _statement_timeout(settings: Settings) -> float:
    return min(STATEMENT_TIMEOUT_SECONDS, max(LEAST_TIMEOUT_SECONDS, settings.lease_timeout_sec * ANSWERED))


async def _close_pool(pool: Pool) -> None:
    """A database that is away must not hold up the exit."""
    try:
        await asyncio.wait_for(pool.close(), 3)
    except TimeoutError:
        pool.terminate()
