"""Rules of the house that no other tool checks."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import worker.errors
from worker.domain.job import TRANSITIONS, JobStatus
from worker.errors import ClipbossError

PACKAGE = Path("worker")
SOURCES = sorted(PACKAGE.rglob("*.py"))
QUERIES = sorted(PACKAGE.rglob("queries/*.sql"))
BANNED = {"manager", "helper", "helpers", "utils", "util", "common"}


def test_no_file_is_longer_than_300_lines() -> None:
    assert [str(path) for path in SOURCES if len(path.read_text().splitlines()) > 300] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [str(path) for path in SOURCES if path.stem in BANNED] == []


def test_every_module_says_why_it_exists() -> None:
    silent = [str(path) for path in SOURCES if path.read_text().strip() and not path.read_text().startswith('"""')]
    assert silent == []


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: f"{path.parent.parent.name}/{path.stem}")
def test_each_query_is_described_and_used_exactly_where_it_lives(path: Path) -> None:
    assert re.match(r"-- .*; returns .*\.\n", path.read_text()), "first line: -- what; $1 = …; returns …."
    room = path.parent.parent
    callers = [source for source in room.glob("*.py") if f'_sql["{path.stem}"]' in source.read_text()]
    assert len(callers) == 1


def test_the_drawn_error_tree_is_the_real_one() -> None:
    def draw(error: type[ClipbossError], depth: int) -> list[tuple[int, str, str | None]]:
        below = [line for child in error.__subclasses__() for line in draw(child, depth + 1)]
        return [(depth, error.__name__, error.__dict__.get("code")), *below]

    drawn = []
    for line in (worker.errors.__doc__ or "").splitlines():
        found = re.match(r"([│├└─ ]*)([A-Z]\w+)(?:\s+([A-Z_]{4,}))?", line)
        if (found and "Error" in line) or (found and found[3]):
            drawn.append((len(found[1]) // 4, found[2], found[3]))
    real = [(depth, name, code if depth else None) for depth, name, code in draw(ClipbossError, 0)]
    assert drawn == real


def test_no_two_test_files_have_one_name() -> None:
    """Where folders are no packages, the second one is not collected."""
    names = Counter(path.name for path in Path("tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_error_codes_are_unique() -> None:
    def below(error: type[ClipbossError]) -> list[type[ClipbossError]]:
        return [error, *(each for child in error.__subclasses__() for each in below(child))]

    codes = [error.__dict__["code"] for error in below(ClipbossError) if "code" in error.__dict__]
    assert len(codes) == len(set(codes))


def test_done_is_the_only_state_without_a_way_out() -> None:
    assert [status for status in JobStatus if not TRANSITIONS[status]] == [JobStatus.DONE]


def test_producer_imports_the_queue_without_the_media_side() -> None:
    script = (
        "import sys, worker.queue; print([m for m in ('boto3', 'av', 'ffmpeg', 'aiohttp', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_nothing_in_the_locks_names_a_registry() -> None:
    for lock in Path("requirements").glob("*.txt"):
        assert "://" not in lock.read_text(), lock
