"""`submit` and `run`: from a typed command to artifacts."""

import json
import signal
from pathlib import Path

from tests.acceptance.cli.conftest import CommandLine
from tests.conftest import Room
from worker.domain.job import JobStatus


async def test_submitted_file_becomes_a_clip_while_submit_waits(call: CommandLine, sample: Path, room: Room) -> None:
    with call.started("run", "--json", LOCAL_SOURCE_ROOTS=str(sample.parent)) as worker:
        done = await call("submit", str(sample), "--start", "0:01.5", "--end", "3", "--no-transcript", "--wait")
        late = await call("submit", sample.as_uri(), "--start", "99", "--wait", "--json")
        worker.send_signal(signal.SIGTERM)
        last_line = worker.communicate(timeout=20)[0].splitlines()[-1]
    assert done.code == 0, done.err
    assert "1.500 s of media" in done.out
    assert "clip.mp4" in done.out
    assert "poster.jpg" in done.out
    assert "a talk.mp4 0:01.5..3: done" in done.err
    assert (late.code, late.value["status"], late.value["error_code"]) == (1, "failed", "RANGE_OUTSIDE_SOURCE")
    assert (worker.returncode, json.loads(last_line)["stopped"]) == (0, True)


async def test_waiting_for_a_job_that_fails_ends_with_its_code_in_one_line(call: CommandLine, room: Room) -> None:
    with call.started():
        failed = await call("submit", "file:///nowhere/x.mp4", "--wait")
    assert failed.code == 1
    assert failed.out == ""
    assert "error: job" in failed.err.splitlines()[-1]
    assert "failed: SOURCE_FORBIDDEN: " in failed.err.splitlines()[-1]


async def test_run_drains_what_is_due_and_ends(call: CommandLine, sample: Path, room: Room) -> None:
    spec = json.dumps({"source": sample.as_uri(), "end": 1, "mode": "audio", "transcript": False})
    sent = [await call("submit", "--spec", "-", "--priority", "3", stdin=spec) for _ in range(2)]
    drained = await call("--drain", "--json", LOCAL_SOURCE_ROOTS=str(sample.parent))
    assert (drained.code, drained.value["drained"]) == (0, True)
    listed = {str(job.id): job.status for job in await room.desk.listing(["clip"])}
    # In a pipe `submit` prints the id and nothing else.
    assert listed == {one.out.strip(): JobStatus.DONE for one in sent}
    assert "LOCAL_SOURCE_ROOTS" in sent[0].err


async def test_bad_request_is_refused_with_all_its_problems_before_it_is_sent(call: CommandLine, room: Room) -> None:
    wrong = await call("submit", "https://example.com/a.mp4", "--max-height", "1", "--language", "English")
    missing = await call("submit", "no such file.mp4")
    broken = await call("submit", "--spec", "-", "--json", stdin="{")
    assert [wrong.code, missing.code, broken.code] == [2, 2, 2]
    assert "max_height: " in wrong.err
    assert "language: " in wrong.err
    assert "no file 'no such file.mp4'" in missing.err
    assert broken.value["error"]["code"] == "INVALID_REQUEST"
    assert await room.desk.listing(["clip"]) == []


async def test_what_is_wished_of_speech_is_sent(call: CommandLine, room: Room) -> None:
    wishes = ["--captions", "burn", "--transcript", "best-effort", "--language", "en"]
    sent = await call("submit", "https://example.com/a.mp4", *wishes)
    assert sent.code == 0, sent.err
    spec = await room.pool.fetchval("SELECT data FROM pgboss.job WHERE id = $1::text::uuid", sent.out.strip())
    assert spec == {
        "source": "https://example.com/a.mp4",
        "captions": "burn",
        "transcript": "best-effort",
        "language": "en",
    }
    both = await call("submit", "https://example.com/a.mp4", "--no-transcript", "--transcript", "required")
    mute = await call("submit", "https://example.com/a.mp4", "--no-transcript", "--captions", "track")
    assert [both.code, mute.code] == [2, 2]
    assert "exclude each other" in both.err
    assert "captions: there is nothing to show" in mute.err


async def test_unknown_queue_is_told(call: CommandLine) -> None:
    refused = await call("submit", "https://example.com/a.mp4", "--queue", "nowhere", "--json")
    assert (refused.code, refused.value["error"]["code"]) == (1, "QUEUE_MISSING")
