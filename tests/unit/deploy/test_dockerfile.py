"""What the image promises; no docker is needed to see it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from worker.settings import Settings
from worker.telemetry.metrics import Metrics

ROOT = Path(__file__).parents[3]


def last(instructions: list[str], name: str) -> str:
    return [line.removeprefix(name).strip() for line in instructions if line.startswith(name)][-1]


def test_bases_are_pinned_to_a_patch_release(dockerfile: list[str]) -> None:
    bases = [line.split()[1] for line in dockerfile if line.startswith("FROM")]

    assert len(bases) == 2
    assert all(re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", base) for base in bases)
    assert len(set(bases)) == 1


def test_dependencies_are_checked_against_their_hashes(dockerfile: list[str]) -> None:
    [install] = [line for line in dockerfile if "requirements/runtime.txt" in line and line.startswith("RUN")]

    assert "--require-hashes" in install


def test_python_gets_the_signals_through_an_init_that_reaps(dockerfile: list[str]) -> None:
    assert json.loads(last(dockerfile, "ENTRYPOINT")) == ["/usr/bin/tini", "--", "python", "-m", "worker"]
    assert any("apt-get install" in line and "tini" in line for line in dockerfile)


def test_image_does_not_run_as_root(dockerfile: list[str]) -> None:
    user, group = last(dockerfile, "USER").split(":")

    assert int(user) > 0
    assert int(group) > 0
    assert not any(line.startswith("USER") and "root" in line for line in dockerfile)


def test_scratch_is_a_volume_that_the_worker_uses(dockerfile: list[str]) -> None:
    assert last(dockerfile, "VOLUME") == "/scratch"
    assert "SCRATCH_DIR=/scratch" in last(dockerfile, "ENV")


def test_environment_of_the_image_names_only_settings_that_exist(dockerfile: list[str]) -> None:
    names = set(re.findall(r"(\w+)=", last(dockerfile, "ENV"))) - {"PATH", "PYTHONUNBUFFERED"}

    assert names == {"SCRATCH_DIR", "LOG_FORMAT", "METRICS_PORT"}
    assert {name.lower() for name in names} <= set(Settings.model_fields)


def test_health_check_asks_the_running_worker(dockerfile: list[str]) -> None:
    command = json.loads(last(dockerfile, "HEALTHCHECK").partition("CMD ")[2])
    assert command[0] == "python"
    server = Metrics().serve(0)
    environment = {"PATH": os.environ["PATH"], "METRICS_PORT": str(server.port)}

    def is_healthy() -> bool:
        checked = subprocess.run([sys.executable, *command[1:]], env=environment, capture_output=True, check=False)
        return checked.returncode == 0

    assert is_healthy()
    server.stop()
    assert not is_healthy()


def test_build_context_holds_what_is_copied_and_nothing_else(dockerfile: list[str]) -> None:
    copied = {
        source.removesuffix("/runtime.txt")
        for line in dockerfile
        if line.startswith("COPY ") and "--from" not in line
        for source in line.split()[1:-1]
    }
    rules = (ROOT / ".dockerignore").read_text().splitlines()
    let_in = {rule[1:].removesuffix("/**").removesuffix("/runtime.txt") for rule in rules if rule.startswith("!")}

    assert "*" in rules
    assert let_in == copied
