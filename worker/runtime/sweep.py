"""Tidies up after workers that are gone: jobs nobody will deliver, scratch directories, uploads that were cut off."""

import asyncio

import structlog

from worker.jobs.strays import Strays
from worker.runtime.scratch import Scratch
from worker.storage.base import Storage
from worker.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)

#: no upload takes that long; younger ones may still be under way
STALE_UPLOAD_SECONDS = 24 * 60 * 60.0


class StraySweep:
    def __init__(self, strays: Strays, *, metrics: Metrics) -> None:
        self._strays = strays
        self._metrics = metrics

    async def run_once(self) -> None:
        for status, count in (await self._strays.settle()).items():
            self._metrics.recovered_jobs.labels(reason=f"stray_{status}").inc(count)
            log.warning("strays_settled", status=status, count=count)


class LeftoverSweep:
    def __init__(self, scratch: Scratch, storage: Storage) -> None:
        self._scratch = scratch
        self._storage = storage

    async def run_once(self) -> None:
        if rooms := await asyncio.to_thread(self._scratch.sweep):
            log.info("scratch_swept", directories=rooms)
        if uploads := await self._storage.sweep(older_than_seconds=STALE_UPLOAD_SECONDS):
            log.info("uploads_swept", uploads=uploads)
