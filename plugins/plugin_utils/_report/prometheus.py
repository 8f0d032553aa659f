# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The figures of a run as a textfile for Prometheus' node_exporter."""

from __future__ import annotations

import collections
import datetime
import re
import typing as t
from collections.abc import Iterable, Mapping

from ...module_utils._common.text import make_printable
from ...module_utils._common.times import seconds_between
from ...module_utils._core.findings.coverage import list_unjudged_hosts
from ...module_utils._core.findings.entries import iterate_entries
from ...module_utils._core.models.kinds import KINDS, ORPHAN_KINDS
from ...module_utils._core.models.verdict import DRIFTED, ORPHANED
from .view import Report, list_remediated_findings, list_troubles

if t.TYPE_CHECKING:  # pragma: no cover
    # Labels and value.
    Sample = tuple[Mapping[str, str], float]
    # The samples of metrics by their names; of most there is one, without labels of its own.
    _Metrics = dict[str, float | Iterable[Sample]]

_LAST_SUCCESS = "last_success_timestamp_seconds"

# What the metrics mean, in the order of the file.
_MEANINGS = {
    "findings": "Orphaned and drifted findings, by kind.",
    "findings_left": "Findings that the last run has not remediated, by kind.",
    "new_findings": "Findings that the run before did not have, by kind.",
    "protected": "Entries that look like orphans and are never changed.",
    "undecided": "Entries that could not be proven either way.",
    "reasons": "Entries by verdict and the ID of their reason.",
    "stranded": "Stranded amounts on a provider, in the unit of the resource class.",
    "stranded_ratio": "Stranded fraction of all allocations in the cloud.",
    "overcommitted_hosts": (
        "Hosts with more allocated than they physically have, by resource class."
    ),
    "complete": "Whether the whole cloud was read and all answers agree (1) or not (0).",
    "failed_checks": "Soundness checks that failed.",
    "silent_hosts": "Hosts in cells that did not answer.",
    "unjudged_hosts": "Hosts that were not judged, because their cell did not answer.",
    "consumers": "Consumers that were read.",
    "hypervisors": "Compute nodes that Nova lists.",
    "failed": "Whether anything went wrong in the last run.",
    "planned_changes": "Changes that were planned.",
    "changes": "Changes of the last run, by outcome.",
    "last_run_timestamp_seconds": "When the last reading ended.",
    _LAST_SUCCESS: "When the last sound reading ended that was followed by no failure.",
    "duration_seconds": "How long the last reading took.",
}


def render(report: Report) -> str:
    """Return all metrics, each of them a gauge about the last run."""
    cloud = {
        "cloud": report.findings["cloud"]["placement_endpoint"],
        "region": report.findings["cloud"]["region"] or "",
    }
    metrics = _collect_findings(report) | _collect_run(report, _format_labels(cloud))
    lines: list[str] = []
    for name, meaning in _MEANINGS.items():
        full_name = f"placement_orphan_{name}"
        found = metrics.get(name, ())
        # Names that differ only in what does not print are one series: none may come twice.
        series: dict[str, float] = {}
        for labels, value in [({}, found)] if isinstance(found, (int, float)) else found:
            key = _format_labels({**cloud, **labels})
            series[key] = series.get(key, 0) + value
        if series:
            lines += [f"# HELP {full_name} {meaning}", f"# TYPE {full_name} gauge"]
        for key, value in series.items():
            lines.append(f"{full_name}{key} {value:.15g}")
    return "\n".join(lines) + "\n"


