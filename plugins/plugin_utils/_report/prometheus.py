# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The figures of a run as a textfile for Prometheus' node_exporter."""

from __future__ import annotations

import collections
import datetime
import re
import typing as t
from collections.abc import Mapping

from ...module_utils._common.text import make_printable
from ...module_utils._common.times import seconds_between
from ...module_utils._core.findings.coverage import list_unjudged_hosts
from ...module_utils._core.findings.entries import iterate_entries
from ...module_utils._core.models.finding import DRIFTED, ORPHANED
from ...module_utils._core.models.kinds import KINDS, ORPHAN_KINDS
from .view import Report, list_remediated_findings, list_troubles

# By the names of metrics. Of most there is one figure; of the others, one for each value of their
# labels.
_Metrics = dict[str, float | Mapping[t.Any, float]]

_LAST_SUCCESS = "last_success_timestamp_seconds"

# What the metrics mean, and their own labels, in the order of the file.
_METRICS = {
    "findings": ("Orphaned and drifted findings, by kind.", "kind", "verdict"),
    "findings_left": ("Findings that the last run has not remediated, by kind.", "kind", "verdict"),
    "new_findings": ("Findings that the run before did not have, by kind.", "kind", "verdict"),
    "protected": ("Entries that look like orphans and are never changed.", "reason"),
    "undecided": ("Entries that could not be proven either way.",),
    "reasons": ("Entries by verdict and the ID of their reason.", "verdict", "reason"),
    "stranded": (
        "Stranded amounts on a provider, in the unit of the resource class.",
        "provider",
        "resource_class",
    ),
    "stranded_ratio": ("Stranded fraction of all allocations in the cloud.", "resource_class"),
    "overcommitted_hosts": (
        "Hosts with more allocated than they physically have, by resource class.",
        "resource_class",
    ),
    "complete": ("Whether the whole cloud was read and all answers agree (1) or not (0).",),
    "failed_checks": ("Soundness checks that failed.",),
    "silent_hosts": ("Hosts in cells that did not answer.",),
    "unjudged_hosts": ("Hosts that were not judged, because their cell did not answer.",),
    "consumers": ("Consumers that were read.",),
    "hypervisors": ("Compute nodes that Nova lists.",),
    "failed": ("Whether anything went wrong in the last run.",),
    "planned_changes": ("Changes that were planned.",),
    "changes": ("Changes of the last run, by outcome.", "outcome"),
    "last_run_timestamp_seconds": ("When the last reading ended.",),
    _LAST_SUCCESS: ("When the last sound reading ended that was followed by no failure.",),
    "duration_seconds": ("How long the last reading took.",),
}

_VERDICTS = {kind.name: ORPHANED if kind in ORPHAN_KINDS else DRIFTED for kind in KINDS}


def render(report: Report) -> str:
    """Return all metrics, each of them a gauge about the last run."""
    read = report.findings["cloud"]
    cloud = {"cloud": read["placement_endpoint"], "region": read["region"] or ""}
    metrics = _collect_findings(report) | _collect_run(report, _format_labels(cloud))
    lines: list[str] = []
    for name, (meaning, *labels) in _METRICS.items():
        full_name, found = f"placement_orphan_{name}", metrics.get(name, {})
        # Names that differ only in what does not print are one series: none may come twice.
        series: dict[str, float] = {}
        for values, figure in (found if isinstance(found, Mapping) else {(): found}).items():
            own = zip(labels, [values] if isinstance(values, str) else values, strict=True)
            key = _format_labels({**cloud, **dict(own)})
            series[key] = series.get(key, 0) + figure
        if series:
            lines += [f"# HELP {full_name} {meaning}", f"# TYPE {full_name} gauge"]
        lines += [f"{full_name}{key} {figure:.15g}" for key, figure in series.items()]
    return "\n".join(lines) + "\n"


def _collect_findings(report: Report) -> _Metrics:
    summary, findings = report.findings["summary"], report.findings["findings"]
    verdicts, stranded, coverage = summary["verdicts"], summary["stranded"], summary["coverage"]
    protections = (entry.get("reason_id", "") for entry in report.findings["protected"])
    overcommit, remediated = summary.get("overcommit", {}), list_remediated_findings(report)
    left = collections.Counter(each["kind"] for each in findings if each["id"] not in remediated)
    return {
        "findings": _count_kinds(summary["kinds"]),
        "findings_left": _count_kinds(left),
        "new_findings": _count_kinds(summary["new"]),
        # An empty label is none, so that there is a zero, too.
        "protected": collections.Counter(sorted(protections)) or {"": 0},
        "undecided": verdicts["undecided"],
        "reasons": _count_reasons(report),
        "stranded": {
            (provider, cls): amount
            for provider, resources in stranded["providers"].items()
            for cls, amount in resources.items()
        },
        "stranded_ratio": stranded["share_of_claimed"],
        "overcommitted_hosts": {cls: each["overcommitted"] for cls, each in overcommit.items()},
        "complete": coverage["complete"],
        "failed_checks": len(coverage["failed_checks"]),
        "silent_hosts": coverage["silent_hosts"],
        "unjudged_hosts": len(list_unjudged_hosts(coverage)),
        "consumers": coverage["consumers"],
        "hypervisors": coverage["hypervisors"],
    }


def _count_kinds(counts: Mapping[str, int]) -> Mapping[t.Any, float]:
    """Return a figure for every kind: zero for a kind without findings."""
    return {(kind, verdict): counts.get(kind, 0) for kind, verdict in _VERDICTS.items()}


def _count_reasons(report: Report) -> Mapping[t.Any, float]:
    """Return how many entries have each reason; a file of an older version has no IDs."""
    entries = [entry for entry in iterate_entries(report.findings) if "reason_id" in entry]
    return collections.Counter(sorted((each["verdict"], each["reason_id"]) for each in entries))


def _collect_run(report: Report, cloud: str) -> _Metrics:
    """Return what the run changed, and when it was.

    cloud: the labels of the cloud, as they are in the textfile of the run before.
    """
    started, finished = report.findings["started_at"], report.findings["finished_at"]
    moment = datetime.datetime.fromisoformat(finished.removesuffix("Z"))
    ended, failed = moment.replace(tzinfo=datetime.UTC).timestamp(), bool(list_troubles(report))
    metrics: _Metrics = {
        "failed": failed,
        "last_run_timestamp_seconds": ended,
        # A run that failed repeats when the last run that did not fail ended.
        _LAST_SUCCESS: _find_last_success(report.metrics, cloud) if failed else ended,
        "duration_seconds": seconds_between(started, finished) or 0,
    }
    if report.plan is not None:
        metrics["planned_changes"] = len(report.plan["changes"])
    if report.written:
        metrics["changes"] = report.written["tally"]
    return metrics


def _format_labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escape_label_value(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}"


def _escape_label_value(value: str) -> str:
    # What does not print is spelled out with backslashes, which are escaped like any other.
    return make_printable(value).replace("\\", "\\\\").replace('"', '\\"')


def _find_last_success(before: str | None, cloud: str) -> float | Mapping[t.Any, float]:
    """Return when a run of this cloud last succeeded, nothing where the textfile does not say it.

    before: the textfile of the run before; None where there is none.
    cloud: the labels of the cloud.
    """
    series = rf"^placement_orphan_{_LAST_SUCCESS}{re.escape(cloud)} (\d+(?:\.\d+)?)$"
    line = re.search(series, before or "", re.MULTILINE)
    return float(line[1]) if line else {}
