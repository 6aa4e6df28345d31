"""What the compose file promises; no docker is needed to see it."""

import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from worker.settings import Settings

ONE_SHOT = {"bucket", "migrate"}
OURS = {*ONE_SHOT, "worker"}
SETTINGS = {name.upper() for name in Settings.model_fields}


def defaults(text: str) -> str:
    """What compose makes of `${NAME:-default}` when nothing is set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


def seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def test_services_are_the_ones_we_know(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == OURS | {"postgres", "minio", "seaweedfs"}


def test_foreign_images_are_pinned_to_a_version(compose: dict[str, Any]) -> None:
    for name in set(compose["services"]) - OURS:
        image = defaults(compose["services"][name]["image"])
        tag = image.rsplit("/", 1)[-1].partition(":")[2]
        assert re.search(r"\d+\.\d+|\d{4}-\d\d-\d\d", tag), f"{name}: {image}"
        assert "latest" not in tag


def test_minio_comes_from_the_registry_of_its_vendor(compose: dict[str, Any]) -> None:
    assert defaults(compose["services"]["minio"]["image"]).startswith("quay.io/minio/minio:RELEASE.")


def test_long_running_services_have_health_checks_without_a_shell(compose: dict[str, Any]) -> None:
    for name in ("postgres", "minio", "seaweedfs"):
        assert compose["services"][name]["healthcheck"]["test"][0] == "CMD"
    # The worker's is in its image, and makes no sense for what ends at once.
    assert "healthcheck" not in compose["services"]["worker"]
    assert all(compose["services"][name]["healthcheck"] == {"disable": "true"} for name in ONE_SHOT)


def test_worker_starts_after_schema_and_bucket_are_there(compose: dict[str, Any]) -> None:
    services = compose["services"]

    assert services["worker"]["depends_on"] == {
        name: {"condition": "service_completed_successfully"} for name in ("migrate", "bucket")
    }
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}


def test_choosing_seaweedfs_never_needs_the_minio_image(compose: dict[str, Any]) -> None:
    services = compose["services"]

    assert services["seaweedfs"]["profiles"] == ["seaweedfs"]
    assert all("minio" not in service.get("depends_on", {}) for service in services.values())


def test_docker_waits_longer_than_the_worker_needs_to_stop(compose: dict[str, Any]) -> None:
    worker = compose["services"]["worker"]

    shutdown_seconds = int(worker["environment"]["SHUTDOWN_TIMEOUT_SEC"])
    assert seconds(worker["stop_grace_period"]) >= shutdown_seconds + 20


@pytest.mark.parametrize("service", ["worker", "migrate"])
def test_our_services_use_only_settings_that_exist(compose: dict[str, Any], service: str) -> None:
    assert set(compose["services"][service]["environment"]) <= SETTINGS


def test_defaults_make_valid_settings(compose: dict[str, Any]) -> None:
    environment = {
        name.lower(): defaults(value) for name, value in compose["services"]["worker"]["environment"].items()
    }

    settings = Settings(_env_file=None, **environment)  # type: ignore[call-arg]

    assert settings.artifacts_url == "s3://clipboss"


def test_every_s3_service_takes_the_same_keys(compose: dict[str, Any]) -> None:
    services = compose["services"]
    keys = {
        (environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY"))
        for environment in (services[name]["environment"] for name in ("seaweedfs", "bucket", "worker"))
    }
    minio = services["minio"]["environment"]

    assert keys == {(minio["MINIO_ROOT_USER"], minio["MINIO_ROOT_PASSWORD"])}
    assert services["bucket"]["environment"]["S3_ENDPOINT_URL"] == services["worker"]["environment"]["S3_ENDPOINT_URL"]


def test_secrets_come_from_outside_and_default_to_obviously_local_ones(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for name, value in service["environment"].items():
            if re.search("PASSWORD|SECRET|ACCESS_KEY|ROOT_USER|DATABASE_URL", name):
                assert re.search(r"\$\{\w+:-local-only[\w-]*\}", value), name


def test_ports_are_published_on_loopback_only(compose: dict[str, Any]) -> None:
    ports = [port for service in compose["services"].values() for port in service.get("ports", [])]

    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_named_volumes_are_declared(compose: dict[str, Any]) -> None:
    used = {
        volume.partition(":")[0] for service in compose["services"].values() for volume in service.get("volumes", [])
    }

    assert used == set(compose["volumes"])


def test_workers_can_be_many(compose: dict[str, Any]) -> None:
    # `--scale worker=3`: a name or a port of the host can be taken once only.
    assert {"container_name", "ports", "hostname"}.isdisjoint(compose["services"]["worker"])
    # Workers share the volume as processes on one machine share a directory: each holds its own rooms by flock.
    assert compose["services"]["worker"]["volumes"] == ["scratch:/scratch"]


ANNOUNCE_SLEEP = """
import time
sleep = time.sleep
time.sleep = lambda seconds: (print("waiting", flush=True), sleep(seconds))
"""


class LateS3(BaseHTTPRequestHandler):
    """Answers as S3 does: the bucket is made once, and is ours from then on."""

    made: list[str]

    def do_PUT(self) -> None:
        body = b"" if not self.made else b"<Error><Code>BucketAlreadyOwnedByYou</Code></Error>"
        self.made.append(self.path)
        self.send_response(409 if body else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def test_bucket_service_waits_for_the_server_and_may_run_twice(compose: dict[str, Any]) -> None:
    [script] = compose["services"]["bucket"]["command"]
    LateS3.made = []
    server = HTTPServer(("127.0.0.1", 0), LateS3, bind_and_activate=False)
    server.server_bind()
    environment = {
        **{name: defaults(value) for name, value in compose["services"]["bucket"]["environment"].items()},
        "S3_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "PATH": os.environ["PATH"],
        # One refusal a try, so that it is the script that waits.
        "AWS_MAX_ATTEMPTS": "1",
    }
    command = [sys.executable, "-c", ANNOUNCE_SLEEP + script]

    first = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    # Bound but not listening: whoever connects is refused.
    assert first.stdout.readline() == "waiting\n"
    server.server_activate()
    answering = threading.Thread(target=server.serve_forever)
    answering.start()
    try:
        assert first.wait(timeout=15) == 0
        assert subprocess.run(command, env=environment, timeout=15, check=False).returncode == 0
    finally:
        first.kill()
        first.stdout.close()
        server.shutdown()
        answering.join()
        server.server_close()
    assert LateS3.made == ["/clipboss", "/clipboss"]
