# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""Several runs as one: those of the clouds, regions and shards that one playbook looked at. Pure."""

from __future__ import annotations

import collections
import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import make_printable
from ansible_collections.osops.placement.plugins.module_utils._findings.coverage import (
    describe_unjudged_hosts,
    list_unjudged_hosts,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import FORMAT
from ansible_collections.osops.placement.plugins.module_utils._models.change import FAILED, SKIPPED

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping, Sequence


@d.dataclass(frozen=True)
class RunResult:
    """One run: whose it was, what it ended with (nothing when it ended well), and the files that it wrote, with their paths."""

    name: str
    region: str | None = None
    shard: str | None = None
    error: str = ""
    findings: Mapping[str, t.Any] | None = None
    remediation: Mapping[str, t.Any] | None = None
    paths: Mapping[str, str] = d.field(default_factory=dict)


def summarize_runs(runs: Sequence[RunResult]) -> dict[str, t.Any]:
    """Return the contents of `summary.json`."""
    rows = [_build_row(run) for run in runs]
    return {
        "format": FORMAT,
        "complete": bool(rows) and all(row["complete"] and not row["error"] for row in rows),
        "totals": {
            **{
                part: _sum_counts(row[part] for row in rows)
                for part in ("verdicts", "kinds", "stranded", "tally", "coverage")
            },
            "unjudged_hosts": _count_unjudged(rows),
        },
        "runs": rows,
        "missing_shards": _find_missing_shards(rows),
    }


def list_failures(summary: Mapping[str, t.Any]) -> list[str]:
    """Say of each run that did not end well what it ended with."""
    return [f"{row['name']}: {row['error']}" for row in summary["runs"] if row["error"]]


def format_table(summary: Mapping[str, t.Any]) -> list[str]:
    """Return the summary as lines for a terminal: a row for each run, and their sum."""
    head = ("", "orphaned", "drifted", "protected", "undecided", "changed", "")
    rows = [
        head,
        *(_format_cells(row["name"], row, _describe_run(row)) for row in summary["runs"]),
        _format_cells("all", summary["totals"], ""),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head) - 1)]
    lines = [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:], strict=True)),
                row[-1],
            ]
        ).rstrip()
        for row in rows
    ]
    missing = [
        f"Shards {', '.join(known['shards'])} of {known['placement_endpoint']} are not among these."
        for known in summary["missing_shards"]
    ]
    return lines + missing


def _build_row(run: RunResult) -> dict[str, t.Any]:
    found = run.findings
    summary = found["summary"] if found else {}
    coverage = summary.get("coverage", {})
    shard = found["scope"]["shard"] if found else None
    return {
        "name": run.name,
        "region": found["cloud"]["region"] if found else run.region,
        "placement_endpoint": found["cloud"]["placement_endpoint"] if found else None,
        "shard": f"{shard['number']}/{shard['count']}" if shard else None if found else run.shard,
        "error": run.error,
        "complete": bool(coverage.get("complete")),
        "failed_checks": coverage.get("failed_checks", []),
        "partial": bool(coverage.get("partial")),
        "unjudged_hosts": list_unjudged_hosts(coverage),
        "finished_at": found["finished_at"] if found else None,
        "verdicts": summary.get("verdicts", {}),
        "kinds": summary.get("kinds", {}),
        "stranded": summary.get("stranded", {}).get("resource_classes", {}),
        "coverage": {
            part: coverage[part]
            for part in ("providers", "hypervisors", "servers", "consumers")
            if part in coverage
        },
        "check_mode": run.remediation["check_mode"] if run.remediation else None,
        "tally": run.remediation["tally"] if run.remediation else {},
        "journal": run.remediation["journal"] if run.remediation else None,
        **{part: run.paths.get(part) for part in ("findings", "remediation")},
    }


def _sum_counts(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    sums: collections.Counter[str] = collections.Counter()
    for part in parts:
        sums.update(part)
    return dict(sorted(sums.items()))


def _count_unjudged(rows: Iterable[Mapping[str, t.Any]]) -> int:
    """Return how many hosts were not judged; one that several shards of a cloud name counts once."""
    return len(
        {
            (row["placement_endpoint"], row["region"], host)
            for row in rows
            for host in row["unjudged_hosts"]
        }
    )


def _find_missing_shards(rows: Iterable[Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Name the shards of each cloud of which others were read here; in a slice of a job they may be somebody else's."""
    known: dict[tuple[str, str | None, int], set[int]] = {}
    for row in rows:
        if row["shard"] and row["placement_endpoint"]:
            number, count = map(int, row["shard"].split("/"))
            known.setdefault((row["placement_endpoint"], row["region"], count), set()).add(number)
    return [
        {
            "placement_endpoint": endpoint,
            "region": region,
            "shards": [f"{number}/{count}" for number in left],
        }
        for (endpoint, region, count), read in known.items()
        if (left := sorted(set(range(1, count + 1)) - read))
    ]


def _format_cells(name: str, sums: Mapping[str, t.Any], remark: str) -> tuple[str, ...]:
    verdicts, tally = sums["verdicts"], sums["tally"]
    made = sum(count for outcome, count in tally.items() if outcome not in (SKIPPED, FAILED))
    counts = [
        str(verdicts.get(verdict, "-"))
        for verdict in ("orphaned", "drifted", "protected", "undecided")
    ]
    return (make_printable(name), *counts, str(made) if tally else "-", remark)


def _describe_run(row: Mapping[str, t.Any]) -> str:
    told = (
        row["error"]
        or " ".join(row["failed_checks"])
        or ("check mode: nothing was changed" if row["check_mode"] else "")
    )
    unjudged = "" if row["error"] else describe_unjudged_hosts(row)
    return make_printable(" ".join(f"{told} {unjudged}".split()))
