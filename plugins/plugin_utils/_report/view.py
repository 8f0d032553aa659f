# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a report says, whatever its format: the entries in their order, and what is stranded where.

Data only: nothing here is escaped yet. Where there is nothing, a text is empty.
"""

from __future__ import annotations

import dataclasses as d
import re
import typing as t
from collections.abc import Iterable, Mapping
from pathlib import Path

from ...module_utils._core.findings.entries import (
    ENTRY_LISTS,
    Entry,
    FindingsDocument,
    Stranded,
    get_subject,
    iterate_entries,
)
from ...module_utils._core.models.change import OUTCOME_BY_ACTION
from ...module_utils._core.models.codec import Json
from ...module_utils._core.models.kinds import KINDS
from ...module_utils._core.models.outcomes import FAILED, SKIPPED
from ...module_utils._core.models.placement import add_amounts
from .phrases import explain_unchanged, get_server_name, label_project, list_hosts, sum_freed
from .report import Report

EntryList = t.Literal["findings", "undecided", "protected"]

# Texts and numbers that compare as a reader expects: compute-9 comes before compute-10.
_NaturalKey = list[tuple[str, int]]
_RANKS = {kind.name: rank for rank, kind in enumerate(KINDS)}

# The templates of the formats.
TEMPLATES = Path(__file__).with_name("_templates")

# The resource classes that have a column.
RESOURCE_COLUMNS = ("VCPU", "MEMORY_MB", "DISK_GB")


@d.dataclass(frozen=True)
class State:
    """What was, would be or could be written for an entry, and the reason.

    style: `done`, `planned`, `failed`, `skipped` or `left`.
    """

    text: str
    style: str
    reason: str = ""


@d.dataclass(frozen=True)
class Item:
    """An entry with its texts.

    left: why its change is not made; empty if it is made, or if there is none.
    outcome: that of its change, or in check mode the expected one; empty if it was not tried.
    """

    entry: Entry
    subject: str
    server: str
    hosts: list[str]
    frees: Mapping[str, int]
    left: str
    state: State
    outcome: str


class Total(t.NamedTuple):
    """What is stranded of something, and what is allocated on the same providers."""

    name: str
    stranded: Mapping[str, int]
    allocated: Mapping[str, int]


def list_items(report: Report, *keys: EntryList) -> list[Item]:
    """Return the entries of some lists, or of all, in the order of the terminal."""
    planned = None
    if report.plan is not None:
        planned = {change["finding"] for change in report.plan["changes"]}
    outcomes: dict[str, Json] = {}
    check_mode = False
    if report.remediation is not None:
        check_mode = report.remediation["check_mode"]
        outcomes = {outcome["finding"]: outcome for outcome in report.remediation["outcomes"]}
    items = []
    for key in keys or ENTRY_LISTS:
        for entry in sort_entries(report.findings[key]):
            left = explain_unchanged(entry, report.kinds) if entry["change"] else ""
            state = _describe_plan(entry, planned, left)
            tried = outcomes.get(entry["id"])
            if tried:
                state = _describe_outcome(tried, check_mode)
            items.append(_build_item(entry, left, state, state.text if tried else ""))
    return items


def _build_item(entry: Entry, left: str, state: State, outcome: str) -> Item:
    return Item(
        entry=entry,
        subject=get_subject(entry),
        server=get_server_name(entry),
        hosts=list_hosts(entry),
        frees=sum_freed(entry),
        left=left,
        state=state,
        outcome=outcome,
    )


def _describe_outcome(outcome: Json, check_mode: bool) -> State:
    """Return the state of an entry whose change was made or tried."""
    name, reason = outcome["outcome"], outcome["reason"]
    if name in (SKIPPED, FAILED):
        return State(name, name, reason)
    if check_mode:
        return State(f"would be {name}", "planned", reason)
    return State(name, "done", reason)


def _describe_plan(entry: Entry, planned: set[str] | None, left: str) -> State:
    """Return the state of an entry whose change was not tried.

    planned: the ids of the findings in the plan; None without a plan.
    left: why its change is not made now.
    """
    change = entry["change"]
    if not change:
        return State("not changed", "left")
    done = OUTCOME_BY_ACTION[change["action"]]
    if planned is not None and entry["id"] in planned:
        return State(f"would be {done}", "planned")
    # A reviewed plan may leave out what these options would change.
    if not left and planned is not None:
        left = "it is not in the plan"
    if left:
        return State(f"could be {done}", "left", f"Not now: {left}.")
    return State(f"would be {done}", "planned")


def sum_hosts(findings: FindingsDocument) -> list[Total]:
    """Return what is stranded on each host with its whole tree, the largest amounts first.

    Of providers of a host on which nothing is stranded, the file does not have what is allocated.
    """
    roots = {
        provider["uuid"]: (provider["root"] or provider["uuid"], provider["root_name"])
        for entry in iterate_entries(findings)
        for provider in entry["providers"]
    }
    totals: dict[str, tuple[str, dict[str, int], dict[str, int]]] = {}
    for provider in findings["capacity"]:
        # A provider that no entry is about stands for itself.
        itself = (provider["uuid"], provider["name"])
        root, name = roots.get(provider["uuid"], itself)
        _name, stranded, used = totals.get(root, ("", {}, {}))
        totals[root] = (name, stranded, used)
        for cls, stock in provider["resource_classes"].items():
            add_amounts(stranded, {cls: stock["stranded"]})
            add_amounts(used, {cls: stock["used"] or 0})
    hosts = [Total(*total) for total in totals.values()]
    return _sort_totals([host for host in hosts if any(host.stranded.values())])


def sum_projects(stranded: Stranded) -> list[Total]:
    """Return what is stranded of each project, the largest amounts first."""
    totals = []
    for project, amounts in stranded["projects"].items():
        totals.append(Total(label_project(project, stranded), amounts, {}))
    return _sort_totals(totals)


def _sort_totals(totals: list[Total]) -> list[Total]:
    return sorted(totals, key=_rank_total)


def _rank_total(total: Total) -> tuple[list[int], str]:
    return [-total.stranded.get(cls, 0) for cls in RESOURCE_COLUMNS], total.name


def sort_entries(entries: Iterable[Entry]) -> list[Entry]:
    """Return entries by kind, in the order of the table of kinds, then by host, the oldest first.

    What an entry is protected or undecided for is not in that table: such kinds come last, in the
    order of their names.
    """
    return sorted(entries, key=_rank_entry)


def sort_kinds(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return kinds with their numbers in the order of the table of kinds."""
    return sorted(counts.items(), key=lambda pair: _rank_kind(pair[0]))


def _rank_entry(entry: Entry) -> tuple[tuple[int, str], list[_NaturalKey], int, str]:
    hosts = [make_natural_key(host) for host in list_hosts(entry)]
    return _rank_kind(entry["kind"]), hosts, -(entry["age_seconds"] or 0), entry["id"]


def _rank_kind(kind: str) -> tuple[int, str]:
    return _RANKS.get(kind, len(_RANKS)), kind


def make_natural_key(name: str) -> _NaturalKey:
    """Return a key by which numbers in names are compared as numbers."""
    key = []
    for text, digits in re.findall(r"([^0-9]*)([0-9]*)", name):
        # Python limits how long a text may be that it reads as a number.
        key.append((text, int(digits[:18] or 0)))
    return key
