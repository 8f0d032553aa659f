# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What a report says at a glance: numbers, shares and what was and was not read. Data only: nothing here is escaped yet."""

from __future__ import annotations

import collections
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._findings.coverage import (
    describe_unjudged_hosts,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import (
    iterate_entries,
)
from ansible_collections.osops.placement.plugins.plugin_utils._log_correlation import (
    correlate_records,
    get_record_subject,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.phrases import (
    describe_complaint,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.rows import (
    RESOURCE_COLUMNS,
    VERDICTS,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.units import (
    format_amounts,
    format_number,
    get_class_label,
    humanize_amount,
    sort_resource_classes,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping

    from ansible_collections.osops.placement.plugins.plugin_utils._report.report import Report

_SHOWN_LINES = 8
_MAX_LINES = 200

_READ_COUNTS = ("providers", "consumers", "hypervisors", "servers", "looked_at_closely")
_MEANING = {
    "orphaned": "claims that nobody needs",
    "drifted": "not as they should be",
    "undecided": "an answer leaves it open; left alone",
    "protected": "for a reason; left alone",
}


def build_overview(report: Report) -> dict[str, t.Any]:
    """Return all that stands above the table."""
    findings, summary = report.findings, report.findings["summary"]
    coverage = summary["coverage"]
    return {
        "cloud": findings["cloud"],
        "finished_at": findings["finished_at"],
        "scope": _describe_scope(findings["scope"]),
        "complete": coverage["complete"],
        "gates": coverage["failed_checks"],
        "unjudged": describe_unjudged_hosts(coverage),
        "left_out": format_number(coverage["left_out"]) if coverage["left_out"] else "",
        "verdicts": [
            {
                "name": verdict,
                "count": format_number(summary["verdicts"][verdict]),
                "meaning": _MEANING[verdict],
            }
            for verdict in VERDICTS
        ],
        "fresh": _count_new(findings),
        "read": [(key.replace("_", " "), format_number(coverage[key])) for key in _READ_COUNTS],
        "classes": _summarize_classes(summary),
        "kinds": _summarize_kinds(summary["kinds"]),
        "columns": [get_class_label(cls) for cls in RESOURCE_COLUMNS],
        "hosts": _summarize_hosts(findings),
        "projects": _build_lines(
            (project or "no project", held, {})
            for project, held in summary["stranded"]["projects"].items()
        ),
        "remediation": _summarize_remediation(report),
        "unexplained": _list_unexplained(report),
    }


def _describe_scope(scope: Mapping[str, t.Any]) -> list[tuple[str, str]]:
    """Return what a reading was narrowed to."""
    narrowed = [
        (key, ", ".join(scope[key]))
        for key in ("hosts", "consumers", "projects", "kinds")
        if scope[key]
    ]
    return narrowed + ([("mode", scope["mode"])] if scope["mode"] != "full" else [])


def _count_new(findings: Mapping[str, t.Any]) -> dict[str, str] | None:
    """Return how many entries the run before did not have, if that is known."""
    known = [entry["new"] for entry in iterate_entries(findings) if "new" in entry]
    return {"count": format_number(sum(known)), "of": format_number(len(known))} if known else None


def _summarize_classes(summary: Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """Return for each resource class what is stranded, and which share of all claims and of all capacity that is."""
    stranded, shares = (
        summary["stranded"]["resource_classes"],
        summary["stranded"]["share_of_claimed"],
    )
    told = []
    for cls in sort_resource_classes(stranded):
        stock = summary["capacity"].get(cls)
        told.append(
            {
                "label": get_class_label(cls),
                "name": cls,
                "stranded": humanize_amount(cls, stranded[cls]),
                "share": shares.get(cls),
                "share_told": _format_percentage(shares[cls]) if cls in shares else "",
                "claimed": humanize_amount(cls, stock["used"]) if stock else "",
                "capacity": humanize_amount(cls, stock["capacity"]) if stock else "",
                "of_capacity": _format_percentage(stranded[cls] / stock["capacity"])
                if stock and stock["capacity"]
                else "",
            }
        )
    return told


def _summarize_kinds(kinds: Mapping[str, int]) -> list[dict[str, t.Any]]:
    most = max(kinds.values(), default=1)
    ordered = sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0]))
    return [
        {"name": kind, "count": format_number(count), "share": count / most}
        for kind, count in ordered
    ]


def _summarize_hosts(findings: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return what is stranded on each host with all of its tree, and which share of the claims on it that is."""
    roots = {
        provider["uuid"]: (provider["root"] or provider["uuid"], provider["root_name"])
        for entry in iterate_entries(findings)
        for provider in entry["providers"]
    }
    names: dict[str, str] = {}
    held: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    used: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for provider in findings["capacity"]:
        root, name = roots.get(provider["uuid"], (provider["uuid"], provider["name"]))
        names[root] = name
        for cls, stock in provider["resource_classes"].items():
            held[root][cls] += stock["stranded"]
            used[root][cls] += stock["used"] or 0
    return _build_lines(
        (names[root], held[root], used[root]) for root in held if any(held[root].values())
    )


def _build_lines(
    totals: Iterable[tuple[str, Mapping[str, int], Mapping[str, int]]],
) -> dict[str, t.Any]:
    """Return lines of amounts, those with most first: some to be shown, some to be unfolded, and how many there are besides."""
    ordered = sorted(
        totals, key=lambda line: ([-line[1].get(cls, 0) for cls in RESOURCE_COLUMNS], line[0])
    )
    lines = [
        {
            "name": name,
            "cells": [
                {
                    "label": get_class_label(cls),
                    "amount": humanize_amount(cls, held[cls]) if held.get(cls) else "",
                    "share": min(1.0, held.get(cls, 0) / used[cls]) if used.get(cls) else None,
                    "share_told": _format_percentage(held.get(cls, 0) / used[cls])
                    if used.get(cls)
                    else "",
                }
                for cls in RESOURCE_COLUMNS
            ],
            "others": format_amounts(
                {
                    cls: amount
                    for cls, amount in held.items()
                    if amount and cls not in RESOURCE_COLUMNS
                }
            ),
        }
        for name, held, used in ordered[:_MAX_LINES]
    ]
    return {
        "first": lines[:_SHOWN_LINES],
        "rest": lines[_SHOWN_LINES:],
        "shares": any(used for name, held, used in ordered),
        "more": format_number(len(ordered) - _MAX_LINES) if len(ordered) > _MAX_LINES else "",
    }


def _summarize_remediation(report: Report) -> dict[str, t.Any] | None:
    """Return what a run changed, or would have."""
    if report.remediation is None:
        return None
    tally = [
        {"name": name, "count": format_number(count)}
        for name, count in report.remediation["tally"].items()
        if count
    ]
    return {
        "check_mode": report.remediation["check_mode"],
        "tally": tally,
        "journal": report.journal,
    }


def _list_unexplained(report: Report) -> dict[str, t.Any]:
    """Return the complaints of hosts that no entry explains."""
    records = correlate_records(report.findings, report.complaints)["unexplained"]
    told = [
        {
            "kind": record["kind"],
            "about": get_record_subject(record),
            "text": describe_complaint(record),
        }
        for record in records[:_MAX_LINES]
    ]
    return {
        "told": told,
        "more": format_number(len(records) - len(told)) if len(records) > len(told) else "",
    }


def _format_percentage(fraction: float) -> str:
    """Return a share as a percentage: nothing that is there is `0 %`."""
    return (
        "< 0.1 %"
        if 0 < fraction < 0.001
        else f"{fraction:.1%}".replace("%", " %").replace(".0 %", " %")
    )
