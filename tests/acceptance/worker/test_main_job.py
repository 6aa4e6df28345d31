"""The main job on real parts: PostgreSQL, S3, ffmpeg, speech."""

import hashlib
import json
from pathlib import Path, PurePath
from urllib.parse import urlsplit
from uuid import UUID

from tests.media_facts import burnt_in_numbers
from tests.processes import Bench
from tests.servers import RangeServer, S3Server
from worker.domain.job import JobStatus

DONE, FAILED = JobStatus.DONE, JobStatus.FAILED


def s3_env(s3: S3Server) -> dict[str, str]:
    return {
        "STORAGE_URL": f"s3://{s3.bucket}/out",
        "S3_ENDPOINT_URL": s3.endpoint_url,
        "AWS_ACCESS_KEY_ID": s3.access_key,
        "AWS_SECRET_ACCESS_KEY": s3.secret_key,
    }


async def test_thirty_jobs_finish_never_more_than_three_at_once(bench: Bench, s3: S3Server) -> None:
    source = (bench.media / "talk.mp4").as_uri()
    jobs = [await bench.submit(source=source, start=n * 0.2, end=n * 0.2 + 0.5, poster=False) for n in range(30)]
    done = await bench.run("run", "--drain", MAX_CONCURRENCY="3", **s3_env(s3))
    assert done.returncode == 0, done.stderr
    rows = await bench.room.pool.fetch(
        "SELECT j.status, b.state::text, j.result = b.output AS same FROM worker.jobs j JOIN pgboss.job b USING (id)"
    )
    assert [tuple(row) for row in rows] == [("done", "completed", True)] * len(jobs)
    events = await bench.room.pool.fetch(
        "SELECT kind FROM worker.job_events WHERE kind IN ('acquired', 'done') ORDER BY at, id"
    )
    running, most = 0, 0
    for event in events:
        running += 1 if event["kind"] == "acquired" else -1
        most = max(most, running)
    assert (running, most) == (0, 3)


async def test_artifacts_lie_in_s3_as_the_result_says(bench: Bench, s3: S3Server, origin: RangeServer) -> None:
    wanted = {"source": origin.url("talk.mp4"), "start": 1.5, "end": 4.0, "metadata": {"order": 7}, "key_prefix": "a/b"}
    job_id = await bench.submit(**wanted)
    done = await bench.run("run", "--drain", ASR_ENGINE="moonshine", **s3_env(s3))
    assert done.returncode == 0, done.stderr
    job = await bench.job(job_id)
    assert job.status == DONE, job.error_message
    assert job.result is not None
    assert (job.result["duration_ms"], job.result["frames"], job.result["metadata"]) == (2500, 75, {"order": 7})
    assert [artifact["kind"] for artifact in job.result["artifacts"]] == [
        "clip",
        "poster",
        "transcript",
        "srt",
        "vtt",
        "text",
    ]
    content = {}
    for artifact in job.result["artifacts"]:
        assert artifact["key"].startswith(f"a/b/{job_id}/")
        body = s3.client().get_object(Bucket=s3.bucket, Key=f"out/{artifact['key']}")["Body"].read()
        assert (len(body), hashlib.sha256(body).hexdigest()) == (artifact["bytes"], artifact["sha256"])
        content[artifact["kind"]] = body
    assert burnt_in_numbers(content["clip"]) == list(range(45, 120))
    transcript = json.loads(content["transcript"])
    assert transcript["text"] == job.result["transcript"]
    assert "times" in transcript["text"].lower() or "worst" in transcript["text"].lower()


async def test_job_sent_by_plain_pg_boss_shows_its_result_there(bench: Bench) -> None:
    spec = {"source": str(bench.media / "talk.mp4"), "start": 0, "end": 1, "transcript": False}
    job_id = await bench.room.queue.send("clip", spec)
    assert (await bench.run("run", "--drain")).returncode == 0
    row = await bench.room.pool.fetchrow("SELECT state::text, output FROM pgboss.job WHERE id = $1", job_id)
    assert row is not None
    assert row["state"] == "completed"
    assert row["output"]["frames"] == 30


