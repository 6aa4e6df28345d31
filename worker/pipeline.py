"""The pipeline: the stages that make clips, with everything they hold and the limits they keep."""

import asyncio
from contextlib import AsyncExitStack

from aiohttp.abc import AbstractResolver

from worker.asr import AsrOptions, open_recognizer
from worker.continuation.consolidate import PagedClip, PagedFinalize, PagedListener
from worker.continuation.look import LookFirst
from worker.continuation.page import PageAsr, PageClip, PageFinalize, PageResolve, PageUpload
from worker.continuation.split import Splitting
from worker.continuation.store import RunStore
from worker.domain.paging import PAGE_QUEUE, Paging
from worker.media.apart import Prober
from worker.media.captions import CaptionsMaker
from worker.media.cut import Cutter
from worker.media.encoding import ENCODERS
from worker.media.extras import ExtrasMaker
from worker.media.ffmpeg import find_ffmpeg
from worker.media.joining import PageJoiner
from worker.media.pages import PageCutter
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
from worker.stages.asr import Asr, DirectListener
from worker.stages.base import Courses
from worker.stages.captions import CaptionsStep
from worker.stages.clip import Clip, DirectClip
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


async def media_courses(
    settings: Settings,
    storage: Storage,
    runs: RunStore,
    stack: AsyncExitStack,
    *,
    resolver: AbstractResolver | None = None,
) -> Courses:
    """What a worker does with a job, and with a page of one; `stack` closes what the stages hold.

    `resolver` looks up names of hosts.
    """
    sources = await open_sources(settings, stack, resolver=resolver)
    prober = await stack.enter_async_context(Prober())
    recognizer = open_recognizer(asr_options(settings))
    if recognizer is not None:
        stack.push_async_callback(recognizer.close)
    ffmpeg = await asyncio.to_thread(find_ffmpeg, settings.ffmpeg)
    limits, encoder = child_limits(settings), ENCODERS[settings.video_encoder]
    cutter = Cutter(ffmpeg, limits=limits, encoder=encoder)
    pages = PageCutter(ffmpeg, limits=limits, encoder=encoder)
    maker = ExtrasMaker(ffmpeg, limits=limits, encoder=encoder)
    extras = ExtrasStep(maker, storage, has_recognizer=recognizer is not None)
    captions = CaptionsStep(CaptionsMaker(ffmpeg, limits=limits, encoder=encoder), storage)
    bounds = Bounds(settings.source_max_mb * MEGABYTE, settings.clip_max_output_mb * MEGABYTE)
    splitting = Splitting(paging_of(settings), has_recognizer=recognizer is not None)
    clips = PagedClip(DirectClip(cutter), PageJoiner(limits=limits), runs, storage, splitting)
    listener = PagedListener(DirectListener(maker, recognizer), runs)
    return Courses(
        jobs=[
            [LookFirst(Resolve(sources, prober, bounds=bounds), runs)],
            [Clip(clips, extras, storage)],
            # The one waits for the network, the other computes.
            [Upload(storage), Asr(listener, captions, storage)],
            [PagedFinalize(Finalize(storage), storage)],
        ],
        pages=[
            [PageResolve(sources, runs)],
            [PageClip(pages, cutter, storage)],
            [PageUpload(storage), PageAsr(pages, recognizer)],
            [PageFinalize()],
        ],
    )


def paging_of(settings: Settings) -> Paging | None:
    """None: this worker takes no pages, and cannot know whether anybody does."""
    if PAGE_QUEUE not in settings.queues:
        return None
    return Paging(settings.page_threshold_sec, settings.page_sec, settings.max_partitions)


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


def asr_options(settings: Settings) -> AsrOptions:
    return AsrOptions(
        engine=settings.asr_engine,
        url=settings.asr_url,
        model=settings.asr_model,
        api_key=settings.asr_api_key,
        device=settings.asr_device,
        compute_type=settings.asr_compute_type,
        timeout_seconds=settings.asr_timeout_sec,
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
