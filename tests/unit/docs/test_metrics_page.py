"""The page about metrics is what workers expose and what alerts there are."""

import re

import yaml

from tests.unit.docs.pages import ROOT, prose, table_rows
from tests.unit.telemetry.exposed import VALUES, exposed
from worker.jobs.backlog import COUNT_LIMIT, TIMEOUT_SECONDS
from worker.telemetry.backlog import FRESH_SECONDS

PAGE = ROOT / "docs/metrics.md"


def rows(pattern: str) -> dict[str, list[str]]:
    found = [(re.fullmatch(f"`({pattern})`", row[0]), row) for row in table_rows(PAGE)]
    return {match[1]: row for match, row in found if match}


def quoted(cell: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", cell))


def test_metrics_are_exactly_those_of_the_code() -> None:
    documented = {name: (row[1], quoted(row[2])) for name, row in rows(r"worker_\w+").items()}
    assert documented == {each.name: (each.type, set(each.labels)) for each in exposed().values()}


def test_values_of_labels_are_those_of_the_code() -> None:
    documented = {name: quoted(row[1]) for name, row in rows("[a-z]+").items()}
    assert set(documented) == {*VALUES, "code"}
    for label, values in VALUES.items():
        assert values is None or documented[label] == values


def test_outcomes_are_those_the_executor_tells() -> None:
    source = (ROOT / "worker/runtime/executor.py").read_text()
    assert set(re.findall(r'return "(\w+)", (?:None|error)', source)) == VALUES["outcome"]


def test_every_alert_says_what_to_do() -> None:
    (group,) = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())["groups"]
    assert list(rows(r"Clipboss\w+")) == [rule["alert"] for rule in group["rules"]]


def test_limits_are_those_of_the_code() -> None:
    text = prose(PAGE)
    assert set(re.findall(r"(?<!,)\b\d+,000\b(?!,)", text)) == {f"{COUNT_LIMIT:,}"}
    assert f"at most once in {FRESH_SECONDS:.0f} seconds" in text
    assert f"It is given up after {TIMEOUT_SECONDS:.0f} seconds" in text
    told = {each.name: each.help for each in exposed().values()}
    assert str(COUNT_LIMIT) in told["worker_pending_jobs"]


def test_design_names_are_all_there() -> None:
    names = "heartbeats_total heartbeat_failures_total recovered_jobs_total retry_attempts_total concurrent_jobs"
    names += " acquire_conflicts_total lease_lost_total stage_duration_seconds job_duration_seconds pending_jobs"
    names += " backlog_seconds"
    assert {f"worker_{name}" for name in names.split()} <= set(exposed())
    assert not {label for each in exposed().values() for label in each.labels} & {"id", "job", "job_id", "worker_id"}
