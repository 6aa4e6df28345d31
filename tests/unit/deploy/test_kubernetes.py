"""What the manifests promise; no cluster is needed to see it."""

import re
import tomllib
from pathlib import Path

import click
import jsonschema
import kubernetes_validate
import pytest

from tests.unit.deploy.keda import schema_of
from tests.unit.deploy.manifests import (
    FILES,
    KUBERNETES,
    KUSTOMIZATIONS,
    OVERLAYS,
    ROOT,
    Manifest,
    grace_of,
    of_kind,
    pod_specs,
    read,
    rendered,
    settings_of,
    worker_container,
)
from worker.cli import cli
from worker.runtime.supervisor import ABORT_SECONDS, BEATS_SECONDS, TAKING_SECONDS
from worker.settings import Settings

#: the oldest and the newest whose schemas come with kubernetes-validate
VERSIONS = ["1.25", "1.37"]
SETTINGS = {name.upper() for name in Settings.model_fields}
#: what a worker still does when SHUTDOWN_TIMEOUT_SEC is over, a pool that does not close included
ENDING_SECONDS = TAKING_SECONDS + ABORT_SECONDS + BEATS_SECONDS + 3
WORKERS = ["base", "pages"]


def judge(manifest: Manifest, version: str) -> None:
    if manifest["apiVersion"].startswith("keda.sh/"):
        jsonschema.Draft7Validator(schema_of(manifest["kind"])).validate(manifest)
    else:
        kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_manifests_follow_the_published_schemas(path: Path, version: str) -> None:
    judge(read(path), version)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_what_kustomize_makes_of_them_follows_the_published_schemas(overlay: str) -> None:
    found = rendered(overlay)
    assert found
    for manifest in found:
        judge(manifest, VERSIONS[-1])


