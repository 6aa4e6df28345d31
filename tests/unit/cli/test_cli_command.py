"""Errors become one sentence and an exit code; the start stays quick."""

import asyncio
import json
import subprocess
import sys

import pytest

from worker.cli.command import Face, execute, explain
from worker.cli.output import Output
from worker.errors import ClipbossError, ConfigError, DatabaseUnavailable, InvalidRequest, JobMissing


@pytest.mark.parametrize(
    ("error", "label", "code", "exit_code"),
    [
        (ConfigError("x"), "error", "CONFIG_INVALID", 2),
        (DatabaseUnavailable("x"), "error", "DATABASE_UNAVAILABLE", 2),
        (InvalidRequest("x"), "error", "INVALID_REQUEST", 2),
        (JobMissing("x"), "error", "JOB_MISSING", 1),
        (ClipbossError("x"), "error", "CLIPBOSS_ERROR", 1),
        (ZeroDivisionError("x"), "internal error", "INTERNAL_ERROR", 1),
    ],
)
def test_every_kind_of_error_has_its_exit_code(error: Exception, label: str, code: str, exit_code: int) -> None:
    failure = explain(error)
    assert (failure.label, failure.code, failure.exit_code) == (label, code, exit_code)


def test_unexpected_error_is_one_line_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    async def body() -> None:
        raise ZeroDivisionError("by zero")

    assert execute(Face(Output(as_json=True), is_debugging=False), body) == 1
    said = capsys.readouterr()
    assert [said.err.count("\n"), "Traceback" in said.err] == [1, False]
    assert json.loads(said.out)["error"]["code"] == "INTERNAL_ERROR"


def test_traceback_is_shown_to_whoever_debugs(capsys: pytest.CaptureFixture[str]) -> None:
    async def body() -> None:
        raise ZeroDivisionError("by zero")

    assert execute(Face(Output(), is_debugging=True), body) == 1
    assert "Traceback" in capsys.readouterr().err


def test_interrupt_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    async def body() -> None:
        await asyncio.sleep(0)
        raise KeyboardInterrupt

    assert execute(Face(Output(), is_debugging=False), body) == 130
    assert capsys.readouterr() == ("", "")


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys; from worker.cli import invoke; code = invoke(['--help']); "
        "print(code, {'rich', 'pydantic', 'asyncpg', 'aiohttp', 'boto3', 'av'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "0 set()"
    assert "doctor" in found.stdout
