"""The recovery scanner: gives the jobs of vanished workers to the living ones."""

import time

import structlog

from worker.jobs.recovery import ScanReport, StaleLeases
from worker.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)


class RecoveryScanner:
    """Runs in every worker; there is no leader."""

    def __init__(self, leases: StaleLeases, *, lease_seconds: float, metrics: Metrics) -> None:
        self._leases = leases
        self._lease_seconds = lease_seconds
        self._metrics = metrics
        #: monotonic time since when every scan has worked
        self._scanning_since: float | None = None

    async def run_once(self) -> ScanReport:
        try:
            report = await self._scan()
        except BaseException:
            # After an outage every lease looks stale: their owners get one lease's time to beat again.
            self._scanning_since = None
            raise
        for reason, count in report.recovered.items():
            self._metrics.recovered_jobs.labels(reason=reason).inc(count)
            log.info("jobs_recovered", reason=reason, count=count)
        return report

    async def _scan(self) -> ScanReport:
        now = time.monotonic()
        since = now if self._scanning_since is None else self._scanning_since
        report = await self._leases.recover(silent_are_dead=now - since >= self._lease_seconds)
        self._scanning_since = since
        return report