def test_misspelt_fields_are_noticed() -> None:
    worker, scaled = read(KUBERNETES / "base/worker.yaml"), read(KUBERNETES / "keda/worker.yaml")
    worker["spec"]["template"]["spec"]["terminationGracePeriod"] = 1
    scaled["spec"]["coolDownPeriod"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        judge(worker, VERSIONS[-1])
    with pytest.raises(jsonschema.ValidationError):
        judge(scaled, VERSIONS[-1])


@pytest.mark.parametrize("path", KUSTOMIZATIONS, ids=lambda path: path.parent.name)
def test_every_file_belongs_to_a_kustomization_that_names_it(path: Path) -> None:
    named = read(path)["resources"]
    assert all((path.parent / name).exists() for name in named)
    assert {file.name for file in FILES if file.parent == path.parent} == {
        name for name in named if not name.startswith("..")
    }


@pytest.mark.parametrize("overlay", WORKERS)
def test_kubernetes_waits_longer_than_a_worker_needs_to_stop(overlay: str) -> None:
    *sleep, pause = worker_container()["lifecycle"]["preStop"]["exec"]["command"]
    assert sleep == ["sleep"]
    assert grace_of(overlay) >= int(pause) + int(settings_of(overlay)["SHUTDOWN_TIMEOUT_SEC"]) + ENDING_SECONDS


@pytest.mark.parametrize("overlay", WORKERS)
def test_settings_are_ones_that_exist_and_fit_together(overlay: str) -> None:
    settings = settings_of(overlay)
    assert set(settings) <= SETTINGS
    found = Settings(_env_file=None, **{name.lower(): value for name, value in settings.items()})  # type: ignore[call-arg]
    assert found.metrics_host == "0.0.0.0"
    assert worker_container()["ports"] == [{"name": "metrics", "containerPort": found.metrics_port}]


def test_page_workers_take_pages_only_and_the_others_split() -> None:
    assert settings_of("base")["QUEUES"] == "clip,clip.page"
    assert settings_of("pages")["QUEUES"] == "clip.page"


def test_secrets_named_in_the_comments_are_settings() -> None:
    text = (KUBERNETES / "base/worker.yaml").read_text()
    (listed,) = re.findall(r"# (DATABASE_URL.*)", text)
    assert set(listed.split(", ")) <= SETTINGS


def test_pods_are_not_root_and_write_nowhere_but_into_their_volumes() -> None:
    manifests = tuple(map(read, FILES))
    specs = list(pod_specs(manifests))
    assert len(specs) == 2
    for spec in specs:
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["automountServiceAccountToken"] is False
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_user_and_scratch_are_those_of_the_image(dockerfile: list[str]) -> None:
    (user,) = [line.split()[1] for line in dockerfile if line.startswith("USER")]
    spec = read(KUBERNETES / "base/worker.yaml")["spec"]["template"]["spec"]
    assert user == f"{spec['securityContext']['runAsUser']}:{spec['securityContext']['runAsGroup']}"
    assert spec["securityContext"]["fsGroup"] == spec["securityContext"]["runAsGroup"]
    mounts = {mount["mountPath"] for mount in worker_container()["volumeMounts"]}
    (scratch,) = [line.split()[1] for line in dockerfile if line.startswith("VOLUME")]
    assert mounts == {scratch, "/tmp"}


def test_images_are_this_release() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for spec in pod_specs(tuple(map(read, FILES))):
        assert [container["image"] for container in spec["containers"]] == [f"clipboss:{version}"]


def test_commands_are_ones_we_have() -> None:
    for spec in pod_specs(tuple(map(read, FILES))):
        for container in spec["containers"]:
            # The image's own entry point stays: tini hands on the signals.
            assert "command" not in container
            for argument in container.get("args", []):
                assert cli.get_command(click.Context(cli), argument) is not None


def test_probes_ask_the_endpoint_that_tells_health() -> None:
    container = worker_container()
    asked = [container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    assert asked == [{"path": "/healthz", "port": "metrics"}] * 3
    liveness = container["livenessProbe"]
    # A loop that stood still for a moment must not cost the pod.
    assert liveness["periodSeconds"] * liveness["failureThreshold"] >= 60


def test_processor_time_is_never_throttled() -> None:
    assert "cpu" not in worker_container()["resources"]["limits"]


def test_disruption_budget_never_holds_up_a_node_for_ever() -> None:
    budget = read(KUBERNETES / "base/disruption.yaml")["spec"]
    assert budget["maxUnavailable"] == 1
    assert "minAvailable" not in budget


def test_network_lets_in_scrapes_only_and_nothing_out_to_private_addresses() -> None:
    policy = read(KUBERNETES / "base/network.yaml")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert [port["port"] for rule in policy["ingress"] for port in rule["ports"]] == [9090]
    (web,) = [rule for rule in policy["egress"] if {port["port"] for port in rule["ports"]} == {80, 443}]
    blocked = {network for place in web["to"] for network in place["ipBlock"]["except"]}
    # the metadata service of clouds among them
    assert {"10.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fe80::/10"} <= blocked


def test_selectors_of_the_two_kinds_of_workers_do_not_overlap() -> None:
    for overlay, component in (("base", "worker"), ("pages", "pages")):
        manifests = rendered(overlay)
        (deployment,), (service,), (budget,), (policy,) = (
            of_kind(manifests, kind) for kind in ("Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy")
        )
        labels = {"app.kubernetes.io/name": "clipboss", "app.kubernetes.io/component": component}
        assert deployment["spec"]["template"]["metadata"]["labels"] == labels
        assert deployment["spec"]["selector"]["matchLabels"] == labels
        assert service["spec"]["selector"] == labels
        assert budget["spec"]["selector"]["matchLabels"] == labels
        assert policy["spec"]["podSelector"]["matchLabels"] == labels


def test_rendered_page_workers_are_what_the_parts_say() -> None:
    (deployment,) = of_kind(rendered("pages"), "Deployment")
    (settings,) = of_kind(rendered("pages"), "ConfigMap")
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == grace_of("pages")
    assert settings["data"] == settings_of("pages")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["envFrom"][0]["configMapRef"]["name"] == settings["metadata"]["name"]
    assert container["envFrom"][1]["secretRef"]["name"] == "clipboss"


def test_replicas_belong_to_whoever_scales() -> None:
    assert "replicas" not in read(KUBERNETES / "base/worker.yaml")["spec"]


def test_procfile_starts_what_we_have() -> None:
    lines = dict(line.split(": ", 1) for line in (ROOT / "Procfile").read_text().splitlines())
    assert set(lines) == {"release", "worker"}
    for line in lines.values():
        python, minus_m, worker, *rest = line.split()
        assert [python, minus_m, worker] == ["python", "-m", "worker"]
        assert all(cli.get_command(click.Context(cli), command) for command in rest)
