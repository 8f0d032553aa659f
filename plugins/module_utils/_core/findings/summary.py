# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several runs as one: the clouds, regions and shards that one playbook read. Pure."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from ..models.documents import RemediationDocument
from ..models.placement import sum_amounts
from .coverage import list_unjudged_hosts
from .entries import FORMAT, FindingsDocument, Unjudged


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
    remediation: RemediationDocument | None = None
    paths: Mapping[str, str] = d.field(default_factory=dict)


_CoverageCount = t.Literal["providers", "hypervisors", "servers", "consumers"]

_COVERAGE_COUNTS: tuple[_CoverageCount, ...] = t.get_args(_CoverageCount)


class RunFigures(t.TypedDict):
    """The figures of one run, or the sums of those of all runs."""

    # How many entries have each verdict, and how many findings are of each kind.
    verdicts: dict[str, int]
    kinds: dict[str, int]
    # What the proposed changes would free, by resource class.
    stranded: dict[str, int]
    # How many changes had each outcome; empty where no remediation ran.
    tally: dict[str, int]
    # How many `providers`, `hypervisors`, `servers` and `consumers` were read.
    coverage: dict[str, int]


class Totals(RunFigures):
    """The sums of the figures of all runs."""

    # How many hosts were not judged.
    unjudged_hosts: int


class RunSummary(RunFigures, Unjudged):
    """One run over a cloud, a region or a shard."""

    # The inventory host.
    name: str
    region: str | None
    # None where the run has no findings.
    placement_endpoint: str | None
    # `number/count`; None for a whole cloud.
    shard: str | None
    # What the run failed with, empty when it ended well.
    error: str
    # Whether its reading was sound, and a sentence for each reason why it was not.
    complete: bool
    failed_checks: list[str]
    # When its reading ended; None where it has no findings.
    finished_at: str | None
    # None where no remediation ran.
    check_mode: bool | None
    # The path of the journal; None where nothing was written.
    journal: str | None
    # The paths of its files; None for a file that it did not write.
    findings: str | None
    remediation: str | None


class MissingShards(t.TypedDict):
    """The shards of a cloud that none of the runs read."""

    placement_endpoint: str
    region: str | None
    # Each as `number/count`.
    shards: list[str]


class SummaryDocument(t.TypedDict):
    """The contents of `summary.json`."""

    # The version of this structure.
    format: int
    # Whether every run succeeded after a sound reading.
    complete: bool
    totals: Totals
    runs: list[RunSummary]
    missing_shards: list[MissingShards]


def summarize_runs(runs: Sequence[RunResult]) -> SummaryDocument:
    """Return the contents of `summary.json`."""
    rows = [_build_row(run) for run in runs]
    all_complete = all(row["complete"] and not row["error"] for row in rows)
    return {
        "format": FORMAT,
        # No runs at all are not complete either.
        "complete": bool(rows) and all_complete,
        "totals": {
            "verdicts": sum_amounts(row["verdicts"] for row in rows),
            "kinds": sum_amounts(row["kinds"] for row in rows),
            "stranded": sum_amounts(row["stranded"] for row in rows),
            "tally": sum_amounts(row["tally"] for row in rows),
            "coverage": sum_amounts(row["coverage"] for row in rows),
            "unjudged_hosts": _count_unjudged(rows),
        },
        "runs": rows,
        "missing_shards": _find_missing_shards(rows),
    }


def list_failures(summary: SummaryDocument) -> list[str]:
    """Return a sentence for each run that failed: its name, and what it failed with."""
    return [f"{row['name']}: {row['error']}" for row in summary["runs"] if row["error"]]


def _build_row(run: RunResult) -> RunSummary:
    row: RunSummary = {
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


def _add_findings(row: RunSummary, findings: FindingsDocument) -> None:
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
    for part in _COVERAGE_COUNTS:
        # A file of an older version has not all of them.
        if part in coverage:
            row["coverage"][part] = coverage[part]


def _count_unjudged(rows: Iterable[RunSummary]) -> int:
    """Return how many hosts were not judged.

    A host that several shards of a cloud name counts once.
    """
    hosts = set()
    for row in rows:
        for host in row["unjudged_hosts"]:
            hosts.add((row["placement_endpoint"], row["region"], host))
    return len(hosts)


def _find_missing_shards(rows: Iterable[RunSummary]) -> list[MissingShards]:
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
    missing_shards: list[MissingShards] = []
    for (endpoint, region, count), numbers in shards_read.items():
        missing = sorted(set(range(1, count + 1)) - numbers)
        if missing:
            shards = [f"{number}/{count}" for number in missing]
            missing_shards.append(
                {"placement_endpoint": endpoint, "region": region, "shards": shards}
            )
    return missing_shards
