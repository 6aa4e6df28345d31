"""Workers on a terminal: what matters fits."""

from datetime import UTC, datetime
from unittest.mock import PropertyMock, patch
from uuid import UUID

import pytest

from worker.cli.output import Output
from worker.cli.workers import tell_workers
from worker.domain.job import JobId, WorkerId
from worker.domain.worker import WorkerState
from worker.jobs.workers import HeldJob, QueueCount, WorkerSummary

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
JOB = HeldJob(JobId(UUID(int=9)), "clip", None, 0.0, 2, {"source": "https://example.com/talk.mp4"}, 65.0)
WORKER = WorkerSummary(
    id=WorkerId(UUID(int=7)),
    state=WorkerState.DEAD,
    version="1.2.3",
    host="host-a",
    pid=17,
    slots=2,
    expected_seconds=10.0,
    silent_seconds=3700.0,
    started_at=MOMENT.replace(hour=2),
    last_heartbeat=MOMENT,
    stopped_at=None,
    successes=5,
    errors=1,
    last_error="CLIP_FAILED: no",
    last_error_at=MOMENT,
    queues=(QueueCount("clip", 6, None),),
    jobs=(JOB,),
)


def test_terminal_shows_short_ids_and_the_last_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    with patch.object(Output, "is_terminal", new_callable=PropertyMock, return_value=True):
        tell_workers(Output(), [WORKER])
    assert capsys.readouterr().out.splitlines() == [
        "id        state  heard   jobs  done  errors  where      up  last error",
        "00000000  dead   1h ago  1/2   5     1       host-a:17  1h  CLIP_FAILED: no",
        "",
        "worker    job       queue  stage        try  for  what",
        "00000000  00000000  clip   starting 0%  2    1m   talk.mp4",
    ]
