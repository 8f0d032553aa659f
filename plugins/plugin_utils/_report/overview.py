# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What a report says at a glance: numbers, shares and what was and was not read. Data only: nothing here is escaped yet."""

from __future__ import annotations

import collections
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._findings.coverage import tell_unjudged
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import entries
from ansible_collections.osops.placement.plugins.plugin_utils._log_correlation import complained_of, joined
from ansible_collections.osops.placement.plugins.plugin_utils._report.phrases import complaint
from ansible_collections.osops.placement.plugins.plugin_utils._report.rows import COLUMNS, VERDICTS
from ansible_collections.osops.placement.plugins.plugin_utils._report.units import amounts, grouped, human, in_order, label

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping

    from ansible_collections.osops.placement.plugins.plugin_utils._report.report import Report

_LINES = 8
_MOST_LINES = 200

_READ = ("providers", "consumers", "hypervisors", "servers", "looked_at_closely")
_MEANING = {
    "orphaned": "claims that nobody needs",
    "drifted": "not as they should be",
    "undecided": "an answer leaves it open; left alone",
    "protected": "for a reason; left alone",
}


def overview(report: Report) -> dict[str, t.Any]:
    """Return all that stands above the table."""
    findings, summary = report.findings, report.findings["summary"]
    coverage = summary["coverage"]
    return {
        "cloud": findings["cloud"],
        "finished_at": findings["finished_at"],
        "scope": _scope(findings["scope"]),
        "complete": coverage["complete"],
        "gates": coverage["closed_gates"],
        "unjudged": tell_unjudged(coverage),
        "left_out": grouped(coverage["left_out"]) if coverage["left_out"] else "",
        "verdicts": [
            {"name": verdict, "count": grouped(summary["verdicts"][verdict]), "meaning": _MEANING[verdict]} for verdict in VERDICTS
        ],
        "fresh": _fresh(findings),
        "read": [(key.replace("_", " "), grouped(coverage[key])) for key in _READ],
        "classes": _classes(summary),
        "kinds": _kinds(summary["kinds"]),
        "columns": [label(cls) for cls in COLUMNS],
        "hosts": _hosts(findings),
        "projects": _lines((project or "no project", held, {}) for project, held in summary["stranded"]["projects"].items()),
        "remediation": _remediation(report),
        "unexplained": _unexplained(report),
    }


def _scope(scope: Mapping[str, t.Any]) -> list[tuple[str, str]]:
    """Return what a reading was narrowed to."""
    narrowed = [(key, ", ".join(scope[key])) for key in ("hosts", "consumers", "projects", "kinds") if scope[key]]
    return narrowed + ([("mode", scope["mode"])] if scope["mode"] != "full" else [])


def _fresh(findings: Mapping[str, t.Any]) -> dict[str, str] | None:
    """Return how many entries the run before did not have, if that is known."""
    known = [entry["new"] for entry in entries(findings) if "new" in entry]
    return {"count": grouped(sum(known)), "of": grouped(len(known))} if known else None


def _classes(summary: Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """Return for each resource class what is stranded, and which share of all claims and of all capacity that is."""
    stranded, shares = summary["stranded"]["resource_classes"], summary["stranded"]["share_of_claimed"]
    told = []
    for cls in in_order(stranded):
        stock = summary["capacity"].get(cls)
        told.append(
            {
                "label": label(cls),
                "name": cls,
                "stranded": human(cls, stranded[cls]),
                "share": shares.get(cls),
                "share_told": _percent(shares[cls]) if cls in shares else "",
                "claimed": human(cls, stock["used"]) if stock else "",
                "capacity": human(cls, stock["capacity"]) if stock else "",
                "of_capacity": _percent(stranded[cls] / stock["capacity"]) if stock and stock["capacity"] else "",
            }
        )
    return told


def _kinds(kinds: Mapping[str, int]) -> list[dict[str, t.Any]]:
    most = max(kinds.values(), default=1)
    ordered = sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0]))
    return [{"name": kind, "count": grouped(count), "share": count / most} for kind, count in ordered]


def _hosts(findings: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return what is stranded on each host with all of its tree, and which share of the claims on it that is."""
    roots = {
        provider["uuid"]: (provider["root"] or provider["uuid"], provider["root_name"])
        for entry in entries(findings)
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
    return _lines((names[root], held[root], used[root]) for root in held if any(held[root].values()))


def _lines(told: Iterable[tuple[str, Mapping[str, int], Mapping[str, int]]]) -> dict[str, t.Any]:
    """Return lines of amounts, those with most first: some to be shown, some to be unfolded, and how many there are besides."""
    ordered = sorted(told, key=lambda line: ([-line[1].get(cls, 0) for cls in COLUMNS], line[0]))
    lines = [
        {
            "name": name,
            "cells": [
                {
                    "label": label(cls),
                    "amount": human(cls, held[cls]) if held.get(cls) else "",
                    "share": min(1.0, held.get(cls, 0) / used[cls]) if used.get(cls) else None,
                    "share_told": _percent(held.get(cls, 0) / used[cls]) if used.get(cls) else "",
                }
                for cls in COLUMNS
            ],
            "others": amounts({cls: amount for cls, amount in held.items() if amount and cls not in COLUMNS}),
        }
        for name, held, used in ordered[:_MOST_LINES]
    ]
    return {
        "first": lines[:_LINES],
        "rest": lines[_LINES:],
        "shares": any(used for name, held, used in ordered),
        "more": grouped(len(ordered) - _MOST_LINES) if len(ordered) > _MOST_LINES else "",
    }


def _remediation(report: Report) -> dict[str, t.Any] | None:
    """Return what a run changed, or would have."""
    if report.remediation is None:
        return None
    tally = [{"name": name, "count": grouped(count)} for name, count in report.remediation["tally"].items() if count]
    return {"check_mode": report.remediation["check_mode"], "tally": tally, "journal": report.journal}


def _unexplained(report: Report) -> dict[str, t.Any]:
    """Return the complaints of hosts that no entry explains."""
    records = joined(report.findings, report.complaints)["unexplained"]
    told = [
        {
            "kind": record["kind"],
            "about": complained_of(record),
            "text": complaint(record),
        }
        for record in records[:_MOST_LINES]
    ]
    return {"told": told, "more": grouped(len(records) - len(told)) if len(records) > len(told) else ""}


def _percent(share: float) -> str:
    """Return a share as a percentage: nothing that is there is `0 %`."""
    return "< 0.1 %" if 0 < share < 0.001 else f"{share:.1%}".replace("%", " %").replace(".0 %", " %")
