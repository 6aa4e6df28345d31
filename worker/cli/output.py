"""What people and programs see: colours and tables on a terminal, plain lines in a pipe, one JSON value on demand."""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import UUID

from rich.console import Console
from rich.text import Text


class Output:
    """Results go to stdout, everything said on the way goes to stderr."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json

    @cached_property
    def console(self) -> Console:
        return _console(stderr=False)

    @cached_property
    def side(self) -> Console:
        """Where progress and remarks go."""
        return _console(stderr=True)

    @property
    def is_terminal(self) -> bool:
        return self.console.is_terminal

    def value(self, value: Any) -> None:
        """The command's one JSON value."""
        is_unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
        print(json.dumps(value, default=_as_json, ensure_ascii=not is_unicode), flush=True)

    def line(self, text: str = "", style: str = "") -> None:
        """For people; nobody sees it with --json."""
        if not self.as_json:
            self.console.print(Text(printable(text), style=style), soft_wrap=not self.is_terminal)

    def rich_line(self, text: Text) -> None:
        """Never broken, so that a path in it can be copied."""
        if not self.as_json:
            self.console.print(text)

    def note(self, text: str) -> None:
        """A remark that is no part of the answer."""
        self._remark(Text(printable(text), style="dim"))

    def warn(self, text: str) -> None:
        self._remark(Text.assemble(("warning: ", "bold yellow"), printable(text)))

    def error(self, code: str, message: str, *, label: str = "error") -> None:
        self._remark(Text.assemble((f"{label}: ", "bold red"), printable(message)))
        if self.as_json:
            self.value({"error": {"code": code, "message": message}})

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Text | str]]) -> None:
        """One row a line: whole in a pipe, cut to its width on a terminal."""
        if self.as_json:
            return
        heading = [Text(name if self.is_terminal else name.upper(), style="bold") for name in columns]
        for line in _aligned([heading, *([_cell(cell) for cell in row] for row in rows)]):
            if self.is_terminal:
                line.truncate(self.console.width, overflow="ellipsis")
            self.console.print(line)

    def _remark(self, text: Text) -> None:
        # Words are kept whole on a terminal, lines are kept whole in a log.
        self.side.print(text, soft_wrap=not self.side.is_terminal)


def printable(text: str) -> str:
    """Foreign text must not steer the terminal."""
    return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text)


def _console(*, stderr: bool) -> Console:
    return Console(stderr=stderr, highlight=False, soft_wrap=True)


def _cell(cell: Text | str) -> Text:
    if isinstance(cell, Text):
        return cell
    return Text(printable(" ".join(cell.split())))


def _aligned(rows: list[list[Text]]) -> list[Text]:
    widths = [max(row[column].cell_len for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        line = Text()
        for cell, width in zip(row, widths, strict=True):
            line.append_text(cell).append(" " * (width - cell.cell_len + 2))
        line.rstrip()
        lines.append(line)
    return lines


def _as_json(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case UUID() | Path():
            return str(value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return asdict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
