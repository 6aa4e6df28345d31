"""What `doctor` looks at, each look bounded in time."""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from worker import __version__
from worker.app import open_bare_pool, open_checked_storage
from worker.asr import open_recognizer
from worker.cli.command import explain
from worker.cli.present import readable_bytes
from worker.db.migrate import require_migrated
from worker.db.pool import Pool, where
from worker.errors import ConfigError, QueueMissing
from worker.media.ffmpeg import ffmpeg_version, find_ffmpeg
from worker.media.process import Limits, run_child
from worker.pipeline import asr_options
from worker.queue import PgBoss
from worker.queue.schema import attach_schema, read_version
from worker.settings import Settings, load_settings

#: what the stages have ffmpeg write: clip, sound, poster, speech for the recognizer
ENCODERS = ("libx264", "aac", "mjpeg", "pcm_s16le")
CHECK_SECONDS = 15.0
#: an embedded server may have to be made first
DATABASE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    ok: bool
    detail: str
    #: gave no answer, and still holds a thread or a connection
    is_hanging: bool = False


async def run_checks() -> AsyncIterator[Check]:
    yield Check("python", ok=True, detail=f"{sys.version.split()[0]}, clipboss {__version__}")
    try:
        settings = load_settings()
    except ConfigError as exc:
        yield Check("settings", ok=False, detail=f"{exc}; nothing else can be checked before this")
        return
    yield Check("settings", ok=True, detail="understood")
    yield await _bounded("ffmpeg", _ffmpeg(settings))
    yield await _bounded("speech", _speech(settings))
    yield await _bounded("scratch", asyncio.to_thread(_scratch, settings))
    yield await _bounded("storage", _storage(settings))
    async for check in _database_checks(settings):
        yield check


async def _bounded(name: str, look: Coroutine[Any, Any, str], *, seconds: float = CHECK_SECONDS) -> Check:
    task = asyncio.create_task(look)
    # Not wait_for: what hangs in a thread cannot be cancelled, and must not be waited for either.
    await asyncio.wait({task}, timeout=seconds)
    if not task.done():
        task.cancel()
        detail = f"no answer within {seconds:g} s: check the address, and what lies between here and there"
        return Check(name, ok=False, detail=detail, is_hanging=True)
    try:
        return Check(name, ok=True, detail=task.result())
    except Exception as exc:  # noqa: BLE001 - whatever is wrong is what was asked for
        return Check(name, ok=False, detail=explain(exc).message)


async def _ffmpeg(settings: Settings) -> str:
    binary = await asyncio.to_thread(find_ffmpeg, settings.ffmpeg)
    version = await ffmpeg_version(binary)
    listed = await run_child([str(binary), "-hide_banner", "-encoders"], limits=Limits(wall_seconds=10))
    known = set(listed.stdout.decode(errors="replace").split())
    if missing := [name for name in ENCODERS if name not in known]:
        raise ConfigError(
            f"{binary} ({version}) lacks the encoders {', '.join(missing)}: install a full build, "
            "or leave FFMPEG unset to use the one that comes with clipboss"
        )
    return f"{version} ({binary})"


async def _speech(settings: Settings) -> str:
    recognizer = open_recognizer(asr_options(settings))
    if recognizer is None:
        return "off: jobs get no transcript (ASR_ENGINE=none)"
    try:
        return await recognizer.engine.check()
    finally:
        await recognizer.close()


def _scratch(settings: Settings) -> str:
    folder = settings.scratch_dir.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError as exc:
        raise ConfigError(f"SCRATCH_DIR={folder} cannot be written to: {exc.strerror or exc}") from exc
    least = settings.scratch_min_free_mb * 2**20
    if free < least:
        raise ConfigError(
            f"{readable_bytes(free)} free in {folder}, SCRATCH_MIN_FREE_MB asks for {readable_bytes(least)}: "
            "make room or choose another SCRATCH_DIR"
        )
    return f"{folder}, {readable_bytes(free)} free"


async def _storage(settings: Settings) -> str:
    async with AsyncExitStack() as stack:
        await open_checked_storage(settings, stack)
    return f"{settings.artifacts_url} can be written to"


async def _database_checks(settings: Settings) -> AsyncIterator[Check]:
    async with AsyncExitStack() as stack:
        pools: list[Pool] = []

        async def connect() -> str:
            pools.append(await stack.enter_async_context(open_bare_pool(settings, role="doctor")))
            version = await pools[0].fetchval("SHOW server_version")
            if settings.database_url is None:
                return f"PostgreSQL {version}, embedded (DATABASE_URL is not set)"
            return f"PostgreSQL {version} at {where(settings.database_url.get_secret_value())}"

        database = await _bounded("database", connect(), seconds=DATABASE_SECONDS)
        yield database
        if not database.ok:
            return
        pool = pools[0]
        if settings.database_url is None and await read_version(pool, settings.queue_schema) is None:
            yield Check("tables", ok=True, detail="none yet; made on first use of the embedded database")
            return
        yield await _bounded("tables", _tables(pool, settings))
        yield await _bounded("pg-boss", _queue_schema(pool, settings))
        yield await _bounded("queues", _queues(pool, settings))


async def _tables(pool: Pool, settings: Settings) -> str:
    await require_migrated(pool, queue_schema=settings.queue_schema)
    return "up to date"


async def _queue_schema(pool: Pool, settings: Settings) -> str:
    version = await attach_schema(pool, settings.queue_schema, allow_newer=settings.queue_allow_newer)
    return f"schema {settings.queue_schema}, version {version}"


async def _queues(pool: Pool, settings: Settings) -> str:
    boss = await PgBoss.attach(pool, schema=settings.queue_schema)
    missing = [name for name in settings.queues if await boss.get_queue(name) is None]
    if missing:
        raise QueueMissing(f"{', '.join(missing)} missing; `python -m worker migrate` creates them")
    return ", ".join(settings.queues)
