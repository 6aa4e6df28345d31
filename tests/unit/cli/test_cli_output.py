"""What is printed is plain in a pipe and harmless on a terminal."""

import json
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from rich.text import Text

from worker.cli.output import Output, printable


def test_foreign_text_cannot_steer_the_terminal() -> None:
    assert printable("a\x1b[31mb\rc\x9bd\udcff") == r"a\x1b[31mb\rc\x9bd\udcff"
    assert printable("ü „x“ …\n\t") == "ü „x“ …\n\t"


def test_table_in_a_pipe_is_aligned_whole_and_without_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    Output().table(("id", "what"), [("1", Text("x" * 200, style="red")), ("two\nlines", "y")])
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["ID         WHAT", "1          " + "x" * 200, "two lines  y"]


def test_long_line_in_a_pipe_is_not_broken(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output()
    out.line("a b " * 50)
    out.error("CODE", "c d " * 50)
    said = capsys.readouterr()
    assert [said.out.count("\n"), said.err.count("\n")] == [1, 1]


def test_json_mode_prints_its_one_value_and_no_lines(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(as_json=True)
    out.line("for people")
    out.table(("a",), [("1",)])
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    out.value({"id": UUID(int=1), "at": moment, "path": Path("/x")})
    assert json.loads(capsys.readouterr().out) == {
        "id": "00000000-0000-0000-0000-000000000001",
        "at": "2026-01-02T00:00:00+00:00",
        "path": "/x",
    }


def test_error_in_json_mode_is_told_on_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    Output(as_json=True).error("CODE", "what")
    said = capsys.readouterr()
    assert said.err == "error: what\n"
    assert json.loads(said.out) == {"error": {"code": "CODE", "message": "what"}}
