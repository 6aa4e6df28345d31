"""Names are a contract with every dashboard that reads them."""

import socket
import urllib.error
import urllib.request

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from worker.errors import ConfigError
from worker.runtime.pulse import Ticker
from worker.telemetry.metrics import Metrics


def samples(text: str) -> dict[str, float]:
    return {
        sample.name + "".join(f"{{{key}={value}}}" for key, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_metric_appears_under_its_promised_name() -> None:
    metrics = Metrics()
    metrics.heartbeats.inc()
    metrics.heartbeat_failures.inc()
    metrics.recovered_jobs.labels(reason="stale").inc()
    metrics.retry_attempts.labels(code="CLIP_TIMEOUT").inc()
    metrics.concurrent_jobs.inc()
    metrics.acquire_conflicts.inc()
    metrics.lease_lost.inc()
    metrics.loop_lag.set(0.5)
    metrics.stage_duration.labels(stage="clip").observe(3)
    metrics.job_duration.labels(queue="clip", outcome="done").observe(1800)

    shown = samples(generate_latest(metrics.registry).decode())

    assert {name: value for name, value in shown.items() if "_created" not in name and "_bucket" not in name} == {
        "worker_heartbeats_total": 1,
        "worker_heartbeat_failures_total": 1,
        "worker_recovered_jobs_total{reason=stale}": 1,
        "worker_retry_attempts_total{code=CLIP_TIMEOUT}": 1,
        "worker_concurrent_jobs": 1,
        "worker_acquire_conflicts_total": 1,
        "worker_lease_lost_total": 1,
        "worker_loop_lag_seconds": 0.5,
        "worker_stage_duration_seconds_count{stage=clip}": 1,
        "worker_stage_duration_seconds_sum{stage=clip}": 3,
        "worker_job_duration_seconds_count{outcome=done}{queue=clip}": 1,
        "worker_job_duration_seconds_sum{outcome=done}{queue=clip}": 1800,
    }
    assert shown["worker_stage_duration_seconds_bucket{le=2.5}{stage=clip}"] == 0
    assert shown["worker_stage_duration_seconds_bucket{le=5.0}{stage=clip}"] == 1


def test_two_workers_in_one_process_count_apart() -> None:
    one, other = Metrics(), Metrics()
    one.lease_lost.inc()

    assert other.registry.get_sample_value("worker_lease_lost_total") == 0


def test_served_over_http_until_stopped() -> None:
    metrics = Metrics()
    metrics.heartbeats.inc(3)
    server = metrics.serve(0)
    url = f"http://127.0.0.1:{server.port}/metrics"

    with urllib.request.urlopen(url, timeout=5) as answer:
        assert samples(answer.read().decode())["worker_heartbeats_total"] == 3
    server.stop()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=5)


def test_health_is_that_of_the_loop_and_metrics_are_told_all_the_same() -> None:
    alive = [True]
    server = Metrics().serve(0, is_alive=lambda: alive[0])
    url = f"http://127.0.0.1:{server.port}"
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=5) as answer:
            assert answer.read() == b"ok\n"
        alive[0] = False
        with pytest.raises(urllib.error.HTTPError, match="503") as caught:
            urllib.request.urlopen(f"{url}/healthz", timeout=5)
        caught.value.close()
        with urllib.request.urlopen(f"{url}/metrics", timeout=5) as answer:
            assert b"# TYPE worker_heartbeats_total counter" in answer.read()
    finally:
        server.stop()


def test_endpoint_listens_where_it_is_told() -> None:
    server = Metrics().serve(0, host="0.0.0.0")
    try:
        with urllib.request.urlopen(f"http://127.0.0.2:{server.port}/metrics", timeout=5) as answer:
            assert answer.status == 200
    finally:
        server.stop()


def test_every_metric_has_help_and_a_type() -> None:
    shown = generate_latest(Metrics().registry).decode()
    names = {family.name for family in text_string_to_metric_families(shown)}
    assert len(names) > 10
    for family in text_string_to_metric_families(shown):
        assert family.documentation, family.name
        assert family.type in {"counter", "gauge", "histogram"}, family.name


def test_loop_that_stands_still_shows_how_late_it_is() -> None:
    metrics = Metrics()
    Ticker(interval_seconds=0.0, stall_seconds=0.0, metrics=metrics)

    first = metrics.registry.get_sample_value("worker_loop_lag_seconds")
    second = metrics.registry.get_sample_value("worker_loop_lag_seconds")

    assert first is not None
    assert second is not None
    assert second > first > 0


def test_taken_port_is_a_configuration_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(ConfigError, match=f"METRICS_PORT={port}"):
            Metrics().serve(port)
