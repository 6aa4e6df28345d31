"""Speech in a whole worker: an engine that dies costs an attempt at most, and never the clip."""

import asyncio
import json
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.jobs import both_tables
from tests.processes import Bench, all_gone, eventually
from worker.domain.job import JobStatus
from worker.media.sample import make_sample

DONE, FAILED = JobStatus.DONE, JobStatus.FAILED
SPEECH = {"ASR_ENGINE": "moonshine"}
#: nobody listens there
NO_SERVER = {"ASR_ENGINE": "http", "ASR_URL": "http://127.0.0.1:9/v1"}


@pytest.fixture(scope="session")
def lecture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Long enough to be met in the middle of its recognition."""
    return make_sample(tmp_path_factory.mktemp("lecture") / "lecture.mp4", seconds=80, size=(160, 90), fps=10)


def engine_of(worker: subprocess.Popen[bytes]) -> psutil.Process | None:
    for child in psutil.Process(worker.pid).children():
        if "worker.asr.moonshine_child" in child.cmdline():
            return child
    return None


async def busy_engine(bench: Bench, worker: subprocess.Popen[bytes]) -> psutil.Process:
    """Once it has loaded its weights and hears."""

    async def is_busy() -> psutil.Process | None:
        engine = engine_of(worker)
        return engine if engine and sum(engine.cpu_times()[:2]) > 2.5 else None

    return await eventually(is_busy, tell=bench.log)


async def test_engine_killed_in_the_middle_costs_one_attempt_and_disturbs_nobody(bench: Bench, lecture: Path) -> None:
    heard = await bench.submit(source=lecture.as_uri(), poster=False)
    mute = await bench.submit(source=lecture.as_uri(), end=2, poster=False, transcript=False)
    env = {**SPEECH, "LOCAL_SOURCE_ROOTS": str(lecture.parent), "MAX_CONCURRENCY": "2"}
    await bench.room.pool.execute("UPDATE pgboss.job SET retry_delay = 0, retry_backoff = false")
    with bench.worker(**env) as worker:
        await bench.wait_for_event(heard, "stage:started", "asr")
        engine = await busy_engine(bench, worker)
        engine.kill()
        job = await bench.wait_for(heard, DONE, FAILED)
        second = engine_of(worker)
        assert second is not None
        worker.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(worker.wait, 30) == 0
        assert await all_gone([second], seconds=2)
    assert (job.status, job.attempt_count) == (DONE, 1), job.error_message
    assert job.result is not None
    assert "best of times" in job.result["transcript"]
    events = await bench.room.desk.events(heard)
    [failure] = [event for event in events if event.kind == "stage:failed"]
    assert failure.data is not None
    assert (failure.data["stage"], failure.data["code"]) == ("asr", "ASR_UNAVAILABLE")
    assert "SIGKILL" in failure.data["message"]
    # The clip of the first attempt was stored although its speech was lost.
    skipped = [(event.data or {}).get("kind") for event in events if event.kind == "skipped:artifact-exists"]
    assert "clip" in skipped
    assert (await bench.job(mute)).attempt_count == 0
    assert await both_tables(bench.room, mute) == ("done", "completed")


async def test_sigterm_in_the_middle_of_recognition_leaves_no_process(bench: Bench, lecture: Path) -> None:
    job_id = await bench.submit(source=lecture.as_uri(), poster=False)
    env = {**SPEECH, "LOCAL_SOURCE_ROOTS": str(lecture.parent), "SHUTDOWN_TIMEOUT_SEC": "0.2"}
    with bench.worker(**env) as worker:
        await bench.wait_for_event(job_id, "stage:started", "asr")
        engine = await busy_engine(bench, worker)
        children = psutil.Process(worker.pid).children(recursive=True)
        worker.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(worker.wait, 30) == 0
        assert await all_gone([engine, *children], seconds=2)
    assert [event.kind for event in await bench.room.desk.events(job_id)][-1] == "aborted:shutdown"


async def test_upload_does_not_wait_for_speech(bench: Bench, lecture: Path) -> None:
    job_id = await bench.submit(source=lecture.as_uri(), end=20, poster=False)
    done = await bench.run("run", "--drain", **SPEECH, LOCAL_SOURCE_ROOTS=str(lecture.parent))
    assert done.returncode == 0, done.stderr
    told = [
        (event.kind, (event.data or {}).get("stage"))
        for event in await bench.room.desk.events(job_id)
        if event.kind in {"stage:started", "stage:finished"}
    ]
    assert told.index(("stage:started", "asr")) < told.index(("stage:finished", "upload"))
    assert told.index(("stage:finished", "upload")) < told.index(("stage:finished", "asr"))
    assert told[-1] == ("stage:finished", "finalize")


async def test_clip_without_transcript_is_done_if_that_was_allowed(bench: Bench) -> None:
    talk = (bench.media / "talk.mp4").as_uri()
    easy = await bench.submit(source=talk, end=4, transcript="best-effort", captions="burn")
    strict = await bench.submit(source=talk, end=4, transcript="required")
    await bench.room.pool.execute("UPDATE pgboss.job SET retry_limit = 0")
    done = await bench.run("run", "--drain", **NO_SERVER)
    assert done.returncode == 0, done.stderr
    job = await bench.job(easy)
    assert job.status == DONE, job.error_message
    assert job.result is not None
    assert job.result["transcript"] is None
    assert job.result["transcript_error"]["code"] == "ASR_UNAVAILABLE"
    assert "127.0.0.1:9" in job.result["transcript_error"]["message"]
    assert {artifact["kind"] for artifact in job.result["artifacts"]} == {"clip", "poster"}
    [skipped] = [event for event in await bench.room.desk.events(easy) if event.kind == "skipped:no-transcript"]
    assert skipped.data is not None
    assert skipped.data["code"] == "ASR_UNAVAILABLE"
    failed = await bench.job(strict)
    assert (failed.status, failed.error_code) == (FAILED, "RETRIES_EXHAUSTED")
    assert "ASR_UNAVAILABLE" in (failed.error_message or "")


async def test_engine_that_refuses_the_language_is_no_reason_to_lose_the_clip(bench: Bench) -> None:
    spec = {"source": (bench.media / "talk.mp4").as_uri(), "end": 2, "language": "de", "transcript": "best-effort"}
    job_id = await bench.submit(**spec)
    assert (await bench.run("run", "--drain", **SPEECH)).returncode == 0
    job = await bench.job(job_id)
    assert job.result is not None
    assert json.dumps(job.result["transcript_error"]).count("English") == 1
