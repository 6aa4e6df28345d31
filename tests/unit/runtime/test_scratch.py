"""Scratch directories: one an attempt, none left behind."""

import shutil
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from worker.domain.job import JobId, Lease, LeaseToken
from worker.errors import DiskFull
from worker.runtime.scratch import Scratch


def lease(token: int = 1) -> Lease:
    return Lease(JobId(uuid4()), "clip", LeaseToken(token), 0)


async def test_room_is_gone_after_the_attempt_whatever_happened(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, min_free_bytes=0)

    async def broken_work() -> None:
        async with scratch.room_for(lease()) as room:
            (room / "clip.mp4").write_bytes(b"x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await broken_work()
    assert list((tmp_path / "jobs").iterdir()) == []


async def test_two_attempts_of_a_job_do_not_meet(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, min_free_bytes=0)
    first = lease(1)
    second = Lease(first.job_id, "clip", LeaseToken(2), 1)
    async with scratch.room_for(first) as mine, scratch.room_for(second) as other:
        assert mine != other
        (other / "x").write_bytes(b"x")
    assert list((tmp_path / "jobs").iterdir()) == []


async def test_too_little_space_is_told_before_the_work(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, min_free_bytes=2**62)
    with pytest.raises(DiskFull, match="SCRATCH_MIN_FREE_MB"):
        async with scratch.room_for(lease()):
            pass
    assert list((tmp_path / "jobs").iterdir()) == []


async def test_jobs_cannot_be_promised_the_same_room(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, min_free_bytes=0)
    half = shutil.disk_usage(tmp_path).free * 3 // 5
    async with scratch.room_for(lease(1)) as mine, scratch.room_for(lease(2)) as other:
        scratch.reserve(mine, half)
        with pytest.raises(DiskFull, match="not promised to other jobs"):
            scratch.reserve(other, half)
        # whoever asks again asks for itself
        scratch.reserve(mine, half)
    async with scratch.room_for(lease(3)) as later:
        scratch.reserve(later, half)


async def test_what_a_job_has_written_is_not_counted_twice(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, min_free_bytes=0)
    async with scratch.room_for(lease(1)) as mine, scratch.room_for(lease(2)) as other:
        free = shutil.disk_usage(tmp_path).free
        scratch.reserve(mine, free - 2**30)
        # sparse: long, but without blocks
        with (mine / "clip.mp4").open("wb") as file:
            file.truncate(free)
        scratch.reserve(other, 2**31)


async def test_room_that_must_stay_free_is_not_promised(tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free
    scratch = Scratch(tmp_path, min_free_bytes=free // 2)
    async with scratch.room_for(lease()) as room:
        with pytest.raises(DiskFull, match="SCRATCH_MIN_FREE_MB keeps"):
            scratch.reserve(room, free * 3 // 5)


async def test_sweep_takes_the_rooms_of_the_dead_and_leaves_those_of_the_living(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, min_free_bytes=0)
    dying = (
        "import asyncio, os, sys, pathlib\n"
        "from uuid import uuid4\n"
        "from worker.runtime.scratch import Scratch\n"
        "from worker.domain.job import Lease\n"
        "async def main():\n"
        "    scratch = Scratch(pathlib.Path(sys.argv[1]), min_free_bytes=0)\n"
        "    async with scratch.room_for(Lease(uuid4(), 'clip', 7, 0)) as room:\n"
        "        (room / 'half.mp4').write_bytes(b'x')\n"
        "        os._exit(9)\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-c", dying, str(tmp_path)], check=False)
    async with scratch.room_for(lease()) as mine:
        assert len(list((tmp_path / "jobs").iterdir())) == 2
        assert scratch.sweep() == 1
        assert mine.is_dir()
    assert list((tmp_path / "jobs").iterdir()) == []
