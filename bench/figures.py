"""What a benchmark found, as values: rows to compare, targets to meet, and remarks."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

Cell = float | int | str | None


class Bound(StrEnum):
    AT_LEAST = "≥"
    AT_MOST = "≤"


@dataclass(frozen=True, slots=True)
class Target:
    """A promise and what came of it."""

    what: str
    value: float
    bound: Bound
    limit: float
    unit: str = "x"

    @property
    def is_met(self) -> bool:
        return self.value >= self.limit if self.bound is Bound.AT_LEAST else self.value <= self.limit


@dataclass(slots=True)
class Line:
    """One question, answered side by side."""

    name: str
    title: str
    #: one for each contender, by column
    rows: list[Mapping[str, Cell]] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def as_json(lines: list[Line], **facts: Any) -> dict[str, Any]:
    told = [
        {**asdict(line), "targets": [{**asdict(target), "met": target.is_met} for target in line.targets]}
        for line in lines
    ]
    return {**facts, "lines": told}


def as_markdown(lines: list[Line]) -> str:
    return "\n".join(_section(line) for line in lines)


def _section(line: Line) -> str:
    parts = [f"## {line.title}", ""]
    columns = list(dict.fromkeys(column for row in line.rows for column in row))
    if columns:
        parts += _table(columns, [[_text(row.get(column)) for column in columns] for row in line.rows])
    if line.targets:
        verdicts = [
            [
                target.what,
                f"{_text(target.value)} {target.unit}",
                f"{target.bound} {_text(target.limit)} {target.unit}",
                "pass" if target.is_met else "FAIL",
            ]
            for target in line.targets
        ]
        parts += _table(["Target", "measured", "wanted", ""], verdicts)
    parts += [f"- {remark}" for remark in line.remarks]
    return "\n".join([*parts, ""])


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]

    def drawn(cells: list[str]) -> str:
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

    return [drawn(head), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(drawn, rows), ""]


def _text(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:.2f}" if abs(cell) < 100 else f"{cell:.0f}"
    return str(cell)
