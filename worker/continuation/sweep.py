"""Removes what pages stored for jobs that are over. Failed and cancelled ones may be revived for a day."""

import structlog

from worker.continuation.artifacts import remove_pages
from worker.continuation.store import LeftoverRun, RunStore
from worker.domain.request import parse_request
from worker.errors import InvalidRequest
from worker.storage.base import Storage

log = structlog.get_logger(__name__)


class PageSweep:
    def __init__(self, runs: RunStore, storage: Storage) -> None:
        self._runs = runs
        self._storage = storage

    async def run_once(self) -> None:
        for run in await self._runs.leftovers():
            await self._remove(run)
            await self._runs.note_cleaned(run.id)

    async def _remove(self, run: LeftoverRun) -> None:
        try:
            request = parse_request(run.spec)
        except InvalidRequest as exc:
            # of another release; nobody knows where its pages lie, and others wait for their turn
            log.warning("pages_not_found", job_id=str(run.id), error=str(exc))
            return
        await remove_pages(self._storage, request, run.id, run.chains)
        log.info("pages_swept", job_id=str(run.id))
