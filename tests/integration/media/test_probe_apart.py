"""Sources are looked at in processes of their own, which are there before they are needed."""

import asyncio
import signal
from dataclasses import dataclass

import psutil
import pytest

from tests.processes import eventually
from worker.errors import JobError, RetryableError, SourceUnsupported
from worker.media.apart import Prober
from worker.media.source import PLAIN_FORMATS


@dataclass(frozen=True)
class SilentSource:
    """Answers nothing, so that the probe waits."""

    input: str
    label: str = "the silent source"
    protocols: tuple[str, ...] = ("http", "tcp")
    formats: tuple[str, ...] = PLAIN_FORMATS
    late_seek_seconds: float = 0.0
    size_bytes: int = 1000

    def failure(self) -> JobError | None:
        return None


class Silence:
    """A server that takes connections and says nothing."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.set()
        try:
            await reader.read()
        finally:
            writer.close()


def probers() -> list[psutil.Process]:
    """Those that live; others may have children of their own kind in this process."""
    return [child for child in psutil.Process().children() if _is_prober(child)]


def _is_prober(child: psutil.Process) -> bool:
    try:
        return "worker.media.probe_child" in child.cmdline()
    except psutil.Error:
        return False


@pytest.mark.parametrize(
    ("number", "error"),
    [(signal.SIGKILL, RetryableError), (signal.SIGSEGV, SourceUnsupported)],
    ids=["killed from outside", "crashed by the source"],
)
async def test_what_ended_the_probe_decides_whether_another_attempt_makes_sense(
    number: signal.Signals, error: type[JobError]
) -> None:
    silence = Silence()
    server = await asyncio.start_server(silence.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Prober() as prober:
        probing = asyncio.create_task(prober.probe(SilentSource(f"http://127.0.0.1:{port}/film.mp4")))
        await silence.asked.wait()
        for each in probers():
            each.send_signal(number)
        with pytest.raises(error) as raised:
            await probing
    assert type(raised.value) is error
    assert probers() == []


async def test_next_source_is_looked_at_by_a_process_that_waits_already(sample) -> None:
    film = sample(seconds=1)
    async with Prober() as prober:
        await eventually(_one_waits)
        (waiting,) = probers()

        async def is_used() -> bool:
            assert (await prober.probe(film)).video is not None
            return not waiting.is_running()

        # it is there before it can be used
        await eventually(is_used)
        await eventually(_one_waits)
    assert probers() == []


async def test_process_that_was_killed_while_it_waited_costs_nothing(sample) -> None:
    film = sample(seconds=1)
    async with Prober() as prober:
        await eventually(_one_waits)
        probers()[0].kill()
        await eventually(_none_waits)
        assert (await prober.probe(film)).video is not None


async def test_sources_are_looked_at_side_by_side(sample) -> None:
    film = sample(seconds=1)
    async with Prober() as prober:
        found = await asyncio.gather(*(prober.probe(film) for _ in range(3)))
    assert len({probe.duration_seconds for probe in found}) == 1
    assert probers() == []


async def _one_waits() -> bool:
    return len(probers()) == 1


async def _none_waits() -> bool:
    return not probers()
