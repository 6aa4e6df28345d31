"""Links and names in the documents lead somewhere."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.unit.docs.pages import PAGES, ROOT, prose

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PLACE = re.compile(r"`((?:worker|tests|migrations|docs|requirements|deploy)/[\w./-]+)`")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in _HEADING.findall(prose(page)))
    return {heading.replace(" ", "-") for heading in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_resolves(page: Path) -> None:
    targets = [target for target in _LINK.findall(prose(page)) if "://" not in target]
    for target in targets:
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        assert not anchor or anchor in _anchors(linked), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_is_named_exists(page: Path) -> None:
    assert [place for place in _PLACE.findall(prose(page)) if not (ROOT / place).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_query_that_is_named_exists(page: Path) -> None:
    known = {path.name for folder in ("worker", "migrations") for path in (ROOT / folder).rglob("*.sql")}
    named = set(re.findall(r"\b([a-z][a-z_]*\.sql)\b", page.read_text()))
    assert named <= known


def test_pictures_hold_no_path_of_the_machine_they_were_made_on() -> None:
    pictures = list((ROOT / "docs").glob("*.svg"))
    assert pictures
    for picture in pictures:
        assert not re.search(r"/(tmp|home|root|work|Users|var)/", picture.read_text()), picture.name


def test_layers_in_architecture_are_those_import_linter_checks() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    assert "```text\n" + "\n".join(layers) + "\n```" in (ROOT / "ARCHITECTURE.md").read_text()
