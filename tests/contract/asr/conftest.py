"""A real transcription server in a process of its own, and a way to have it misbehave."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from pydantic import SecretStr

from tests.recordings import write_16k
from worker.asr.http import HttpEngine

API_KEY = "sk-hunter2-hunter2-hunter2"


class SpeechServer:
    def __init__(self, port: int) -> None:
        self.origin = f"http://127.0.0.1:{port}"

    def script(self, *steps: dict[str, Any]) -> None:
        with urlopen(Request(f"{self.origin}/script", data=json.dumps(steps).encode())) as answer:
            answer.read()

    def seen(self) -> list[dict[str, Any]]:
        with urlopen(f"{self.origin}/seen") as answer:
            seen: list[dict[str, Any]] = json.load(answer)
        return seen


@pytest.fixture(scope="session")
def running_server() -> Iterator[SpeechServer]:
    argv = [sys.executable, "-m", "tests.asr_server"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield SpeechServer(int(process.stdout.readline()))
        process.terminate()


@pytest.fixture
def server(running_server: SpeechServer) -> SpeechServer:
    running_server.script()
    return running_server


@pytest.fixture(scope="session")
def beckett(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_16k("beckett", tmp_path_factory.mktemp("sound") / "beckett.wav")


@pytest.fixture
async def engine_at(server: SpeechServer) -> AsyncIterator[Callable[..., HttpEngine]]:
    opened: list[HttpEngine] = []

    def open_engine(path: str = "/v1", **options: Any) -> HttpEngine:
        options = {"model": "tiny-en", "api_key": SecretStr(API_KEY), "timeout_seconds": 20, **options}
        opened.append(HttpEngine(server.origin + path, **options))
        return opened[-1]

    yield open_engine
    for engine in opened:
        await engine.close()
