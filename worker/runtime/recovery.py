"""The recovery scanner: gives the jobs of vanished workers to the living ones."""

import structlog

from worker.jobs.recovery import ScanReport, StaleLeases
from worker.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)


class RecoveryScanner:
    """Runs in every worker; there is no leader."""

    def __init__(self, leases: StaleLeases, *, metrics: Metrics) -> None:
        self._leases = leases
        self._metrics = metrics
        self._has_failed = False

    async def run_once(self) -> ScanReport:
        try:
            silent_are_dead = await self._leases.note_scan(after_failure=self._has_failed)
            report = await self._leases.recover(silent_are_dead=silent_are_dead)
        except BaseException:
            self._has_failed = True
            raise
        self._has_failed = False
        for reason, count in report.recovered.items():
            self._metrics.recovered_jobs.labels(reason=reason).inc(count)
            log.info("jobs_recovered", reason=reason, count=count)
        return report
