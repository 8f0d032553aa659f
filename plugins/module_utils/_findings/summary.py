# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""Several runs as one: the clouds, regions and shards that one playbook read. Pure."""

from __future__ import annotations

import collections
import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._findings.coverage import (
    list_unjudged_hosts,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import FORMAT

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping, Sequence


@d.dataclass(frozen=True)
class RunResult:
    """One run over a cloud, a region or a shard.

    error: what the run failed with, empty when it ended well.
    findings, remediation: the contents of the files that it wrote.
    paths: the paths of these files, by `findings` and `remediation`.
    """

    name: str
    region: str | None = None
    shard: str | None = None
    error: str = ""
    findings: Mapping[str, t.Any] | None = None
    remediation: Mapping[str, t.Any] | None = None
    paths: Mapping[str, str] = d.field(default_factory=dict)


# What is added up over all runs.
_SUMMED_PARTS = ("verdicts", "kinds", "stranded", "tally", "coverage")

_COVERAGE_COUNTS = ("providers", "hypervisors", "servers", "consumers")


def summarize_runs(runs: Sequence[RunResult]) -> dict[str, t.Any]:
    """Return the contents of `summary.json`."""
    rows = [_build_row(run) for run in runs]
    all_complete = all(row["complete"] and not row["error"] for row in rows)
    totals: dict[str, t.Any] = {}
    for part in _SUMMED_PARTS:
        totals[part] = _sum_counts(row[part] for row in rows)
    totals["unjudged_hosts"] = _count_unjudged(rows)
    return {
        "format": FORMAT,
        # No runs at all are not complete either.
        "complete": bool(rows) and all_complete,
        "totals": totals,
        "runs": rows,
        "missing_shards": _find_missing_shards(rows),
    }


def list_failures(summary: Mapping[str, t.Any]) -> list[str]:
    """Return a sentence for each run that failed: its name, and what it failed with."""
    return [f"{row['name']}: {row['error']}" for row in summary["runs"] if row["error"]]


def _build_row(run: RunResult) -> dict[str, t.Any]:
    summary: Mapping[str, t.Any] = {}
    finished_at = None
    if run.findings:
        summary = run.findings["summary"]
        finished_at = run.findings["finished_at"]
    coverage = summary.get("coverage", {})
    counts = {part: coverage[part] for part in _COVERAGE_COUNTS if part in coverage}
    return {
        "name": run.name,
        **_describe_scope(run),
        "error": run.error,
        "complete": bool(coverage.get("complete")),
        "failed_checks": coverage.get("failed_checks", []),
        "partial": bool(coverage.get("partial")),
        "unjudged_hosts": list_unjudged_hosts(coverage),
        "finished_at": finished_at,
        "verdicts": summary.get("verdicts", {}),
        "kinds": summary.get("kinds", {}),
        "stranded": summary.get("stranded", {}).get("resource_classes", {}),
        "coverage": counts,
        **_describe_remediation(run),
        "findings": run.paths.get("findings"),
        "remediation": run.paths.get("remediation"),
    }


def _describe_scope(run: RunResult) -> dict[str, str | None]:
    """Return the cloud, region and shard of a run, by its findings where there are any."""
    if not run.findings:
        return {"region": run.region, "placement_endpoint": None, "shard": run.shard}
    cloud, shard = run.findings["cloud"], run.findings["scope"]["shard"]
    return {
        "region": cloud["region"],
        "placement_endpoint": cloud["placement_endpoint"],
        "shard": f"{shard['number']}/{shard['count']}" if shard else None,
    }


def _describe_remediation(run: RunResult) -> dict[str, t.Any]:
    if not run.remediation:
        return {"check_mode": None, "tally": {}, "journal": None}
    return {
        "check_mode": run.remediation["check_mode"],
        "tally": run.remediation["tally"],
        "journal": run.remediation["journal"],
    }


def _sum_counts(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    sums: collections.Counter[str] = collections.Counter()
    for part in parts:
        sums.update(part)
    return dict(sorted(sums.items()))


def _count_unjudged(rows: Iterable[Mapping[str, t.Any]]) -> int:
    """Return how many hosts were not judged.

    A host that several shards of a cloud name counts once.
    """
    hosts = set()
    for row in rows:
        for host in row["unjudged_hosts"]:
            hosts.add((row["placement_endpoint"], row["region"], host))
    return len(hosts)


def _find_missing_shards(rows: Iterable[Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Return for each cloud the shards that are missing here while others of it were read.

    In a slice of a job they may have been read by another slice.
    """
    shards_read: dict[tuple[str, str | None, int], set[int]] = {}
    for row in rows:
        # A run that failed has no findings, which name the cloud of its shard.
        if row["shard"] and row["placement_endpoint"]:
            number, count = map(int, row["shard"].split("/"))
            cloud = (row["placement_endpoint"], row["region"], count)
            shards_read.setdefault(cloud, set()).add(number)
    missing_shards = []
    for (endpoint, region, count), numbers in shards_read.items():
        missing = sorted(set(range(1, count + 1)) - numbers)
        if missing:
            shards = [f"{number}/{count}" for number in missing]
            missing_shards.append(
                {"placement_endpoint": endpoint, "region": region, "shards": shards}
            )
    return missing_shards
