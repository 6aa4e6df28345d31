"""The pipeline: the stages that make clips, with everything they hold and the limits they keep."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from aiohttp.abc import AbstractResolver

from worker.asr import open_recognizer
from worker.asr.none import NoRecognizer
from worker.media.apart import Prober
from worker.media.cut import Cutter
from worker.media.encoding import ENCODERS
from worker.media.extras import ExtrasMaker
from worker.media.ffmpeg import find_ffmpeg
from worker.media.process import Limits
from worker.s3 import S3Connection, S3Options
from worker.settings import Settings
from worker.sources.address import AddressPolicy
from worker.sources.catalog import SourceCatalog
from worker.sources.file import FileSource
from worker.sources.gateway import Gateway
from worker.sources.http import HttpSource, Spool
from worker.sources.http_client import HttpTimeouts
from worker.sources.playlists import Playlists
from worker.sources.s3 import S3Source
from worker.sources.slots import HostSlots
from worker.sources.ytdlp import YtdlpSource
from worker.sources.ytdlp_run import YtdlpOptions
from worker.stages.asr import Asr
from worker.stages.base import Stage
from worker.stages.clip import Clip
from worker.stages.extras import ExtrasStep
from worker.stages.finalize import Finalize
from worker.stages.resolve import Resolve
from worker.stages.room import Bounds
from worker.stages.upload import Upload
from worker.storage.base import Storage

MEGABYTE = 2**20
#: an ffmpeg that makes no progress for this long hangs
STALL_SECONDS = 120.0
#: its libraries, a source, an output and pipes; what needs more is up to something
OPEN_FILES = 64


async def media_stages(
    settings: Settings, storage: Storage, stack: AsyncExitStack, *, resolver: AbstractResolver | None = None
) -> Sequence[Stage]:
    """What a worker does with a job; `stack` closes what the stages hold. `resolver` looks up names of hosts."""
    sources = await open_sources(settings, stack, resolver=resolver)
    prober = await stack.enter_async_context(Prober())
    recognizer = open_recognizer(settings.asr_engine)
    stack.push_async_callback(recognizer.close)
    ffmpeg = await asyncio.to_thread(find_ffmpeg, settings.ffmpeg)
    limits, encoder = child_limits(settings), ENCODERS[settings.video_encoder]
    maker = ExtrasMaker(ffmpeg, limits=limits, encoder=encoder)
    extras = ExtrasStep(maker, storage, has_recognizer=not isinstance(recognizer, NoRecognizer))
    return [
        Resolve(
            sources, prober, bounds=Bounds(settings.source_max_mb * MEGABYTE, settings.clip_max_output_mb * MEGABYTE)
        ),
        Clip(Cutter(ffmpeg, limits=limits, encoder=encoder), extras, storage),
        Upload(storage),
        Asr(maker, recognizer, storage),
        Finalize(storage),
    ]


async def open_sources(
    settings: Settings, stack: AsyncExitStack, *, resolver: AbstractResolver | None = None
) -> SourceCatalog:
    gateway = await stack.enter_async_context(Gateway(max_bytes=settings.source_max_mb * MEGABYTE))
    s3 = S3Connection(s3_options(settings))
    stack.push_async_callback(s3.close)
    slots = HostSlots(settings.source_connections)
    policy = AddressPolicy(settings.allow_private_sources, settings.private_source_networks)
    playlists = Playlists(gateway)
    scratch = settings.scratch_dir.absolute()
    http = HttpSource(
        gateway,
        policy=policy,
        spool=Spool(scratch / "spool", settings.source_spool_max_mb * MEGABYTE),
        timeouts=HttpTimeouts(read_seconds=settings.source_read_timeout_sec),
        resolver=resolver,
        slots=slots,
        open_playlist=playlists.open,
    )
    proxy = settings.ytdlp_proxy
    pages = YtdlpSource(
        http,
        playlists,
        YtdlpOptions(settings.ytdlp_timeout_sec, scratch / "ytdlp", settings.ytdlp_cookies),
        policy=policy,
        resolver=resolver,
        proxy=proxy.get_secret_value() if proxy else None,
    )
    files = FileSource([root.absolute() for root in settings.local_source_roots])
    return SourceCatalog([http, S3Source(gateway, s3, slots=slots), files, pages])


def child_limits(settings: Settings) -> Limits:
    return Limits(
        settings.clip_timeout_sec,
        stall_seconds=STALL_SECONDS,
        file_bytes=settings.clip_max_output_mb * MEGABYTE,
        cpu_seconds=settings.clip_max_cpu_sec,
        memory_bytes=settings.clip_max_memory_mb * MEGABYTE,
        open_files=OPEN_FILES,
    )


def s3_options(settings: Settings) -> S3Options:
    secret, session = settings.aws_secret_access_key, settings.aws_session_token
    return S3Options(
        endpoint_url=settings.s3_endpoint_url,
        region=settings.aws_region,
        access_key_id=settings.aws_access_key_id,
        secret_access_key=secret.get_secret_value() if secret else None,
        session_token=session.get_secret_value() if session else None,
    )
