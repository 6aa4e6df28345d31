"""`run` and `up`: a worker in this process."""

import asyncio
import time

import click
import structlog

from worker.cli.command import Face, command, how_to_call
from worker.errors import ClipbossError
from worker.settings import Settings, load_settings
from worker.telemetry.logs import configure_logging

log = structlog.get_logger(__name__)


@command("run")
@click.option("--drain", is_flag=True, help="Stop when no due work is left.")
async def run(face: Face, *, drain: bool) -> None:
    """Take jobs from the queues and work on them until SIGTERM or Ctrl-C.

    The first signal lets running jobs finish (SHUTDOWN_TIMEOUT_SEC), a second one hands them back at once.
    With --json the logs are JSON too, and the last line on stdout tells how it ended.
    """
    await _work(face, _settings(face), drain=drain, greet=False)


@command("up")
async def up(face: Face) -> None:
    """Database and worker in one process, for trying things out.

    Uses DATABASE_URL if it is set, else the embedded PostgreSQL; tables and queues are made there if they are missing.
    """
    await _work(face, _settings(face), drain=False, greet=True)


def _settings(face: Face) -> Settings:
    settings = load_settings()
    level = "debug" if face.is_debugging else settings.log_level
    configure_logging("json" if face.out.as_json else settings.log_format, level)
    return settings


async def _work(face: Face, settings: Settings, *, drain: bool, greet: bool) -> None:
    started = time.monotonic()
    try:
        await _supervise(face, settings, drain=drain, greet=greet)
    except (ClipbossError, asyncio.CancelledError):
        raise
    except Exception:
        # Nobody can be asked to make it happen again with more logging.
        log.exception("worker_crashed")
        raise
    if face.out.as_json:
        face.out.value({"stopped": True, "drained": drain, "seconds": round(time.monotonic() - started, 3)})


async def _supervise(face: Face, settings: Settings, *, drain: bool, greet: bool) -> None:
    # Imported late, so that a wrong setting is told at once.
    from worker.app import install, open_app, open_bare_pool, open_worker  # noqa: PLC0415
    from worker.runtime.supervisor import stop_on_signals  # noqa: PLC0415

    if greet and settings.database_url is not None:
        async with open_bare_pool(settings, role="up") as pool:
            await install(pool, settings)
    say = _say_nothing if greet else _say
    async with open_app(settings, role="worker", say=say) as app, open_worker(app) as supervisor:
        stop_on_signals(supervisor.stop)
        if greet:
            _greet(face, app.dsn, settings)
        await supervisor.run(drain=drain)


def _say(line: str) -> None:
    log.info("database_embedded", detail=line)


def _say_nothing(_line: str) -> None:
    """The greeting tells it."""


def _greet(face: Face, dsn: str, settings: Settings) -> None:
    if face.out.as_json:
        return
    call = how_to_call()
    is_embedded = settings.database_url is None
    roots = ", ".join(str(root.absolute()) for root in settings.local_source_roots)
    face.out.line("clipboss is up; Ctrl-C stops it.", "bold green")
    # The embedded server listens on loopback only and was made for this; anybody else's password stays hidden.
    face.out.line(f"  database     {f'psql {dsn}' if is_embedded else 'as in DATABASE_URL'}")
    face.out.line(f"  artifacts    {settings.artifacts_url}")
    face.out.line(f"  queues       {', '.join(settings.queues)}")
    face.out.line(f"  local files  {roots or 'none; name their folders in LOCAL_SOURCE_ROOTS to allow some'}")
    face.out.line("In another terminal:", "bold")
    face.out.line(f"  {call} submit https://example.com/talk.mp4 --start 1:01.5 --end 1:32 --wait")
    face.out.line(f"  {call} jobs list")
