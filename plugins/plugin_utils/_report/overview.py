# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a report says at a glance: numbers, fractions and what was and was not read.

Data only: nothing here is escaped yet. Its only reader is the template of the HTML page, which
refuses what is missing. Numbers are texts, as the page shows them, and texts are empty for nothing.
A fraction is from 0 to 1.
"""

from __future__ import annotations

import typing as t
from collections.abc import Mapping, Sequence

from ...module_utils._common.text import format_count
from ...module_utils._core.findings.coverage import (
    describe_amounts,
    describe_reading,
    describe_unjudged_hosts,
)
from ...module_utils._core.findings.entries import (
    Coverage,
    FindingsDocument,
    Stranded,
    Summary,
    describe_scope,
    iterate_entries,
)
from ...module_utils._core.models.documents import ScopeDocument
from ...module_utils._core.models.placement import add_amounts
from .guidance import list_commands, summarize_kinds
from .log_correlation import correlate_records, get_record_subject
from .phrases import describe_complaint
from .quota import label_project
from .report import Report
from .rows import RESOURCE_COLUMNS, VERDICTS
from .units import (
    format_number,
    format_others,
    get_class_label,
    humanize_amount,
    sort_resource_classes,
)

if t.TYPE_CHECKING:  # pragma: no cover
    # A name, the amounts that are stranded, and all amounts that are allocated, by resource class.
    _Total = tuple[str, Mapping[str, int], Mapping[str, int]]

_SHOWN_LINES = 8
_MAX_LINES = 200

_ReadCount = t.Literal["providers", "hypervisors", "servers", "consumers", "looked_at_closely"]
_READ_COUNTS: Mapping[_ReadCount, str] = {
    "providers": "providers listed",
    "hypervisors": "hypervisors listed",
    "servers": "servers on them",
    "consumers": "consumers read",
    "looked_at_closely": "consumers looked up",
}
_MEANING = {
    "orphaned": "allocations that nothing needs",
    "drifted": "not as it should be",
    "undecided": "neither proven nor refuted; not changed",
    "protected": "must not be changed",
}


def build_overview(report: Report) -> dict[str, t.Any]:
    """Return everything above the table."""
    findings, summary = report.findings, report.findings["summary"]
    coverage = summary["coverage"]
    return {
        "cloud": findings["cloud"],
        "finished_at": findings["finished_at"],
        "about": describe_scope(findings["scope"]),
        "scope": _describe_scope(findings["scope"], coverage),
        "complete": coverage["complete"],
        "failed_checks": coverage["failed_checks"],
        "unjudged": describe_unjudged_hosts(coverage),
        "unread": coverage.get("unread", []),
        "left_out": _format_positive(coverage["left_out"]),
        "verdicts": _summarize_verdicts(summary["verdicts"]),
        "fresh": _count_new(findings),
        "read": [(label, format_number(coverage[key])) for key, label in _READ_COUNTS.items()],
        "classes": _summarize_classes(summary),
        "kinds": summarize_kinds(summary["kinds"], report.run),
        "columns": [get_class_label(cls) for cls in RESOURCE_COLUMNS],
        "hosts": _summarize_hosts(findings),
        "projects": _summarize_projects(summary["stranded"]),
        "remediation": _summarize_remediation(report),
        "commands": list_commands(report),
        "unexplained": _list_unexplained(report),
    }


def _format_positive(number: int) -> str:
    """Return a number, nothing for none and for less."""
    return format_number(number) if number > 0 else ""


def _summarize_verdicts(counts: Mapping[str, int]) -> list[dict[str, str]]:
    return [
        {"name": verdict, "count": format_number(counts[verdict]), "meaning": _MEANING[verdict]}
        for verdict in VERDICTS
    ]


def _name_projects(scope: ScopeDocument) -> list[str]:
    """Return the projects in the scope, each with its name if that is known."""
    names = scope.get("project_names") or [""] * len(scope["projects"])
    labels = []
    for uuid, name in zip(scope["projects"], names, strict=True):
        labels.append(f"{name} ({uuid})" if name else uuid)
    return labels


def _describe_scope(scope: ScopeDocument, coverage: Coverage) -> list[tuple[str, str]]:
    """Return what a reading was narrowed to, and of how many servers it checked the amounts."""
    groups: Mapping[str, t.Any] = scope.get("groups") or {}
    narrowed = {
        "hosts": ", ".join(scope["hosts"]),
        "consumers": ", ".join(scope["consumers"]),
        "projects": ", ".join(_name_projects(scope)),
        "kinds": ", ".join(scope["kinds"]),
        "aggregates": ", ".join(groups.get("aggregate_names", ())),
        "availability zones": ", ".join(groups.get("availability_zones", ())),
        "cells": ", ".join(groups.get("cells", ())),
        "mode": "" if scope["mode"] == "full" else scope["mode"],
        "reading": describe_reading(coverage),
        "amounts": describe_amounts(coverage),
    }
    return [(label, text) for label, text in narrowed.items() if text]


def _count_new(findings: FindingsDocument) -> dict[str, str] | None:
    """Return how many findings the previous run did not have; None where none says so."""
    flags = [entry["new"] for entry in findings["findings"] if "new" in entry]
    if not flags:
        return None
    return {"count": format_number(sum(flags)), "of": format_number(len(flags))}


def _summarize_classes(summary: Summary) -> list[dict[str, t.Any]]:
    """Return for each resource class what is stranded, and of what its fractions are."""
    stranded = summary["stranded"]["resource_classes"]
    fractions = summary["stranded"]["share_of_claimed"]
    lines = []
    for cls in sort_resource_classes(stranded):
        notes = [_describe_allocated(cls, summary)] if cls in fractions else []
        notes.append(_describe_capacity(cls, summary))
        line = {
            "label": get_class_label(cls),
            "name": cls,
            "stranded": humanize_amount(cls, stranded[cls]),
            "fraction": fractions.get(cls),
            "percentage": _format_percentage(fractions.get(cls)),
            "notes": [note for note in notes if note],
        }
        lines.append(line)
    return lines


def _describe_allocated(resource_class: str, summary: Summary) -> str:
    """Return of what the fraction of a stranded amount is."""
    # Files of older versions do not have the amounts.
    allocated = summary["stranded"].get("allocated", {}).get(resource_class)
    if allocated is None:
        return "Of all allocations in the cloud."
    return f"Of {humanize_amount(resource_class, allocated)} allocated in the whole cloud."


def _describe_capacity(resource_class: str, summary: Summary) -> str:
    """Return which percentage of a capacity is stranded, empty where that cannot be said.

    Both amounts are sums over the same providers, which may be a few of all: those whose inventory
    was read.
    """
    stock = summary["capacity"].get(resource_class)
    # What files of older versions say is stranded is not only on these providers.
    if not stock or not stock["capacity"] or "stranded" not in stock:
        return ""
    providers = format_count(
        stock["providers"],
        "provider whose inventory was read",
        "providers whose inventory was read",
    )
    stranded = humanize_amount(resource_class, stock["stranded"])
    percentage = _format_percentage(stock["stranded"] / stock["capacity"])
    capacity = humanize_amount(resource_class, stock["capacity"])
    return f"{stranded} on {providers}: {percentage} of the capacity there ({capacity})."


def _summarize_hosts(findings: FindingsDocument) -> dict[str, t.Any]:
    """Return what is stranded on each host with its whole tree.

    Its fraction is of what is allocated on the same providers: of other providers of the host, on
    which nothing is stranded, the file has nothing.
    """
    roots = {
        provider["uuid"]: (provider["root"] or provider["uuid"], provider["root_name"])
        for entry in iterate_entries(findings)
        for provider in entry["providers"]
    }
    names: dict[str, str] = {}
    stranded: dict[str, dict[str, int]] = {}
    used: dict[str, dict[str, int]] = {}
    for provider in findings["capacity"]:
        # A provider that no entry is about stands for itself.
        itself = (provider["uuid"], provider["name"])
        root, name = roots.get(provider["uuid"], itself)
        names[root] = name
        for cls, stock in provider["resource_classes"].items():
            add_amounts(stranded.setdefault(root, {}), {cls: stock["stranded"]})
            add_amounts(used.setdefault(root, {}), {cls: stock["used"] or 0})
    hosts: list[_Total] = []
    for root, amounts in stranded.items():
        if any(amounts.values()):
            hosts.append((names[root], amounts, used[root]))
    return _build_lines(hosts)


def _summarize_projects(stranded: Stranded) -> dict[str, t.Any]:
    """Return what is stranded of each project."""
    nothing: Mapping[str, int] = {}
    totals = []
    for project, amounts in stranded["projects"].items():
        totals.append((label_project(project, stranded), amounts, nothing))
    return _build_lines(totals)


def _build_lines(totals: Sequence[_Total]) -> dict[str, t.Any]:
    """Return a line for each of `totals`, those with the largest amounts first.

    The first lines are shown, the rest is folded, and those after them are only counted.
    """
    ordered = sorted(totals, key=_make_sort_key)
    lines = [_build_line(total) for total in ordered[:_MAX_LINES]]
    return {
        "first": lines[:_SHOWN_LINES],
        "rest": lines[_SHOWN_LINES:],
        "fractions": any(used for _name, _stranded, used in ordered),
        "more": _format_positive(len(ordered) - _MAX_LINES),
    }


def _make_sort_key(total: _Total) -> tuple[list[int], str]:
    name, stranded, _used = total
    return [-stranded.get(cls, 0) for cls in RESOURCE_COLUMNS], name


def _build_line(total: _Total) -> dict[str, t.Any]:
    name, stranded, used = total
    return {
        "name": name,
        "cells": [_build_cell(cls, stranded, used) for cls in RESOURCE_COLUMNS],
        "others": format_others(stranded, RESOURCE_COLUMNS),
    }


def _build_cell(
    resource_class: str, stranded: Mapping[str, int], used: Mapping[str, int]
) -> dict[str, t.Any]:
    amount, allocated = stranded.get(resource_class, 0), used.get(resource_class)
    fraction = amount / allocated if allocated else None
    return {
        "label": get_class_label(resource_class),
        "amount": humanize_amount(resource_class, amount) if amount else "",
        # Of a host that gave up allocations meanwhile more may be stranded than is allocated.
        "fraction": fraction and min(1.0, fraction),
        "percentage": _format_percentage(fraction),
    }


def _summarize_remediation(report: Report) -> dict[str, t.Any] | None:
    """Return what a run changed, or in check mode would have changed."""
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
    shown = [
        {
            "kind": record["kind"],
            "about": get_record_subject(record),
            "text": describe_complaint(record),
        }
        for record in records[:_MAX_LINES]
    ]
    return {"complaints": shown, "more": _format_positive(len(records) - len(shown))}


def _format_percentage(fraction: float | None) -> str:
    """Return a fraction as a percentage; a fraction above zero is never `0 %`."""
    if fraction is None:
        return ""
    if 0 < fraction < 0.001:
        return "< 0.1 %"
    return f"{fraction:.1%}".replace("%", " %").replace(".0 %", " %")
