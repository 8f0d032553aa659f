# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The figures of a run as a textfile for Prometheus' node_exporter."""

from __future__ import annotations

import collections
import datetime
import re
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import make_printable
from ansible_collections.osops.placement.plugins.module_utils._common.times import seconds_between
from ansible_collections.osops.placement.plugins.module_utils._findings.coverage import (
    list_unjudged_hosts,
)
from ansible_collections.osops.placement.plugins.module_utils._models.kinds import (
    KINDS,
    ORPHAN_KINDS,
)
from ansible_collections.osops.placement.plugins.module_utils._models.verdict import (
    DRIFTED,
    ORPHANED,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.phrases import (
    list_remediated_findings,
    list_troubles,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping

    from ansible_collections.osops.placement.plugins.plugin_utils._report.report import Report

    # Labels and value.
    Sample = tuple[Mapping[str, str], float]

_LAST_SUCCESS = "last_success_timestamp_seconds"


def render(report: Report) -> str:
    """Return all metrics, each of them a gauge about the last run."""
    cloud = {
        "cloud": report.findings["cloud"]["placement_endpoint"],
        "region": report.findings["cloud"]["region"] or "",
    }
    lines: list[str] = []
    for name, (meaning, samples) in _collect_metrics(report, _format_labels(cloud)).items():
        full = f"placement_orphan_{name}"
        # Names that differ only in what does not print are told as one: no series may come twice.
        series: dict[str, float] = {}
        for labels, value in samples:
            key = _format_labels({**cloud, **labels})
            series[key] = series.get(key, 0) + value
        if series:
            lines += [
                f"# HELP {full} {meaning}",
                f"# TYPE {full} gauge",
                *(f"{full}{key} {value:.15g}" for key, value in series.items()),
            ]
    return "\n".join(lines) + "\n"


def _collect_metrics(report: Report, cloud: str) -> dict[str, tuple[str, Iterable[Sample]]]:
    summary = report.findings["summary"]
    verdicts, coverage, stranded = summary["verdicts"], summary["coverage"], summary["stranded"]
    finished = _parse_timestamp(report.findings["finished_at"])
    success = _find_last_success(report.metrics, cloud) if list_troubles(report) else finished
    told: dict[str, tuple[str, Iterable[Sample]]] = {
        "findings": (
            "What is orphaned or not as it should be, by kind.",
            _build_kind_samples(summary["kinds"]),
        ),
        "findings_left": (
            "Those of them that the last run has not put right.",
            _build_kind_samples(_count_remaining(report)),
        ),
        "new_findings": (
            "Those of them that the run before did not know.",
            _build_kind_samples(summary["new"]),
        ),
        "protected": (
            "What looked like an orphan and is never changed.",
            _build_single_sample(verdicts["protected"]),
        ),
        "undecided": (
            "What could not be proven either way.",
            _build_single_sample(verdicts["undecided"]),
        ),
        "stranded": (
            "What orphans hold of a provider, in the units of the resource class.",
            [
                ({"provider": name, "resource_class": cls}, amount)
                for name, shares in stranded["providers"].items()
                for cls, amount in shares.items()
            ],
        ),
        "stranded_ratio": (
            "What orphans hold of all that is claimed in the cloud.",
            [
                ({"resource_class": cls}, share)
                for cls, share in stranded["share_of_claimed"].items()
            ],
        ),
        "complete": (
            "Whether the whole cloud was read and all answers agree (1) or not (0).",
            _build_single_sample(coverage["complete"]),
        ),
        "failed_checks": (
            "For how many reasons the reading was not sound.",
            _build_single_sample(len(coverage["failed_checks"])),
        ),
        "silent_hosts": (
            "Hosts in cells that did not answer.",
            _build_single_sample(coverage["silent_hosts"]),
        ),
        "unjudged_hosts": (
            "Hosts that were not judged, because their cell did not answer.",
            _build_single_sample(len(list_unjudged_hosts(coverage))),
        ),
        "consumers": ("Consumers that were read.", _build_single_sample(coverage["consumers"])),
        "hypervisors": (
            "Compute nodes that Nova lists.",
            _build_single_sample(coverage["hypervisors"]),
        ),
        "failed": (
            "Whether anything went wrong in the last run.",
            _build_single_sample(bool(list_troubles(report))),
        ),
    }
    if report.plan is not None:
        told["planned_changes"] = (
            "Changes that were planned.",
            _build_single_sample(len(report.plan["changes"])),
        )
    if report.remediation is not None and not report.remediation["check_mode"]:
        tally = report.remediation["tally"]
        told["changes"] = (
            "Changes of the last run by what became of them.",
            [({"outcome": name}, count) for name, count in tally.items()],
        )
    told["last_run_timestamp_seconds"] = (
        "When the last reading ended.",
        _build_single_sample(finished),
    )
    told[_LAST_SUCCESS] = (
        "When the last sound reading ended after which nothing failed.",
        [] if success is None else _build_single_sample(success),
    )
    duration = seconds_between(report.findings["started_at"], report.findings["finished_at"]) or 0
    told["duration_seconds"] = ("How long the last reading took.", _build_single_sample(duration))
    return told


def _count_remaining(report: Report) -> dict[str, int]:
    settled = list_remediated_findings(report)
    return collections.Counter(
        entry["kind"] for entry in report.findings["findings"] if entry["id"] not in settled
    )


def _build_kind_samples(counts: Mapping[str, int]) -> list[Sample]:
    """Return a sample for every kind, so that one of which nothing is left is seen to be zero."""
    verdicts = {kind.name: ORPHANED if kind in ORPHAN_KINDS else DRIFTED for kind in KINDS}
    return [
        ({"kind": kind, "verdict": verdict}, counts.get(kind, 0))
        for kind, verdict in verdicts.items()
    ]


def _build_single_sample(value: float) -> list[Sample]:
    return [({}, float(value))]


def _format_labels(labels: Mapping[str, str]) -> str:
    told = ",".join(f'{name}="{_escape_label_value(value)}"' for name, value in labels.items())
    return f"{{{told}}}"


def _escape_label_value(value: str) -> str:
    # What does not print is spelled out, with backslashes, which count as any other.
    return make_printable(value).replace("\\", "\\\\").replace('"', '\\"')


def _parse_timestamp(text: str) -> float:
    return (
        datetime.datetime.fromisoformat(text.removesuffix("Z"))
        .replace(tzinfo=datetime.UTC)
        .timestamp()
    )


def _find_last_success(before: str | None, cloud: str) -> float | None:
    """Return when a run of this cloud last succeeded by the textfile of the run before, None where it does not say."""
    found = re.search(
        rf"^placement_orphan_{_LAST_SUCCESS}{re.escape(cloud)} (\d+(?:\.\d+)?)$",
        before or "",
        re.MULTILINE,
    )
    return float(found[1]) if found else None
