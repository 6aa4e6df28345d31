"""The files of deploy/kubernetes as tests see them, and what kustomize makes of them where it is installed."""

import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
KUBERNETES = ROOT / "deploy/kubernetes"
OVERLAYS = ["base", "pages", "hpa", "keda", "migrate"]
FILES = sorted(path for path in KUBERNETES.rglob("*.yaml") if path.name != "kustomization.yaml")
KUSTOMIZATIONS = sorted(KUBERNETES.rglob("kustomization.yaml"))
Manifest = dict[str, Any]


def read(path: Path) -> Manifest:
    (document,) = yaml.safe_load_all(path.read_text())
    assert isinstance(document, dict)
    return document


def settings_of(overlay: str) -> dict[str, str]:
    """The ConfigMap of `base` or `pages`, as kustomize puts it together."""
    lines = (KUBERNETES / "base/settings.env").read_text().splitlines()
    for generator in read(KUBERNETES / overlay / "kustomization.yaml").get("configMapGenerator", []):
        lines += generator.get("literals", [])
    return dict(line.split("=", 1) for line in lines)


def grace_of(overlay: str) -> int:
    """terminationGracePeriodSeconds of the overlay's workers."""
    grace = read(KUBERNETES / "base/worker.yaml")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    for patch in read(KUBERNETES / overlay / "kustomization.yaml").get("patches", []):
        for change in yaml.safe_load(patch["patch"]):
            assert change["path"] == "/spec/template/spec/terminationGracePeriodSeconds"
            grace = change["value"]
    return int(grace)


def worker_container() -> Manifest:
    (container,) = read(KUBERNETES / "base/worker.yaml")["spec"]["template"]["spec"]["containers"]
    return dict(container)


@cache
def rendered(overlay: str) -> tuple[Manifest, ...]:
    for argv in (["kustomize", "build"], ["kubectl", "kustomize"]):
        if shutil.which(argv[0]):
            done = subprocess.run(
                [*argv, str(KUBERNETES / overlay)], capture_output=True, text=True, check=True, timeout=30
            )
            return tuple(yaml.safe_load_all(done.stdout))
    pytest.skip("neither kustomize nor kubectl is installed")


def of_kind(manifests: tuple[Manifest, ...], kind: str) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest["kind"] == kind]


def pod_specs(manifests: tuple[Manifest, ...]) -> Iterator[Manifest]:
    for manifest in manifests:
        if manifest["kind"] in {"Deployment", "Job"}:
            yield manifest["spec"]["template"]["spec"]
