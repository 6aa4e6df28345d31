"""Rules and alerts name metrics, labels and values that exist, and say something a person can act on."""

import re
from typing import Any

import promql_parser
import pytest
import yaml

from tests.unit.deploy.manifests import KUBERNETES, ROOT, read
from tests.unit.deploy.promql import judge, labels_of

FOLDER = ROOT / "deploy/prometheus"
DURATION = re.compile(r"\d+[smhd]")


def rules(name: str) -> list[dict[str, Any]]:
    document = yaml.safe_load((FOLDER / name).read_text())
    assert set(document) == {"groups"}
    assert all(set(group) == {"name", "rules"} for group in document["groups"])
    return [rule for group in document["groups"] for rule in group["rules"]]


def recorded() -> dict[str, set[str]]:
    """The names that rules.yml makes, with their labels, in the order in which they are made."""
    found: dict[str, set[str]] = {}
    for rule in rules("rules.yml"):
        judge(rule["expr"], recorded=found)
        found[rule["record"]] = labels_of(rule["expr"], found)
    return found


ALERTS = rules("alerts.yml")


def test_recorded_names_are_by_queue() -> None:
    names = recorded()
    assert set(names) == {
        f"clipboss_{what}" for what in ("pending_jobs", "active_jobs", "backlog_seconds", "demand_jobs")
    }
    assert all(labels == {"queue"} for labels in names.values())
    assert all(set(rule) == {"record", "expr"} for rule in rules("rules.yml"))


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_alert_asks_for_what_exists(rule: dict[str, Any]) -> None:
    names = recorded()
    assert judge(rule["expr"], recorded=names)
    told = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    assert told <= labels_of(rule["expr"], names)


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_alert_has_the_form_prometheus_takes(rule: dict[str, Any]) -> None:
    assert {"alert", "expr", "labels", "annotations"} <= set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert set(rule["annotations"]) == {"summary", "description"}
    assert DURATION.fullmatch(rule.get("for", "1m"))


def test_alerts_have_names_of_their_own() -> None:
    assert len({rule["alert"] for rule in ALERTS}) == len(ALERTS)


def test_autoscaler_asks_for_a_recorded_name_that_the_adapter_passes_on() -> None:
    (metric,) = read(KUBERNETES / "hpa/autoscaler.yaml")["spec"]["metrics"]
    (rule,) = yaml.safe_load((FOLDER / "adapter.yml").read_text())["externalRules"]
    assert metric["external"]["metric"]["name"] == rule["seriesQuery"]
    assert rule["seriesQuery"] in recorded()
    asked = rule["metricsQuery"].replace("<<.Series>>", rule["seriesQuery"]).replace("<<.LabelMatchers>>", "")
    judge(asked, recorded=recorded())


@pytest.mark.parametrize(
    "wrong",
    [
        "worker_pending_job > 0",
        "sum by (queues) (worker_pending_jobs)",
        'rate(worker_job_duration_seconds_count{outcome="finished"}[5m])',
        'worker_recovered_jobs_total{code="stale"}',
        "rate(worker_pending_jobs[5m])",
        "worker_lease_lost_total > 3",
        'increase(worker_retry_attempts_total{code="NO_SUCH_CODE"}[5m])',
        "worker_job_duration_seconds > 5",
        "max by (queue) (worker_pending_jobs and on (queue) worker_snapshot_age_seconds < 60)",
    ],
)
def test_what_is_wrong_is_noticed(wrong: str) -> None:
    promql_parser.parse(wrong)
    with pytest.raises(AssertionError):
        judge(wrong)
