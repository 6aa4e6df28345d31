"""A user's mistake is one clear sentence and exit code 2, never a traceback."""

from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.acceptance.cli.conftest import CommandLine


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({"MAX_CONCURRENCY": "many", "LOG_LEVEL": "loud"}, ["MAX_CONCURRENCY", "LOG_LEVEL"]),
        ({"DATABASE_URL": "tuesday"}, ["DATABASE_URL"]),
        ({"DATABASE_URL": "postgresql://u:secret@127.0.0.1:1/x"}, ["127.0.0.1:1", "cannot be reached"]),
    ],
)
async def test_wrong_setting_is_one_line(
    call_without_database: CommandLine, env: dict[str, str], told: list[str]
) -> None:
    found = await call_without_database("jobs", "list", **env)
    assert (found.code, found.out) == (2, "")
    [line] = found.err.splitlines()
    assert line.startswith("error: ")
    assert all(word in line for word in told)
    assert "secret" not in line


async def test_wrong_password_is_one_line(server_dsn: str, tmp_path: Path) -> None:
    parts = urlsplit(server_dsn)
    address = parts._replace(netloc=f"{parts.username}:hunter2@{parts.hostname}:{parts.port}")
    found = await CommandLine(tmp_path)("run", "--json", DATABASE_URL=urlunsplit(address))
    assert (found.code, found.value["error"]["code"]) == (2, "DATABASE_UNAVAILABLE")
    assert "hunter2" not in found.err + found.out


async def test_unreadable_env_file_is_one_line(call_without_database: CommandLine) -> None:
    (call_without_database.directory / ".env").write_bytes(b"\xff\xfe\x00")
    found = await call_without_database()
    assert found.code == 2
    assert [line.split(":")[:2] for line in found.err.splitlines()] == [["error", " .env cannot be read"]]


async def test_storage_that_cannot_be_used_stops_the_worker_with_2(call: CommandLine) -> None:
    found = await call("run", STORAGE_URL="ftp://nowhere")
    assert found.code == 2
    assert "error: STORAGE_URL" in found.err


async def test_misspelt_command_is_told_as_json_too(call_without_database: CommandLine) -> None:
    found = await call_without_database("frobnicate", "--json")
    assert (found.code, found.value["error"]["code"]) == (2, "USAGE")
    assert "frobnicate" in found.err
