#!/usr/bin/env python
"""Makes docs/demo.svg from a real `./dev demo`, run in a terminal of its own: .venv/bin/python docs/make_pictures.py"""

import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "demo.svg"
COLUMNS = 112
#: fonts from elsewhere are not loaded inside a page's image anyway
SVG_FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)

_CONTROL = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])|[\r\n]")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        # Run by root, the embedded database is somebody else and must get in.
        place.chmod(0o755)
        # What makes the directory a checkout, so that the demo's hints are those of one.
        for part in ("dev", "worker", "migrations"):
            (place / part).symlink_to(ROOT / part)
        run_in_terminal([sys.executable, "-m", "worker", "demo"], place)  # the second run is what people see mostly
        output = run_in_terminal([sys.executable, "-m", "worker", "demo"], place)
        lines = ["\x1b[1;32m$\x1b[0m \x1b[1m./dev demo\x1b[0m", *screen(output.replace(f"{place}/", "./"))]
    PICTURE.write_text(draw(lines), encoding="utf-8")


def run_in_terminal(argv: list[str], directory: Path) -> str:
    """Everything the command wrote to its terminal."""
    ours, theirs = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    environment |= {"COLUMNS": str(COLUMNS), "LINES": "60", "PYTHONPATH": str(directory)}
    with subprocess.Popen(argv, cwd=directory, env=environment, stdin=theirs, stdout=theirs, stderr=theirs) as child:
        os.close(theirs)
        written = b""
        try:
            while block := os.read(ours, 65536):
                written += block
        except OSError:
            pass  # Linux's word for the end of a terminal
        finally:
            os.close(ours)
    if child.returncode:
        sys.exit(f"the demo failed:\n{written.decode(errors='replace')}")
    return written.decode()


def screen(output: str) -> list[str]:
    """The lines that stay, after what progress bars erase and write again; colours are kept."""
    lines, row, position = [""], 0, 0
    for control in _CONTROL.finditer(output):
        lines[row] += output[position : control.start()]
        position = control.end()
        match control[0], control[1], control[2]:
            case "\n", _, _:
                row += 1
                lines += [""] * (row == len(lines))
            case _, count, "A":
                row = max(0, row - int(count or 1))
            case _, _, "K":
                lines[row] = ""
            case sequence, _, "m":
                lines[row] += sequence
    return [*lines[:-1], lines[-1] + output[position:]]


def draw(lines: list[str]) -> str:
    texts = [Text.from_ansi(line) for line in lines]
    while texts and not texts[-1].plain.strip():
        texts.pop()
    width = max(text.cell_len for text in texts)
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    for text in texts:
        console.print(text, no_wrap=True, crop=False)
    svg = console.export_svg(title="clipboss", theme=DIMMED_MONOKAI, code_format=SVG_FORMAT, unique_id="demo")
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


if __name__ == "__main__":
    main()
