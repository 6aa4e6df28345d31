"""Bad input ends in a failed job with a code and a sentence: never a traceback, never a stuck job."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import imageio_ffmpeg
import pytest

from tests.processes import Bench
from tests.servers import RangeServer, S3Server
from worker.domain.job import JobStatus
from worker.media.sample import make_sample


def broken_files(folder: Path, talk: Path) -> None:
    whole = talk.read_bytes()
    (folder / "empty.mp4").write_bytes(b"")
    (folder / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    (folder / "text.mp4").write_text("this is not a film\n" * 50)
    (folder / "list.mp4").write_text("ffconcat version 1.0\nfile talk.mp4\n")
    (folder / "playlist.m3u8").write_text("#EXTM3U\n#EXTINF:5,\ntalk.mp4\n#EXT-X-ENDLIST\n")


Spec = Callable[[str, str], object]

#: what is sent (given the folder's file:// URL and the origin's address), and the code it must end with
CASES: dict[str, tuple[Spec, str]] = {
    "unknown key": (lambda f, h: {"source": f + "/talk.mp4", "colour": 1}, "INVALID_REQUEST"),
    "wrong types": (lambda f, h: {"source": 5, "start": [], "poster": "yes"}, "INVALID_REQUEST"),
    "end before start": (lambda f, h: {"source": f + "/talk.mp4", "start": 5, "end": 4}, "INVALID_REQUEST"),
    "not an object": (lambda f, h: ["talk.mp4"], "INVALID_REQUEST"),
    "no data": (lambda f, h: None, "INVALID_REQUEST"),
    "option-like source": (lambda f, h: {"source": "-f"}, "INVALID_REQUEST"),
    "huge payload": (lambda f, h: {"source": "x" * 100_000}, "INVALID_REQUEST"),
    "start outside": (lambda f, h: {"source": f + "/talk.mp4", "start": 100}, "RANGE_OUTSIDE_SOURCE"),
    "end outside": (lambda f, h: {"source": f + "/talk.mp4", "end": 100}, "RANGE_OUTSIDE_SOURCE"),
    "no such file": (lambda f, h: {"source": f + "/nope.mp4"}, "SOURCE_NOT_FOUND"),
    "file outside the roots": (lambda f, h: {"source": "file:///etc/passwd"}, "SOURCE_FORBIDDEN"),
    "climbing out of the roots": (lambda f, h: {"source": f + "/../../etc/passwd"}, "SOURCE_FORBIDDEN"),
    "0 bytes": (lambda f, h: {"source": f + "/empty.mp4"}, "SOURCE_UNSUPPORTED"),
    "truncated mp4": (lambda f, h: {"source": f + "/cut.mp4"}, "SOURCE_UNSUPPORTED"),
    "not media": (lambda f, h: {"source": f + "/text.mp4"}, "SOURCE_UNSUPPORTED"),
    "concat list named mp4": (lambda f, h: {"source": f + "/list.mp4"}, "SOURCE_UNSUPPORTED"),
    "playlist": (lambda f, h: {"source": f + "/playlist.m3u8"}, "SOURCE_UNSUPPORTED"),
    "unknown scheme": (lambda f, h: {"source": "gopher://example.org/x"}, "SOURCE_UNSUPPORTED"),
    "concat protocol": (lambda f, h: {"source": "concat:/etc/passwd|/etc/hosts"}, "SOURCE_UNSUPPORTED"),
    "404": (lambda f, h: {"source": h + "/nope.mp4"}, "SOURCE_NOT_FOUND"),
    "truncated mp4 over http": (lambda f, h: {"source": h + "/cut.mp4"}, "SOURCE_UNSUPPORTED"),
    "text over http": (lambda f, h: {"source": h + "/text.mp4"}, "SOURCE_UNSUPPORTED"),
    "0 bytes over http": (lambda f, h: {"source": h + "/empty.mp4"}, "SOURCE_UNSUPPORTED"),
    "unreachable origin": (lambda f, h: {"source": "http://127.0.0.1:1/x.mp4"}, "RETRIES_EXHAUSTED"),
    "name that does not exist": (lambda f, h: {"source": "http://nowhere.invalid/x.mp4"}, "SOURCE_NOT_FOUND"),
    "sound of a silent film": (lambda f, h: {"source": f + "/silent.mp4", "mode": "audio"}, "SOURCE_UNSUPPORTED"),
}


@pytest.mark.timeout(120)
async def test_each_kind_of_bad_input_has_its_code(bench: Bench, origin: RangeServer, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copy(bench.media / "talk.mp4", folder)
    broken_files(folder, bench.media / "talk.mp4")
    make_sample(folder / "silent.mp4", seconds=1, size=(160, 90), speech=False)
    _drop_audio(folder / "silent.mp4")
    origin.root = folder
    # The queue's own retry delay would only make the test slow; a retried job ends exhausted all the same.
    sent: dict[str, UUID] = {}
    for name, (spec, _) in CASES.items():
        found = await bench.room.queue.send("clip", spec(folder.as_uri(), origin.url("").rstrip("/")), retry_limit=1)
        assert found is not None
        sent[name] = found
    done = await bench.run("run", "--drain", LOCAL_SOURCE_ROOTS=str(folder), MAX_CONCURRENCY="4")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    ended = {}
    for name, job_id in sent.items():
        job = await bench.job(job_id)
        ended[name] = job.error_code if job.status == JobStatus.FAILED else job.status
        assert job.error_message, name
        assert str(folder.parent) in job.error_message or "/tmp" not in job.error_message, (name, job.error_message)
    assert ended == {name: code for name, (_, code) in CASES.items()}
    states = await bench.room.pool.fetch("SELECT DISTINCT state::text FROM pgboss.job")
    assert [row["state"] for row in states] == ["failed"]
    assert not list((bench.scratch / "jobs").iterdir())


async def test_private_addresses_are_refused_by_default(bench: Bench, origin: RangeServer) -> None:
    job_id = await bench.submit(source=origin.url("talk.mp4"))
    assert (await bench.run("run", "--drain", ALLOW_PRIVATE_SOURCES="false")).returncode == 0
    job = await bench.job(job_id)
    assert (job.status, job.error_code) == ("failed", "SOURCE_FORBIDDEN")
    assert origin.requests == []


async def test_source_that_breaks_off_is_never_published_short(bench: Bench, origin: RangeServer) -> None:
    origin.cut_after = 30_000
    job_id = await bench.room.desk.submit("clip", {"source": origin.url("talk.mp4")}, {"retryLimit": 0})
    assert job_id is not None
    assert (await bench.run("run", "--drain")).returncode == 0
    job = await bench.job(job_id)
    assert job.status == JobStatus.FAILED
    assert not list(bench.scratch.glob("artifacts/**/clip.mp4"))


async def test_full_scratch_disk_is_retried_not_fatal(bench: Bench) -> None:
    job_id = await bench.submit(source=str(bench.media / "talk.mp4"), end=1)
    assert (await bench.run("run", "--drain", SCRATCH_MIN_FREE_MB=str(2**40))).returncode == 0
    job = await bench.job(job_id)
    assert job.error_code == "RETRIES_EXHAUSTED"
    assert "DISK_FULL" in (job.error_message or "")


@pytest.mark.parametrize(("bucket", "secret"), [("no-such-bucket", None), ("media", "wrong")])
async def test_unusable_storage_stops_the_worker_at_start(
    bench: Bench, s3: S3Server, bucket: str, secret: str | None
) -> None:
    env = {
        "STORAGE_URL": f"s3://{bucket}",
        "S3_ENDPOINT_URL": s3.endpoint_url,
        "AWS_ACCESS_KEY_ID": s3.access_key,
        "AWS_SECRET_ACCESS_KEY": secret or s3.secret_key,
    }
    refused = await bench.run("run", "--drain", **env)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert bucket in refused.stderr
    assert str(s3.secret_key) not in refused.stderr


def _drop_audio(path: Path) -> None:
    silent = path.with_name("tmp.mp4")
    ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
    subprocess.run([ffmpeg, "-v", "error", "-i", str(path), "-an", "-c", "copy", str(silent)], check=True)
    silent.rename(path)
