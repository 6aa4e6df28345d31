"""Commands and code in the documents are such that they could run."""

import ast
import importlib
import json
import re
from collections.abc import Sequence

import click
import pytest

from tests.unit.docs.pages import ROOT, Block, blocks, command_lines
from worker.cli import cli
from worker.domain.request import parse_request


def _parse(command: click.Command, arguments: Sequence[str], parent: click.Context | None = None) -> None:
    """Let click take the arguments apart, down to the last command, without running it."""
    if isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        context = click.Context(command, parent=parent)
        found = command.get_command(context, arguments[0])
        assert found is not None, f"no command {arguments[0]!r}"
        _parse(found, arguments[1:], context)
    elif arguments and "--help" not in arguments:
        command.make_context(command.name, list(arguments), parent=parent)


def test_every_command_is_one_we_have() -> None:
    known = set(re.findall(r"^([a-z]+)(?: \||\))", (ROOT / "dev").read_text(), re.MULTILINE))
    lines = command_lines()
    assert len(lines) > 10
    for words in lines:
        match words:
            case ["./dev", "run", *rest] | ["python", "-m", "worker", *rest]:
                _parse(cli, rest)
            case ["./dev", command, *_]:
                assert command in known, command
            case ["docker", "compose", "run", "--rm", "worker", *rest]:
                _parse(cli, rest)
            case ["kubectl", *rest]:
                folders = [ROOT / word for word in rest if word.startswith("deploy/")]
                assert all((folder / "kustomization.yaml").exists() for folder in folders), words
            case ["./dev"] | ["export" | "docker", *_]:
                pass
            case _:
                pytest.fail(f"nobody checks this command: {words}")


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python_imports_names_that_exist(block: Block) -> None:
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            module = importlib.import_module(node.module)
            assert [name.name for name in node.names if not hasattr(module, name.name)] == []


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_job_specs_are_accepted(block: Block) -> None:
    assert parse_request(json.loads(block.text)).source


@pytest.mark.parametrize("block", blocks("js"), ids=str)
def test_javascript_sends_job_specs_that_are_accepted(block: Block) -> None:
    for spec in re.findall(r"\.send\('clip', (\{.*?\})\)", block.text):
        quoted = re.sub(r"(?<=[{ ])(\w+):", r'"\1":', spec.replace("'", '"'))
        assert parse_request(json.loads(quoted)).source
