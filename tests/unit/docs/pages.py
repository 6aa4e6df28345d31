"""The documents as tests see them: pages, tables, fenced blocks."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    page: Path
    language: str
    text: str
    number: int

    def __str__(self) -> str:
        return f"{self.page.name}-{self.language}-{self.number}"


def blocks(language: str) -> list[Block]:
    found = [(page, match) for page in PAGES for match in _FENCE.finditer(page.read_text())]
    return [
        Block(page, match[1], match[2], number) for number, (page, match) in enumerate(found) if match[1] == language
    ]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page.read_text())


def table_rows(page: Path) -> Iterator[list[str]]:
    """The cells of every table row; those of the head and its rule too."""
    for line in prose(page).splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def command_lines() -> list[list[str]]:
    """Every command in the documents as an argument list, without the settings before it."""
    lines = [line for block in blocks("sh") for line in block.text.splitlines()]
    lines += [match for page in PAGES for match in re.findall(r"`((?:\./dev|python -m worker)[^`…]*)`", prose(page))]
    split = [shlex.split(line) for line in lines]
    return [[word for word in words if not re.match(r"[A-Z_0-9]+=", word)] for words in split]
