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
    row: Json = {
        "name": run.name,
        "region": run.region,
        "placement_endpoint": None,
        "shard": run.shard,
        "error": run.error,
        "complete": False,
        "failed_checks": [],
        "partial": False,
        "unjudged_hosts": [],
        "finished_at": None,
        "verdicts": {},
        "kinds": {},
        "stranded": {},
        "coverage": {},
        "check_mode": None,
        "tally": {},
        "journal": None,
        "findings": run.paths.get("findings"),
        "remediation": run.paths.get("remediation"),
    }
    if run.findings:
        _add_findings(row, run.findings)
    if run.remediation:
        row["check_mode"] = run.remediation["check_mode"]
        row["tally"] = run.remediation["tally"]
        row["journal"] = run.remediation["journal"]
    return row


def _add_findings(row: Json, findings: FindingsDocument) -> None:
    """Add what the findings of a run say to its row, where they are right about its cloud."""
    cloud, shard = findings["cloud"], findings["scope"].get("shard")
    summary = findings["summary"]
    coverage = summary["coverage"]
    row["region"] = cloud["region"]
    row["placement_endpoint"] = cloud["placement_endpoint"]
    row["shard"] = f"{shard['number']}/{shard['count']}" if shard else None
    row["complete"] = coverage["complete"]
    row["failed_checks"] = coverage["failed_checks"]
    row["partial"] = bool(coverage.get("partial"))
    row["unjudged_hosts"] = list_unjudged_hosts(coverage)
    row["finished_at"] = findings["finished_at"]
    row["verdicts"] = summary["verdicts"]
    row["kinds"] = summary["kinds"]
    row["stranded"] = summary["stranded"]["resource_classes"]
    counts: Unchecked = coverage
    # A file of an older version has not all of them.
    row["coverage"] = {part: counts[part] for part in _COVERAGE_COUNTS if part in counts}


def _count_unjudged(rows: Iterable[Json]) -> int:
    """Return how many hosts were not judged.

    A host that several shards of a cloud name counts once.
    """
    hosts = set()
    for row in rows:
        for host in row["unjudged_hosts"]:
            hosts.add((row["placement_endpoint"], row["region"], host))
    return len(hosts)


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