def _collect_findings(report: Report) -> _Metrics:
    summary = report.findings["summary"]
    verdicts, stranded, coverage = summary["verdicts"], summary["stranded"], summary["coverage"]
    overcommit = summary.get("overcommit", {}).items()
    return {
        "findings": _build_kind_samples(summary["kinds"]),
        "findings_left": _build_kind_samples(_count_remaining(report)),
        "new_findings": _build_kind_samples(summary["new"]),
        "protected": verdicts["protected"],
        "undecided": verdicts["undecided"],
        "reasons": _count_reasons(report),
        "stranded": [
            ({"provider": provider, "resource_class": cls}, amount)
            for provider, resources in stranded["providers"].items()
            for cls, amount in resources.items()
        ],
        "stranded_ratio": _build_samples("resource_class", stranded["share_of_claimed"].items()),
        "overcommitted_hosts": _build_samples(
            "resource_class", ((cls, figures["overcommitted"]) for cls, figures in overcommit)
        ),
        "complete": coverage["complete"],
        "failed_checks": len(coverage["failed_checks"]),
        "silent_hosts": coverage["silent_hosts"],
        "unjudged_hosts": len(list_unjudged_hosts(coverage)),
        "consumers": coverage["consumers"],
        "hypervisors": coverage["hypervisors"],
    }


def _count_reasons(report: Report) -> list[Sample]:
    """Return how many entries have each reason; a file of an older version has no IDs."""
    entries = iterate_entries(report.findings)
    counts = collections.Counter(
        (entry["verdict"], entry["reason_id"]) for entry in entries if "reason_id" in entry
    )
    return [
        ({"verdict": verdict, "reason": reason}, count)
        for (verdict, reason), count in sorted(counts.items())
    ]


def _collect_run(report: Report, cloud: str) -> _Metrics:
    """Return what the run changed, and when it was.

    cloud: the labels of the cloud, as they are in the textfile of the run before.
    """
    started, finished = report.findings["started_at"], report.findings["finished_at"]
    ended = datetime.datetime.fromisoformat(finished.removesuffix("Z"))
    metrics: _Metrics = {
        "failed": bool(list_troubles(report)),
        "last_run_timestamp_seconds": ended.replace(tzinfo=datetime.UTC).timestamp(),
        "duration_seconds": seconds_between(started, finished) or 0,
    }
    if report.plan is not None:
        metrics["planned_changes"] = len(report.plan["changes"])
    if report.written:
        metrics["changes"] = _build_samples("outcome", report.written["tally"].items())
    # A run that failed repeats when the last run that did not fail ended.
    success = metrics["last_run_timestamp_seconds"]
    if metrics["failed"]:
        success = _find_last_success(report.metrics, cloud)
    return {**metrics, _LAST_SUCCESS: success}


def _count_remaining(report: Report) -> Mapping[str, int]:
    """Return how many findings of each kind are not remediated."""
    remediated = list_remediated_findings(report)
    findings = report.findings["findings"]
    return collections.Counter(each["kind"] for each in findings if each["id"] not in remediated)


def _build_kind_samples(counts: Mapping[str, int]) -> list[Sample]:
    """Return a sample for every kind: zero for a kind without findings."""
    samples: list[Sample] = []
    for kind in KINDS:
        verdict = ORPHANED if kind in ORPHAN_KINDS else DRIFTED
        samples.append(({"kind": kind.name, "verdict": verdict}, counts.get(kind.name, 0)))
    return samples


def _build_samples(label: str, values: Iterable[tuple[str, float]]) -> list[Sample]:
    return [({label: name}, value) for name, value in values]


def _format_labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escape_label_value(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}"


def _escape_label_value(value: str) -> str:
    # What does not print is spelled out with backslashes, which are escaped like any other.
    return make_printable(value).replace("\\", "\\\\").replace('"', '\\"')


def _find_last_success(before: str | None, cloud: str) -> float | Iterable[Sample]:
    """Return when a run of this cloud last succeeded, nothing where the textfile does not say it.

    before: the textfile of the run before; None where there is none.
    cloud: the labels of the cloud.
    """
    series = rf"^placement_orphan_{_LAST_SUCCESS}{re.escape(cloud)} (\d+(?:\.\d+)?)$"
    line = re.search(series, before or "", re.MULTILINE)
    return float(line[1]) if line else ()
