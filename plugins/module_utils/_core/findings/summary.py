# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several runs as one: the clouds, regions and shards that one playbook read. Pure."""

from __future__ import annotations

import dataclasses as d
from collections.abc import Iterable, Mapping, Sequence

from ..models.codec import Json, Unchecked
from ..models.placement import sum_amounts
from .coverage import list_unjudged_hosts
from .entries import FORMAT, FindingsDocument


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
    findings: FindingsDocument | None = None
    remediation: Json | None = None
    paths: Mapping[str, str] = d.field(default_factory=dict)


# How many of these were read.
_COVERAGE_COUNTS = ("providers", "hypervisors", "servers", "consumers")


def summarize_runs(runs: Sequence[RunResult]) -> Json:
    """Return the contents of `summary.json`, which docs/findings.md describes."""
    rows = [_build_row(run) for run in runs]
    all_complete = all(row["complete"] and not row["error"] for row in rows)
    totals: Json = {}
    for figures in ("verdicts", "kinds", "stranded", "tally", "coverage"):
        totals[figures] = sum_amounts(row[figures] for row in rows)
    return {
        "format": FORMAT,
        # No runs at all are not complete either.
        "complete": bool(rows) and all_complete,
        "totals": {**totals, "unjudged_hosts": _count_unjudged(rows)},
        "runs": rows,
        "missing_shards": _find_missing_shards(rows),
    }


def list_failures(summary: Json) -> list[str]:
    """Return a sentence for each run that failed: its name, and what it failed with."""
    return [f"{row['name']}: {row['error']}" for row in summary["runs"] if row["error"]]


def _build_row(run: RunResult) -> Json:
    # What the findings say is right about the cloud, whatever was asked for.
    findings: Unchecked = run.findings or {}
    summary = findings.get("summary", {"coverage": {}, "stranded": {}})
    coverage, scope = summary["coverage"], findings.get("scope", {})
    cloud = findings.get("cloud", {"region": run.region, "placement_endpoint": None})
    remediation = run.remediation or {"check_mode": None, "tally": {}, "journal": None}
    shard = scope.get("shard")
    asked = None if run.findings else run.shard
    return {
        "name": run.name,
        "region": cloud["region"],
        "placement_endpoint": cloud["placement_endpoint"],
        "shard": f"{shard['number']}/{shard['count']}" if shard else asked,
        "error": run.error,
        "complete": coverage.get("complete", False),
        "failed_checks": coverage.get("failed_checks", []),
        "partial": bool(coverage.get("partial")),
        "unjudged_hosts": list_unjudged_hosts(coverage),
        "hosts_without_service": coverage.get("hosts_without_service", []),
        "finished_at": findings.get("finished_at"),
        "verdicts": summary.get("verdicts", {}),
        "kinds": summary.get("kinds", {}),
        "stranded": summary["stranded"].get("resource_classes", {}),
        # A file of an older version has not all of them.
        "coverage": {part: coverage[part] for part in _COVERAGE_COUNTS if part in coverage},
        **{part: remediation[part] for part in ("check_mode", "tally", "journal")},
        **{name: run.paths.get(name) for name in ("findings", "remediation")},
    }


def _count_unjudged(rows: Iterable[Json]) -> int:
    """Return how many hosts were not judged.

    A host that several shards of a cloud name counts once.
    """
    clouds = [(row["placement_endpoint"], row["region"], row["unjudged_hosts"]) for row in rows]
    return len({(*cloud, host) for *cloud, hosts in clouds for host in hosts})


def _find_missing_shards(rows: Iterable[Json]) -> list[Json]:
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
    missing_shards: list[Json] = []
    for (endpoint, region, count), numbers in shards_read.items():
        missing = sorted(set(range(1, count + 1)) - numbers)
        if missing:
            shards = [f"{number}/{count}" for number in missing]
            missing_shards.append(
                {"placement_endpoint": endpoint, "region": region, "shards": shards}
            )
    return missing_shards
