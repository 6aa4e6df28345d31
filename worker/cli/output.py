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
from rich.table import Table
from rich.text import Text


class Output:
    """Results go to stdout, everything said on the way goes to stderr."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json

    @cached_property
    def console(self) -> Console:
        return Console(highlight=False, soft_wrap=True)

    @cached_property
    def side(self) -> Console:
        """Where progress and remarks go."""
        return Console(stderr=True, highlight=False, soft_wrap=True)

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
            self.console.print(Text(printable(text), style=style))

    def rich_line(self, text: Text) -> None:
        if not self.as_json:
            self.console.print(text)

    def note(self, text: str) -> None:
        """A remark that is no part of the answer."""
        self.side.print(Text(printable(text), style="dim"))

    def warn(self, text: str) -> None:
        self.side.print(Text.assemble(("warning: ", "bold yellow"), printable(text)))

    def error(self, code: str, message: str, *, label: str = "error") -> None:
        self.side.print(Text.assemble((f"{label}: ", "bold red"), printable(message)))
        if self.as_json:
            self.value({"error": {"code": code, "message": message}})

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Text | str]]) -> None:
        """On a terminal fitted to its width; in a pipe aligned and whole, one row a line."""
        if self.as_json:
            return
        cells = [[_cell(cell) for cell in row] for row in rows]
        if not self.is_terminal:
            for line in _aligned([[Text(name.upper()) for name in columns], *cells]):
                self.console.print(line)
            return
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for number, name in enumerate(columns):
            is_last = number == len(columns) - 1
            table.add_column(name, no_wrap=not is_last, overflow="fold" if is_last else "ellipsis")
        for row in cells:
            table.add_row(*row)
        self.console.print(table, soft_wrap=False)


def printable(text: str) -> str:
    """Foreign text must not steer the terminal."""
    return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text)


def _cell(cell: Text | str) -> Text:
    if isinstance(cell, Text):
        return cell
    return Text(printable(" ".join(cell.split())))


def _aligned(rows: list[list[Text]]) -> list[Text]:
    widths = [max(row[column].cell_len for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        padded = [cell.plain + " " * (width - cell.cell_len) for cell, width in zip(row, widths, strict=True)]
        lines.append(Text("  ".join(padded).rstrip()))
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
