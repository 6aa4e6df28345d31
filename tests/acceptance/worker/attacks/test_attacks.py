"""Every attack is refused with its code, in time; nothing is fetched, read or left, and memory stays flat."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import psutil
import pytest

from tests.acceptance.worker.attacks.cases import CASES, DONE, NAMES, Scene, plant, remote
from tests.acceptance.worker.attacks.opened_files import watching
from tests.acceptance.worker.attacks.origin import hostile_origin
from tests.processes import Bench, working_children
from tests.servers import range_server
from worker.domain.job import JobStatus

#: plays the internet; the canary listens on 127.0.0.1, which stays private
PUBLIC_HOST = "127.0.0.2"
#: of the whole suite, four jobs at a time, on a busy machine
BOUND_SECONDS = 100
MEGABYTE = 2**20
#: warm caches; any of the bombs alone would be more
FLAT_MEGABYTES = 48
#: of the largest moment: four jobs that read at once
PEAK_MEGABYTES = 96

LIMITS = {
    "ALLOW_PRIVATE_SOURCES": "false",
    "PRIVATE_SOURCE_NETWORKS": f"{PUBLIC_HOST}/32",
    "MAX_CONCURRENCY": "4",
    "SOURCE_READ_TIMEOUT_SEC": "2",
    "SOURCE_MAX_MB": "4",
    "SOURCE_SPOOL_MAX_MB": "64",
    "CLIP_TIMEOUT_SEC": "30",
    "CLIP_MAX_CPU_SEC": "20",
    "CLIP_MAX_OUTPUT_MB": "64",
}


@contextmanager
def attacked_worker(bench: Bench, **env: str) -> Iterator[psutil.Process]:
    command = [sys.executable, "-m", "tests.acceptance.worker.attacks.worker_main"]
    environment = bench._environment({**LIMITS, "ATTACK_NAMES": json.dumps(NAMES), **env})
    with (bench.scratch / "worker-attacked.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        yield psutil.Process(process.pid)
    finally:
        process.kill()
        process.wait()


def peak_bytes(process: psutil.Process) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def forget_peak(process: psutil.Process) -> None:
    Path(f"/proc/{process.pid}/clear_refs").write_text("5")


@pytest.mark.timeout(240)
@pytest.mark.skipif(sys.platform != "linux", reason="inotify and /proc")
async def test_every_attack_is_refused_and_nothing_is_touched(bench: Bench, tmp_path: Path) -> None:
    film = bench.media / "talk.mp4"
    open_folder, vault, work = tmp_path / "open", tmp_path / "vault", tmp_path / "work"
    for folder in (open_folder, vault, work):
        folder.mkdir()
    for name in ("secret.mp4", "secret.ts"):
        shutil.copy(film, vault / name)
    async with range_server(vault) as canary, hostile_origin(PUBLIC_HOST) as origin:
        scene = Scene(origin, canary.url("").rstrip("/"), canary.port, open_folder, vault)
        plant(scene, film, work)
        with attacked_worker(bench, LOCAL_SOURCE_ROOTS=str(open_folder)) as process:
            # once around with friendly sources, so that only the attacks' own memory is counted
            for name in ("film.mp4", "film.ts", "sound.mp3"):
                friendly = await bench.submit(**remote(name)(scene))
                await bench.wait_for(friendly, JobStatus.DONE)
            before = process.memory_info().rss
            forget_peak(process)
            with watching(vault) as secrets, watching(open_folder) as siblings:
                ended = await run_attacks(bench, scene)
                assert secrets.names() == []
                assert "sibling.ts" not in siblings.names()
            grown = (process.memory_info().rss - before) // MEGABYTE
            peak = (peak_bytes(process) - before) // MEGABYTE
            assert working_children(process) == []
            print(f"{len(CASES)} attacks: {grown} MB more afterwards, {peak} MB more at the peak")
    assert ended == {name: code for name, (_, code) in CASES.items()}
    assert canary.requests == []
    assert list((bench.scratch / "jobs").iterdir()) == list((bench.scratch / "spool").iterdir()) == []
    assert "Traceback" not in bench.log()
    assert grown < FLAT_MEGABYTES
    assert peak < PEAK_MEGABYTES


async def run_attacks(bench: Bench, scene: Scene) -> dict[str, str]:
    sent: dict[str, UUID] = {}
    for name, (spec, _) in CASES.items():
        found = await bench.room.queue.send("clip", spec(scene), retry_limit=1, retry_delay=0, retry_backoff=False)
        assert found is not None
        sent[name] = found
    ended = {}
    for name, job_id in sent.items():
        final = (JobStatus.DONE, JobStatus.FAILED)
        job = await bench.wait_for(job_id, *final, seconds=BOUND_SECONDS)
        ended[name] = DONE if job.status == JobStatus.DONE else str(job.error_code)
        assert job.status == JobStatus.DONE or job.error_message, name
    return ended
