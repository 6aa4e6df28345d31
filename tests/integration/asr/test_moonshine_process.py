"""The engine's process under fire: it ends when it must, only then, and the next request gets a new one."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.integration.asr.conftest import moonshine
from worker.asr import Recognizer
from worker.errors import AsrUnavailable

OWNER = """
import asyncio, sys
from pathlib import Path
from worker.asr import AsrOptions, open_recognizer

async def main():
    recognizer = open_recognizer(AsrOptions())
    await recognizer.transcribe(Path(sys.argv[1]), language=None)
    print(recognizer.pid, flush=True)
    await recognizer.transcribe(Path(sys.argv[2]), language=None)

asyncio.run(main())
"""


async def until(condition: Callable[[], bool], *, within_seconds: float) -> None:
    deadline = time.monotonic() + within_seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def engines_of_this_process() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "worker.asr.moonshine_child" in child.cmdline()]


async def start_long_request(recognizer: Recognizer, wav: Path) -> tuple[asyncio.Task[object], int]:
    """A request the engine is busy with, and the engine's pid."""
    request: asyncio.Task[object] = asyncio.create_task(recognizer.transcribe(wav, language=None))
    await until(lambda: recognizer.pid is not None, within_seconds=5)
    pid = recognizer.pid
    assert pid is not None
    # Loading takes less than the first second of CPU time that recognition adds.
    await until(lambda: sum(psutil.Process(pid).cpu_times()[:2]) > 2, within_seconds=15)
    assert not request.done()
    return request, pid


async def test_killed_engine_is_unavailable_and_the_next_request_works(
    recognizer: Recognizer, long_reading: Path, recordings: Path
) -> None:
    request, pid = await start_long_request(recognizer, long_reading)
    os.kill(pid, signal.SIGKILL)

    with pytest.raises(AsrUnavailable, match="SIGKILL"):
        await request
    assert "tried" in (await recognizer.transcribe(recordings / "beckett.wav", language=None)).text.lower()
    assert recognizer.pid != pid


async def test_engine_that_died_between_requests_is_replaced_unnoticed(
    recognizer: Recognizer, recordings: Path
) -> None:
    await recognizer.transcribe(recordings / "beckett.wav", language=None)
    pid = recognizer.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await until(lambda: recognizer.pid is None, within_seconds=5)

    assert (await recognizer.transcribe(recordings / "beckett.wav", language=None)).segments


async def test_cancel_kills_the_engine_at_once(recognizer: Recognizer, long_reading: Path) -> None:
    request, pid = await start_long_request(recognizer, long_reading)
    request.cancel()

    async with asyncio.timeout(2):
        with pytest.raises(asyncio.CancelledError):
            await request
    assert not psutil.pid_exists(pid)


async def test_cancel_of_a_waiting_request_leaves_the_running_one_alone(
    recognizer: Recognizer, recordings: Path
) -> None:
    running = asyncio.create_task(recognizer.transcribe(recordings / "beckett.wav", language=None))
    await until(lambda: recognizer.pid is not None, within_seconds=5)
    pid = recognizer.pid
    waiting = asyncio.create_task(recognizer.transcribe(recordings / "beckett.wav", language=None))
    await asyncio.sleep(0)
    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (await running).segments
    assert recognizer.pid == pid


async def test_engine_that_says_nothing_is_killed_when_patience_ends(recordings: Path) -> None:
    recognizer = moonshine(timeout_seconds=0.05)

    with pytest.raises(AsrUnavailable, match=r"said nothing for 0\.05 s"):
        await recognizer.transcribe(recordings / "beckett.wav", language=None)
    assert recognizer.pid is None
    assert engines_of_this_process() == []
    await recognizer.close()


async def test_frozen_engine_is_killed_even_when_cancelled_twice(recognizer: Recognizer, recordings: Path) -> None:
    await recognizer.transcribe(recordings / "beckett.wav", language=None)
    pid = recognizer.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    request = asyncio.create_task(recognizer.transcribe(recordings / "beckett.wav", language=None))
    for _ in range(2):
        await asyncio.sleep(0.05)
        request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request

    await recognizer.close()

    assert not psutil.pid_exists(pid)


async def test_close_ends_the_running_request_and_leaves_no_process(
    recognizer: Recognizer, long_reading: Path, recordings: Path
) -> None:
    request, pid = await start_long_request(recognizer, long_reading)
    waiting = asyncio.create_task(recognizer.transcribe(recordings / "beckett.wav", language=None))

    await recognizer.close()

    assert not psutil.pid_exists(pid)
    for ended in (request, waiting):
        with pytest.raises(AsrUnavailable):
            await ended
    await recognizer.close()
    assert engines_of_this_process() == []


async def test_engine_dies_with_its_worker(long_reading: Path, recordings: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(recordings / "beckett.wav"), str(long_reading)],
        stdout=subprocess.PIPE,
    )
    with owner:
        assert owner.stdout is not None
        pid = int(await asyncio.to_thread(owner.stdout.readline))
        busy_since = sum(psutil.Process(pid).cpu_times()[:2])
        await until(lambda: sum(psutil.Process(pid).cpu_times()[:2]) > busy_since + 0.3, within_seconds=10)
        owner.kill()

    await until(lambda: not is_alive(pid), within_seconds=2)
