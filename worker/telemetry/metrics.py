"""What the worker counts, for Prometheus; a label never carries a job id."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from worker.telemetry.endpoint import MetricsServer, serve

#: from a cached HEAD to an hour of encoding
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)


class Metrics:
    """Has a registry of its own, so that two workers in one process do not count for each other."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.heartbeats = Counter("worker_heartbeats_total", "Beats the database confirmed.", registry=registry)
        self.heartbeat_failures = Counter(
            "worker_heartbeat_failures_total", "Beats that did not reach the database.", registry=registry
        )
        self.recovered_jobs = Counter(
            "worker_recovered_jobs_total",
            "Jobs taken back from dead workers, by reason.",
            ["reason"],
            registry=registry,
        )
        self.retry_attempts = Counter(
            "worker_retry_attempts_total",
            "Attempts that failed and will be repeated, by error code.",
            ["code"],
            registry=registry,
        )
        self.concurrent_jobs = Gauge(
            "worker_concurrent_jobs", "Jobs this worker is working on right now.", registry=registry
        )
        self.acquire_conflicts = Counter(
            "worker_acquire_conflicts_total",
            "Deliveries not run because their job was done or held by a live lease.",
            registry=registry,
        )
        self.loop_lag = Gauge(
            "worker_loop_lag_seconds",
            "How late the worker's event loop is, or was when it last came round.",
            registry=registry,
        )
        self.lease_lost = Counter(
            "worker_lease_lost_total", "Jobs dropped because somebody else owns them now.", registry=registry
        )
        self.stage_duration = Histogram(
            "worker_stage_duration_seconds",
            "Wall time of a stage.",
            ["stage"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.job_duration = Histogram(
            "worker_job_duration_seconds",
            "Wall time of an attempt, by queue and how it ended.",
            ["queue", "outcome"],
            buckets=_SECONDS,
            registry=registry,
        )

    def serve(
        self, port: int, *, host: str = "127.0.0.1", is_alive: Callable[[], bool] = lambda: True
    ) -> MetricsServer:
        """Answer `GET /metrics`, and `GET /healthz` with 503 while not alive."""
        return serve(self.registry, port, host=host, is_alive=is_alive)
