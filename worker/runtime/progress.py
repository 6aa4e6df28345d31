"""Writes how far the running jobs are, all in one statement, and only what changed."""

from worker.domain.job import Lease
from worker.jobs.store import JobStore
from worker.runtime.active import ActiveJobs

#: a change smaller than this is not worth a write
LEAST_CHANGE = 0.01


class ProgressWriter:
    def __init__(self, store: JobStore, active: ActiveJobs) -> None:
        self._store = store
        self._active = active
        self._written: dict[Lease, float] = {}

    async def run_once(self) -> None:
        current = {job.lease: job.progress for job in self._active if not job.is_recording}
        changed = {
            lease: progress
            for lease, progress in current.items()
            if progress - self._written.get(lease, 0.0) >= LEAST_CHANGE
        }
        if changed:
            await self._store.note_progress(changed)
        # Rebuilt, so that finished jobs fall out.
        self._written = {lease: changed.get(lease, self._written.get(lease, 0.0)) for lease in current}
