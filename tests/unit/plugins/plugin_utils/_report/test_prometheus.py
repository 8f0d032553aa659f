"""Metrics as Prometheus reads them."""

import typing as t
from collections.abc import Mapping

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ......plugins.module_utils._common.text import make_printable
from ......plugins.module_utils._core.models.kinds import KINDS
from ......plugins.plugin_utils._report.prometheus import render
from ......plugins.plugin_utils._report.view import Report
from ..hostile import HOSTILE, hostile, hostile_report, plan_of, remediation_of, told

LAST_SUCCESS, LAST_RUN = "last_success_timestamp_seconds", "last_run_timestamp_seconds"
COMMON = {"cloud", "region"}
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def _series(text: str) -> Series:
    """Return every sample by its metric and labels, without the labels that all have."""
    read: Series = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type == "gauge"
        for sample in family.samples:
            own = {key: label for key, label in sample.labels.items() if key not in COMMON}
            key = (sample.name, frozenset(own.items()))
            assert set(sample.labels) >= COMMON and key not in read
            read[key] = sample.value
    return read


def _value(text: str, name: str, **labels: str) -> float | None:
    return _series(text).get((f"placement_orphan_{name}", frozenset(labels.items())))


def _sound(**changes: t.Any) -> dict[str, t.Any]:
    findings = told(hostile("x"))
    findings["summary"]["coverage"] |= {"complete": True, "failed_checks": [], **changes}
    return findings


def _later(findings: Mapping[str, t.Any]) -> dict[str, t.Any]:
    return {**findings, "finished_at": "2037-01-01T00:00:00Z"}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_name_is_a_label_and_nothing_else(name: str) -> None:
    text, shown = render(hostile_report(name)), make_printable(HOSTILE[name])

    assert len(_series(text)) == len(_series(render(hostile_report("quotes"))))
    assert _value(text, "stranded", provider=shown, resource_class="VCPU") == 2


def test_indistinguishable_names_are_one_series() -> None:
    findings = told(hostile("x"))
    findings["summary"]["stranded"]["providers"] = {"a\nb": {"VCPU": 1}, "a\\nb": {"VCPU": 2}}
    text = render(Report(findings))

    assert _value(text, "stranded", provider="a\\nb", resource_class="VCPU") == 3


def test_every_kind_has_a_value_so_that_zero_is_visible() -> None:
    read = _series(render(Report(told(hostile("x")))))
    figures = {
        dict(labels)["kind"]: figure
        for (name, labels), figure in read.items()
        if name == "placement_orphan_findings"
    }

    assert set(figures) == {kind.name for kind in KINDS}
    assert figures["orphaned_provider"] == 0


def test_values_match_the_findings() -> None:
    findings = _sound(silent_hosts=3)
    findings["findings"][0]["new"] = False
    findings["summary"]["new"] = {"extra_host": 1}
    text = render(Report(findings, plan=plan_of(findings)))

    orphan = {"kind": "deleted_server", "verdict": "orphaned"}
    assert (_value(text, "findings", **orphan), _value(text, "new_findings", **orphan)) == (1, 0)
    assert _value(text, "new_findings", kind="extra_host", verdict="orphaned") == 1
    assert [
        _value(text, name) for name in ("undecided", "complete", "silent_hosts", "planned_changes")
    ] == [1, 1, 3, 2]
    (entry,) = findings["protected"]
    assert _value(text, "protected", reason=entry["reason_id"]) == 1
    findings["protected"].clear()
    assert _value(render(Report(findings)), "protected", reason="") == 0
    assert _value(text, "stranded", provider="x", resource_class="MEMORY_MB") == 1024


@pytest.mark.parametrize(("check_mode", "left", "made"), [(False, 0, 2), (True, 1, None)])
def test_only_verified_changes_are_counted(check_mode: bool, left: int, made: int | None) -> None:
    findings = _sound()
    remediation = remediation_of(findings, "removed", check_mode=check_mode)
    text = render(Report(findings, remediation=remediation))

    assert _value(text, "findings_left", kind="deleted_server", verdict="orphaned") == left
    assert _value(text, "changes", outcome="removed") == made


def test_successful_run_has_its_time() -> None:
    text = render(Report(_sound(), metrics=None))

    assert _value(text, LAST_SUCCESS) == _value(text, LAST_RUN)
    assert _value(text, "failed") == 0


@pytest.mark.parametrize("how", ["a gate", "a task", "a change"])
def test_failed_run_keeps_the_time_of_the_last_success(how: str) -> None:
    before, findings = render(Report(_sound())), _later(_sound())
    if how == "a gate":
        findings["summary"]["coverage"] |= {"complete": False, "failed_checks": ["Wrong region."]}
    fields: t.Any = {
        "remediation": remediation_of(findings, "failed") if how == "a change" else None,
        "failure": "It broke." if how == "a task" else "",
    }
    failed = render(Report(findings, metrics=before, **fields))
    again = render(Report(findings, metrics=failed, **fields))

    for text in (failed, again):
        assert _value(text, LAST_SUCCESS) == _value(before, LAST_SUCCESS)
        assert _value(text, LAST_RUN) != _value(before, LAST_RUN)
        assert _value(text, "failed") == 1


@pytest.mark.parametrize(
    "before",
    [None, "", "no metrics", f'placement_orphan_{LAST_SUCCESS}{{cloud="elsewhere",region=""}} 7'],
)
def test_failed_run_without_an_earlier_success_has_no_time(before: str | None) -> None:
    text = render(Report(_sound(), failure="It broke.", metrics=before))

    assert _value(text, LAST_SUCCESS) is None


def test_entries_are_counted_by_the_ids_of_their_reasons() -> None:
    findings = told(hostile("x"))
    entries = [entry for key in ("findings", "undecided", "protected") for entry in findings[key]]
    series = _series(render(Report(findings)))
    counted = {
        tuple(sorted(labels)): value
        for (name, labels), value in series.items()
        if name == "placement_orphan_reasons"
    }

    assert sum(counted.values()) == len(entries) > 1
    for entry in entries:
        key = (("reason", entry["reason_id"]), ("verdict", entry["verdict"]))
        assert counted[key] >= 1
        # As in a file of version 2.0.
        del entry["reason_id"]
    assert "placement_orphan_reasons" not in render(Report(findings))
