"""The alerts and the dashboard: Prometheus and Grafana accept them, and the metrics exist."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import typing as t
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
MONITORING = ROOT / "extensions" / "monitoring"

# The metrics of a run, with the labels of each.
METRICS = {
    "placement_orphan_findings": {"kind", "verdict"},
    "placement_orphan_new_findings": {"kind"},
    "placement_orphan_stranded": {"provider", "resource_class"},
    "placement_orphan_complete": set(),
    "placement_orphan_failed_checks": set(),
    "placement_orphan_undecided": set(),
    "placement_orphan_unjudged_hosts": set(),
    "placement_orphan_changes": {"outcome"},
    "placement_orphan_last_success_timestamp_seconds": set(),
    "placement_orphan_last_run_timestamp_seconds": set(),
}


@pytest.fixture(name="promtool", scope="module")
def _promtool() -> str:
    """Return the path of promtool, which CI fetches."""
    found = (
        os.environ.get("PROMTOOL")
        or shutil.which("promtool")
        or shutil.which("promtool", path=ROOT / ".cache" / "promtool")
    )
    if not found:
        pytest.skip(
            "promtool is not here: Debian and Ubuntu have it in the package prometheus (.ci/run "
            "fetches it)"
        )
    return found


@pytest.fixture(name="dashboard", scope="module")
def _dashboard() -> t.Any:
    return json.loads((MONITORING / "dashboard.json").read_text())


def test_promtool_accepts_the_alerts(promtool: str) -> None:
    done = subprocess.run(
        [promtool, "check", "rules", str(MONITORING / "alerts.yml")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_alerts_fire_exactly_when_they_should(promtool: str) -> None:
    tests = Path(__file__).with_name("alerts_test.yml")

    done = subprocess.run(
        [promtool, "test", "rules", str(tests)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_test() -> None:
    rules = {rule["alert"] for group in _alerts() for rule in group["rules"]}
    tests = yaml.safe_load(Path(__file__).with_name("alerts_test.yml").read_text())["tests"]

    fired = {
        case["alertname"]
        for test in tests
        for case in test["alert_rule_test"]
        if case.get("exp_alerts")
    }

    assert fired == rules


def test_each_alert_has_a_severity_and_advice() -> None:
    rules = [rule for group in _alerts() for rule in group["rules"]]

    assert rules
    for rule in rules:
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert set(rule["annotations"]) == {"summary", "description"}


def test_alerts_and_dashboard_use_existing_metrics_and_labels(dashboard: t.Any) -> None:
    alerts = [rule["expr"] for group in _alerts() for rule in group["rules"]]
    panels = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]

    for expression in alerts + panels:
        named = re.findall(r"\bplacement_\w+", expression)
        assert named and set(named) <= set(METRICS), expression
        known = set().union(*(METRICS[name] for name in named))
        grouped = re.findall(r"\bby \(([^)]*)\)", expression)
        matched = re.findall(r"(\w+)=", " ".join(re.findall(r"\{([^}]*)\}", expression)))
        labels = {label.strip() for each in grouped for label in each.split(",")}
        assert labels.union(matched) <= known, expression


def test_dashboard_panels_have_unique_ids_and_positions(dashboard: t.Any) -> None:
    panels = dashboard["panels"]
    assert panels
    for key in ("id", "title"):
        assert len({panel[key] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
        assert "ABC".startswith("".join(target["refId"] for target in panel["targets"]))
    for one, other in itertools.combinations(panels, 2):
        assert not _overlap(one["gridPos"], other["gridPos"]), (one["title"], other["title"])


def test_dashboard_can_be_imported_for_any_data_source(dashboard: t.Any) -> None:
    """Grafana refuses a numeric id of another installation.

    It asks for the source when that is a variable.
    """
    assert dashboard.get("id") is None and dashboard["title"]
    assert re.fullmatch(r"[\w-]{1,40}", dashboard["uid"])
    assert isinstance(dashboard["schemaVersion"], int)
    (variable,) = dashboard["templating"]["list"]
    assert (variable["name"], variable["type"]) == ("datasource", "datasource")
    panels = dashboard["panels"]
    for part in (*panels, *(target for panel in panels for target in panel["targets"])):
        assert part["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def _alerts() -> t.Any:
    return yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]


def _overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    apart = (("x", "w"), ("y", "h"))
    return all(
        one[at] < other[at] + other[size] and other[at] < one[at] + one[size] for at, size in apart
    )