async def test_every_kind_of_clip(bench: Bench) -> None:
    source = str(bench.media / "talk.mp4")
    specs = {
        "copy": {"mode": "copy", "start": 2.3, "end": 5},
        "audio": {"mode": "audio", "start": 1, "end": 3},
        "small": {"max_height": 90, "end": 1},
        "whole": {},
    }
    jobs: dict[str, UUID] = {name: await bench.submit(source=source, **spec) for name, spec in specs.items()}
    assert (await bench.run("run", "--drain")).returncode == 0
    results = {}
    for name, job_id in jobs.items():
        job = await bench.job(job_id)
        assert job.status == DONE, (name, job.error_message)
        assert job.result is not None
        results[name] = job.result
    assert results["copy"]["mode"] == "copy"
    assert results["copy"]["start"] <= 2.3
    assert [artifact["content_type"] for artifact in results["audio"]["artifacts"]] == ["audio/mp4"]
    assert results["whole"]["frames"] == 240
    assert results["small"]["frames"] == 30


async def test_everything_that_can_be_made_of_a_clip(bench: Bench) -> None:
    wishes = ["--start", "1.5", "--end", "4", "--mode", "exact", "--quality", "small", "--loudness", "-30"]
    wishes += ["--rendition", "120", "--rendition", "60", "--poster", "0:01", "--sprite", "--waveform"]
    sent = await bench.run("submit", str(bench.media / "talk.mp4"), *wishes)
    assert sent.returncode == 0, sent.stderr
    # there is no such device here: the processor steps in
    done = await bench.run("run", "--drain", VIDEO_ENCODER="h264_nvenc")
    assert done.returncode == 0, done.stderr
    job = await bench.job(UUID(sent.stdout.strip()))
    assert job.result is not None, job.error_message
    files = {PurePath(told["key"]).name: Path(urlsplit(told["url"]).path) for told in job.result["artifacts"]}
    assert files.keys() == {
        "clip.mp4", "clip-120.mp4", "clip-60.mp4", "poster.jpg", "sprite.jpg", "sprite.vtt", "waveform.json",
    }  # fmt: skip
    for name in ("clip.mp4", "clip-120.mp4", "clip-60.mp4"):
        assert burnt_in_numbers(files[name].read_bytes()) == list(range(45, 120)), name
    assert json.loads(files["waveform.json"].read_text())["length"] == 50
    assert abs(job.result["loudness"]["integrated_lufs"] + 30) < 0.5
    told = {name: job.result[name] for name in ("mode", "start", "end", "start_off_ms", "end_off_ms")}
    assert told == {"mode": "exact", "start": 1.5, "end": 4.0, "start_off_ms": 0, "end_off_ms": 0}
    events = await bench.room.desk.events(job.id)
    reasons = [event.data["reason"] for event in events if event.kind == "fallback:cpu" and event.data]
    assert len(reasons) == 2, "the cut and the renditions"
    assert all("h264_nvenc" in reason for reason in reasons)


async def test_second_attempt_finds_the_clip_of_the_first(bench: Bench) -> None:
    job_id = await bench.submit(source=str(bench.media / "talk.mp4"), end=1)
    assert (await bench.run("run", "--drain")).returncode == 0
    first = await bench.job(job_id)
    # The worker died after the uploads and before the result was recorded.
    await bench.room.pool.execute("UPDATE worker.jobs SET status = 'queued', finished_at = NULL, result = NULL")
    await bench.room.pool.execute("UPDATE pgboss.job SET state = 'retry', completed_on = NULL, output = NULL")
    assert (await bench.run("run", "--drain")).returncode == 0
    second = await bench.job(job_id)
    assert second.status == DONE
    assert first.result is not None
    assert second.result is not None
    assert second.result["artifacts"] == first.result["artifacts"]
    kinds = [event.kind for event in await bench.room.desk.events(job_id)]
    assert "skipped:artifact-exists" in kinds
