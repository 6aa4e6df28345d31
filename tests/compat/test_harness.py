"""The harness itself: packages are installed once and completely, and no Node process is left behind."""

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.compat import npm
from tests.compat.conftest import StartNode
from tests.compat.harness import NEWEST, OLDER, NodeBoss, NodeError, eventually


@pytest.mark.parametrize("project", [NEWEST, OLDER], ids=lambda project: project.name)
def test_locks_name_no_registry(project: Path) -> None:
    lock = json.loads((project / "package-lock.json").read_text())
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    assert all(package["integrity"] for name, package in lock["packages"].items() if name)
    assert "registry" not in re.sub("omit-lockfile-registry-resolved", "", (project / ".npmrc").read_text())


def test_every_scenario_has_its_test() -> None:
    names = "\n".join(path.read_text() for path in npm.HERE.glob("test_compat_*.py"))
    numbers = {int(number) for number in re.findall(r"^async def test_(\d\d)_", names, re.MULTILINE)}
    assert numbers == set(range(1, 51))


def test_two_that_install_at_once_share_one_complete_install(tmp_path: Path) -> None:
    project = _project_without_dependencies(tmp_path / "project")
    with ThreadPoolExecutor(2) as installers:
        first, second = installers.map(_install, [project] * 2, [tmp_path / "cache"] * 2)
    assert first == second
    assert [path.name for path in (tmp_path / "cache").iterdir() if path.is_dir() and path != first] == ["npm-cache"]


def test_failed_install_leaves_nothing_that_looks_like_one(tmp_path: Path) -> None:
    project = _project_without_dependencies(tmp_path / "project")
    (project / "package-lock.json").write_text("{")
    with pytest.raises(RuntimeError, match="npm ci"):
        npm.installed(project, under=tmp_path / "cache")
    assert [path for path in (tmp_path / "cache").iterdir() if path.is_dir() and path.name != "npm-cache"] == []


async def test_node_ends_when_its_stdin_closes(dsn: str, packages: Path) -> None:
    async with NodeBoss(dsn, packages=packages) as node:
        process = psutil.Process(node.pid)
        node.close_stdin()

        async def gone() -> bool:
            return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE

        await eventually(gone)


async def test_errors_of_pg_boss_arrive_as_exceptions(node: NodeBoss) -> None:
    with pytest.raises(NodeError, match="nowhere does not exist"):
        await node.call("send", "nowhere", {})
    with pytest.raises(NodeError, match="no method fly"):
        await node.call("fly")
    with pytest.raises(NodeError) as failed:
        await node.call("sql", "SELECT 1 / 0")
    assert failed.value.code == "22012"


async def test_call_to_a_process_that_died_fails_at_once(start_node: StartNode) -> None:
    node = await start_node()
    await node.kill()
    with pytest.raises(AssertionError, match="did not answer"):
        await node.call("getQueues")


def _install(project: Path, cache: Path) -> Path:
    # As on a machine where npm never ran: no home with a cache or settings in it.
    env = {"PATH": os.environ["PATH"], "HOME": str(project)}
    return npm.installed(project, under=cache, env=env)


def _project_without_dependencies(directory: Path) -> Path:
    directory.mkdir()
    package = {"name": "empty", "version": "1.0.0"}
    (directory / "package.json").write_text(json.dumps(package))
    lock = {**package, "lockfileVersion": 3, "packages": {"": package}}
    (directory / "package-lock.json").write_text(json.dumps(lock))
    (directory / ".npmrc").write_text((NEWEST / ".npmrc").read_text())
    return directory
