import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from worker.errors import RetryableError
from worker.media.process import ChildEnd, Limits, run_child

#: prints its pid, starts a grandchild that prints its own, and neither obeys TERM
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.fork()
open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
time.sleep(60)
"""

TELL_PID = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid()));"


def python(code: str, *arguments: object) -> list[str]:
    return [sys.executable, "-c", code, *map(str, arguments)]


async def pids_in(path: Path, count: int) -> list[int]:
    async with asyncio.timeout(10):
        while not path.exists() or len(path.read_text().split()) < count:
            await asyncio.sleep(0.01)
    return [int(pid) for pid in path.read_text().split()]


async def test_result_tells_exit_code_and_both_outputs():
    result = await run_child(
        python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"), limits=Limits(10)
    )
    assert (result.ended, result.exit_code, result.ok) == (ChildEnd.EXITED, 3, False)
    assert (result.stdout, result.stderr_tail) == (b"out\n", ("err",))


async def test_only_the_last_lines_of_stderr_are_kept():
    code = "import sys\nfor n in range(5000): print('x' * 2000, n, file=sys.stderr)\nsys.stderr.write('the end')"
    result = await run_child(python(code), limits=Limits(10))
    assert len(result.stderr_tail) <= 21
    assert result.stderr_tail[-1] == "the end"
    assert max(map(len, result.stderr_tail)) == 500


async def test_progress_is_told_as_it_comes():
    seen: list[float] = []
    code = "for n in (1, 2, 2, 3): print(f'out_time_us={n}000000', flush=True); import time; time.sleep(0.05)"
    await run_child(python(code), limits=Limits(10), on_progress=seen.append)
    assert seen == sorted(set(seen))
    assert seen[-1] == 3.0


async def test_error_of_the_listener_is_the_callers_and_ends_the_child(tmp_path):
    def refuse(_: float) -> None:
        raise LookupError("lease lost")

    code = TELL_PID + "print('out_time_us=1', flush=True); time.sleep(60)"
    with pytest.raises(LookupError, match="lease lost"):
        await run_child(python(code, tmp_path / "pids"), limits=Limits(30), on_progress=refuse)
    assert not psutil.pid_exists(int((tmp_path / "pids").read_text()))


async def test_child_reads_nothing_and_leads_its_own_group():
    code = "import os, sys; print(repr(sys.stdin.read()), os.getpid() == os.getpgrp() == os.getsid(0))"
    assert (await run_child(python(code), limits=Limits(10))).stdout == b"'' True\n"


async def test_wall_limit_ends_the_child():
    result = await run_child(python("import time; time.sleep(60)"), limits=Limits(0.3, grace_seconds=2))
    assert (result.ended, result.exit_code) == (ChildEnd.TIMED_OUT, -signal.SIGTERM)


async def test_child_that_talks_without_progress_has_stalled():
    code = "import time\nwhile True: print('out_time_us=5', flush=True); time.sleep(0.02)"
    result = await run_child(python(code), limits=Limits(30, stall_seconds=0.5, grace_seconds=2))
    assert result.ended is ChildEnd.STALLED


async def test_child_that_moves_on_has_not_stalled():
    code = "import time\nfor n in range(8): print(f'out_time_us={n}', flush=True); time.sleep(0.2)"
    result = await run_child(python(code), limits=Limits(30, stall_seconds=1.0))
    assert result.ok


async def test_cancelling_kills_a_group_that_ignores_term(tmp_path):
    task = asyncio.create_task(run_child(python(STUBBORN, tmp_path / "pids"), limits=Limits(60, grace_seconds=0.3)))
    pids = await pids_in(tmp_path / "pids", 2)
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - started < 5
    await gone(pids)


async def test_second_cancellation_does_not_leave_the_child_running(tmp_path):
    task = asyncio.create_task(run_child(python(STUBBORN, tmp_path / "pids"), limits=Limits(60, grace_seconds=0.5)))
    pids = await pids_in(tmp_path / "pids", 2)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0.05)
        assert not task.done()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(pids)


async def test_child_that_floods_its_pipes_can_be_cancelled(tmp_path):
    code = TELL_PID + "\nwhile True: os.write(1, b'x' * 65536); os.write(2, b'y' * 65536)"
    task = asyncio.create_task(run_child(python(code, tmp_path / "pids"), limits=Limits(60, grace_seconds=1)))
    pids = await pids_in(tmp_path / "pids", 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_running(pids[0])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child to its parent's life")
async def test_child_dies_with_a_killed_worker(tmp_path):
    worker = (
        "import asyncio, sys\n"
        "from worker.media.process import Limits, run_child\n"
        "code = \"import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)\"\n"
        "asyncio.run(run_child([sys.executable, '-c', code, sys.argv[1]], limits=Limits(60)))"
    )
    process = await asyncio.create_subprocess_exec(*python(worker, tmp_path / "pids"))
    [child] = await pids_in(tmp_path / "pids", 1)
    os.kill(process.pid, signal.SIGKILL)
    await process.wait()
    await gone([child])


async def test_output_beyond_the_file_limit_ends_the_child(tmp_path):
    code = (
        "import signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); open(sys.argv[1], 'wb').write(b'x' * 9999)"
    )
    result = await run_child(python(code, tmp_path / "file"), limits=Limits(10, file_bytes=5000))
    assert result.exit_code == -signal.SIGXFSZ
    assert (tmp_path / "file").stat().st_size == 5000


async def test_processor_time_is_limited():
    result = await run_child(python("while True: pass"), limits=Limits(15, cpu_seconds=1))
    assert (result.ended, result.exit_code) == (ChildEnd.EXITED, -signal.SIGXCPU)


async def test_program_that_is_not_there_can_be_tried_again(tmp_path):
    with pytest.raises(RetryableError, match="could not start ffmpeg"):
        await run_child([str(tmp_path / "ffmpeg")], limits=Limits(10))


async def gone(pids: list[int]) -> None:
    async with asyncio.timeout(5):
        while any(is_running(pid) for pid in pids):
            await asyncio.sleep(0.01)


def is_running(pid: int) -> bool:
    # an orphan stays a zombie until init looks after it
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_child_cannot_take_more_memory_than_it_may():
    code = "block = bytearray(2**30)"
    result = await run_child(python(code), limits=Limits(15, memory_bytes=2**29))
    assert (result.exit_code, result.stderr_tail[-1]) == (1, "MemoryError")
    assert (await run_child(python(code), limits=Limits(15))).ok


async def test_child_cannot_open_more_files_than_it_may():
    code = "files = [open('/dev/null') for _ in range(40)]"
    result = await run_child(python(code), limits=Limits(15, open_files=32))
    assert "Too many open files" in result.stderr_tail[-1]
    assert (await run_child(python(code), limits=Limits(15, open_files=64))).ok
