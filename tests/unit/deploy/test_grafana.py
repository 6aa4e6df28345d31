"""The dashboard shows every metric there is, and nothing there is not."""

import json
import re
from itertools import combinations
from typing import Any

import pytest

from tests.unit.deploy.manifests import ROOT
from tests.unit.deploy.promql import judge, labels_of
from tests.unit.telemetry.exposed import exposed

DASHBOARD = json.loads((ROOT / "deploy/grafana/clipboss.json").read_text())
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}


def plain(expression: str) -> str:
    """As Grafana sends it."""
    return expression.replace("$__rate_interval", "5m").replace("$queue", ".*")


def expressions() -> list[str]:
    return [plain(target["expr"]) for panel in PANELS for target in panel["targets"]]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_panel_asks_for_what_exists_and_says_what_it_shows(panel: dict[str, Any]) -> None:
    assert panel["targets"]
    for target in panel["targets"]:
        assert judge(plain(target["expr"]))
        labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
        assert labels <= labels_of(plain(target["expr"]), {})
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"] in {"short", "s"}


def test_every_metric_is_shown_somewhere() -> None:
    shown = {name for expression in expressions() for name in judge(expression)}
    assert {each.name for each in exposed().values() if not each.series & shown} == set()


def test_every_variable_is_declared_and_used() -> None:
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD["panels"]))) - {"__rate_interval"}
    assert used == set(VARIABLES)
    judge(re.sub(r"label_values\((\w+), (\w+)\)", r"sum by (\2) (\1)", VARIABLES["queue"]["query"]["query"]))


def test_panels_have_ids_of_their_own_and_do_not_lie_on_each_other() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    for one, other in combinations([panel["gridPos"] for panel in DASHBOARD["panels"]], 2):
        apart_across = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert apart_across or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert one["x"] + one["w"] <= 24


def test_data_source_is_the_readers_choice() -> None:
    assert {panel["datasource"]["uid"] for panel in PANELS} == {"${datasource}"}
    assert VARIABLES["datasource"]["type"] == "datasource"
