"""The store with its fences taken out: what every test of leases must be able to tell from the real one."""

import copy
from collections.abc import Mapping

from worker.db.pool import Pool
from worker.jobs.store import JobStore
from worker.queue import PgBoss

#: by statement, each fence and the condition that is always true in its place; parameters stay, or their types are lost
STORE_FENCES: Mapping[str, Mapping[str, str]] = {
    "beat": {
        "job.retry_count = held.retry_count": "held.retry_count IS NOT NULL",
        "mine.lease_token = held.token": "held.token IS NOT NULL",
    },
    "close": {"mine.lease_token = $2": "$2::bigint IS NOT NULL"},
    "finish": {
        "job.retry_count = $4": "$4::int IS NOT NULL",
        "held.lease_token = $3": "$3::bigint IS NOT NULL",
        "mine.lease_token = $3": "$3::bigint IS NOT NULL",
    },
    "note_progress": {"mine.lease_token = told.token": "told.token IS NOT NULL"},
    "note_stage": {"mine.lease_token = $2": "$2::bigint IS NOT NULL"},
    "release": {"mine.lease_token = held.token": "held.token IS NOT NULL"},
}
QUEUE_FENCES: Mapping[str, Mapping[str, str]] = {
    "fail": {"job.retry_count = asked.retry_count": "asked.retry_count IS NOT NULL"},
}


class UnfencedStore(JobStore):
    """Any worker may write for any running job, whoever holds its lease now."""

    def __init__(self, pool: Pool, queue: PgBoss, lease_seconds: float) -> None:
        # A client of its own: the caller's is shared with code that must stay fenced.
        unfenced = copy.copy(queue)
        unfenced._sql = without_fences(queue._sql, QUEUE_FENCES)
        super().__init__(pool, unfenced, lease_seconds)
        self._sql = without_fences(self._sql, STORE_FENCES)


def without_fences(queries: Mapping[str, str], fences: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    changed = dict(queries)
    for name, substitutions in fences.items():
        for fence, always in substitutions.items():
            assert changed[name].count(fence) == 1, f"{name}.sql has no fence {fence!r} to take out"
            changed[name] = changed[name].replace(fence, always)
    return changed
