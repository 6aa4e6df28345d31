"""What a run was, what was done to it, and what came of it, as Markdown and as JSON."""

import os
import platform
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass

import psutil

from tests.chaos.evidence import Evidence
from tests.chaos.history import Violation
from tests.chaos.invariants import percentile, recovery_latencies
from tests.chaos.lanes import Lane

#: violations that mean that a job was lost, and those that mean that it ran or ended twice
LOSSES = ("lost", "artifact")
DOUBLES = ("edge", "fence", "overlap", "result", "taken early")


@dataclass(frozen=True, slots=True)
class Report:
    command: str
    seed: str
    seconds: float
    machine: str
    workers: int
    processes_started: int
    accepted: int
    #: `done`, `cancelled`, or `failed CODE`
    ended: Mapping[str, int]
    faults: Mapping[str, int]
    missing_lanes: Mapping[str, str]
    failpoints: Mapping[str, int]
    attempts: int
    outages: int
    losses: int
    doubles: int
    violations: Sequence[str]
    #: 95 % upper bound of the probability that a job is lost or doubled, by the rule of three; None if any was
    upper_bound: float | None
    recoveries: int
    recovery_seconds: Mapping[str, float | None]
    #: those included for which no other worker was there that could have recovered the job in time
    unwitnessed_recoveries: int
    unwitnessed_recovery_seconds: Mapping[str, float | None]

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def make_report(
    evidence: Evidence, lanes: Sequence[Lane], *, command: str, seed: str, seconds: float, workers: int
) -> Report:
    history = evidence.history
    losses = _affected(evidence.violations, LOSSES)
    doubles = _affected(evidence.violations, DOUBLES)
    latencies, all_latencies = recovery_latencies(history), recovery_latencies(history, witnessed=False)
    ended = Counter(
        f"failed {job.error_code}" if job.status == "failed" else job.status for job in history.jobs.values()
    )
    waiting = sum(job.status == "queued" for job in history.jobs.values())
    if waiting:
        ended["cancelled by Node while waiting"] = ended.pop("queued")
    return Report(
        command=command,
        seed=seed,
        seconds=seconds,
        machine=_machine(),
        workers=workers,
        processes_started=len(history.processes),
        accepted=len(history.accepted),
        ended=dict(ended.most_common()),
        faults={lane.name: lane.count for lane in lanes if lane.missing is None},
        missing_lanes={lane.name: lane.missing for lane in lanes if lane.missing is not None},
        failpoints=dict(Counter(f"{hit.point} {hit.action}" for hit in history.traces.hits)),
        attempts=len(history.traces.taken),
        outages=len(history.outages),
        losses=losses,
        doubles=doubles,
        violations=[str(violation) for violation in evidence.violations],
        upper_bound=3 / len(history.accepted) if history.accepted and not losses and not doubles else None,
        recoveries=len(latencies),
        recovery_seconds=_percentiles(latencies),
        unwitnessed_recoveries=len(all_latencies) - len(latencies),
        unwitnessed_recovery_seconds=_percentiles(all_latencies),
    )


def as_markdown(report: Report) -> str:
    bound = (
        f"below {report.upper_bound:.2e} per job with 95 % confidence (3/n)"
        if report.upper_bound is not None
        else "not given: there were some"
    )
    late = _in_words(report.unwitnessed_recovery_seconds)
    lines = [
        "# Chaos report",
        "",
        f"`{report.command}`",
        "",
        f"- seed `{report.seed}`, {report.seconds:.0f} s, {report.workers} workers, on {report.machine}",
        f"- {report.accepted} jobs accepted, {report.attempts} leases, {report.processes_started} worker processes",
        f"- **{report.losses} lost, {report.doubles} doubled, {len(report.violations)} violations**",
        f"- probability of losing or doubling a job: {bound}",
        f"- recovery after a worker's death, {report.recoveries} samples: {_in_words(report.recovery_seconds)}",
        f"- with {report.unwitnessed_recoveries} more, for which no worker older than a lease was left: {late}",
        f"- times in which workers could not reach the database, left out there: {report.outages}",
        *_table("How jobs ended", "End", report.ended),
        *_table("Faults injected", "Lane", report.faults),
    ]
    if report.missing_lanes:
        lines += _table("Lanes that could not run", "Lane", report.missing_lanes)
    if report.failpoints:
        lines += _table("Failpoints", "Point and action", dict(sorted(report.failpoints.items())))
    if report.violations:
        lines += ["", "## Violations", "", *[f"- {violation}" for violation in report.violations[:100]]]
    return "\n".join(lines) + "\n"


def _table(title: str, head: str, rows: Mapping[str, object]) -> list[str]:
    return [
        "",
        f"## {title}",
        "",
        f"| {head} | |",
        "|---|---|",
        *[f"| {name} | {value} |" for name, value in rows.items()],
    ]


def _percentiles(samples: Sequence[float]) -> dict[str, float | None]:
    return {f"p{share}": percentile(samples, share / 100) for share in (50, 90, 99, 100)}


def _in_words(percentiles: Mapping[str, float | None]) -> str:
    known = [f"{name} {seconds:.2f} s" for name, seconds in percentiles.items() if seconds is not None]
    return ", ".join(known) or "none"


def _machine() -> str:
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GB, "
        f"Python {platform.python_version()}"
    )


def _affected(violations: Sequence[Violation], checks: Collection[str]) -> int:
    """How many jobs violations of these checks are about."""
    return len({violation.job for violation in violations if violation.check in checks and violation.job})
