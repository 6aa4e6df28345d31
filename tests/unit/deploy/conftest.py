"""Reads docker-compose.yml without a YAML library: the plain subset it is written in, nothing else."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PAIR = re.compile(r"(?P<key>[\w-]+):(?: (?P<value>.+))?")
REFUSED = ("&", "*", "{", "!", "%", "@", ">")


@pytest.fixture(scope="session")
def compose() -> dict[str, Any]:
    document = Reader((ROOT / "docker-compose.yml").read_text().splitlines()).block(0)
    assert isinstance(document, dict)
    return document


@pytest.fixture(scope="session")
def dockerfile() -> list[str]:
    """Instructions, one a line, continuations joined."""
    text = re.sub(r"(?m)^\s*#.*\n", "", (ROOT / "Dockerfile").read_text())
    return [line for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]


class Reader:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def block(self, indent: int) -> Any:
        found: Any = None
        while (line := self.peek()) is not None and indent_of(line) == indent:
            text = line.strip()
            self.at += 1
            if text.startswith("- "):
                found = found or []
                found.append(self.value(text[2:], indent))
                continue
            pair = PAIR.fullmatch(text)
            assert pair, f"line {self.at} is outside the subset: {text}"
            found = found or {}
            assert pair["key"] not in found, f"line {self.at}: {pair['key']} twice"
            found[pair["key"]] = self.value(pair["value"], indent)
        return found

    def peek(self) -> str | None:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.strip() and not line.lstrip().startswith("#"):
                return line
            self.at += 1
        return None

    def value(self, text: str | None, indent: int) -> Any:
        if text is None:
            line = self.peek()
            return self.block(indent_of(line)) if line is not None and indent_of(line) > indent else None
        if text == "|":
            return self.literal(indent)
        if text.startswith(("[", '"')):
            return json.loads(text)
        assert not text.startswith(REFUSED), f"line {self.at} is outside the subset: {text}"
        assert " #" not in text, f"line {self.at}: comments stand on lines of their own"
        return text

    def literal(self, indent: int) -> str:
        first = self.at
        while self.at < len(self.lines) and (
            not self.lines[self.at].strip() or indent_of(self.lines[self.at]) > indent
        ):
            self.at += 1
        lines = self.lines[first : self.at]
        return "\n".join(line[indent_of(lines[0]) :] for line in lines) + "\n"


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
