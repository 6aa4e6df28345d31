"""Jobs as they are shown."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from worker.domain.job import JobId, JobStatus
from worker.jobs.desk import JobDetail

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def make_job() -> Callable[..., JobDetail]:
    def make(**facts: Any) -> JobDetail:
        known: dict[str, Any] = {
            "id": JobId(UUID(int=7)),
            "queue": "clip",
            "spec": {"source": "https://example.com/talk.mp4"},
            "status": JobStatus.QUEUED,
            "attempt_count": 0,
            "max_attempts": 3,
            "stage": None,
            "progress": 0.0,
            "error_code": None,
            "error_message": None,
            "created_at": MOMENT,
            "finished_at": None,
            "crash_count": 0,
            "result": None,
            "worker_id": None,
            "cancel_requested_at": None,
            "updated_at": MOMENT,
            "processing_started_at": None,
            "run_id": None,
        }
        return JobDetail(**known | facts)

    return make
