"""Removes what pages stored for jobs that are over. Failed and cancelled ones may be revived for a day."""

import structlog

from worker.continuation.artifacts import remove_pages
from worker.continuation.store import RunStore
from worker.domain.request import parse_request
from worker.storage.base import Storage

log = structlog.get_logger(__name__)


class PageSweep:
    def __init__(self, runs: RunStore, storage: Storage) -> None:
        self._runs = runs
        self._storage = storage

    async def run_once(self) -> None:
        for run in await self._runs.leftovers():
            await remove_pages(self._storage, parse_request(run.spec), run.id, run.chains)
            await self._runs.note_cleaned(run.id)
            log.info("pages_swept", job_id=str(run.id))
