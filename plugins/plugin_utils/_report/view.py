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
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

import jinja2

from ...module_utils._common.text import format_count
from ...module_utils._core.findings.coverage import (
    describe_amounts,
    describe_reading,
    describe_unjudged_hosts,
)
from ...module_utils._core.findings.entries import (
    ENTRY_LISTS,
    Entry,
    FindingsDocument,
    Stranded,
    describe_scope,
    get_subject,
    iterate_entries,
)
from ...module_utils._core.models.change import FAILED, NOT_MADE, OUTCOME_BY_ACTION
from ...module_utils._core.models.codec import Json
from ...module_utils._core.models.kinds import KINDS
from ...module_utils._core.models.placement import add_amounts
from . import phrases
from .log_correlation import Complaint
from .phrases import explain_unchanged, get_server_name, label_project, list_hosts, sum_freed
from .proposed_commands import Context

EntryList = t.Literal["findings", "undecided", "protected"]

# Texts and numbers that compare as a reader expects: compute-9 comes before compute-10.
_NaturalKey = list[tuple[str, int]]
_RANKS = {kind.name: rank for rank, kind in enumerate(KINDS)}

# The templates of the formats.
TEMPLATES = Path(__file__).with_name("_templates")

# The resource classes that have a column.
RESOURCE_COLUMNS = ("VCPU", "MEMORY_MB", "DISK_GB")


@d.dataclass(frozen=True)
class Report:
    """The files of one run, as docs/findings.md describes them.

    kinds: those that may be changed; None for any.
    plan, remediation: None where the run did not come so far.
    plan_path: the path of the plan, None where it is not known.
    journal: the path of the journal, None where nothing was written.
    complaints: the records of `nova_log_info`.
    failure: what the run ended with, empty when nothing failed.
    metrics: the Prometheus textfile of the run before, None where there is none.
    run: what the commands need to know of the run.
    """

    findings: FindingsDocument
    kinds: Collection[str] | None = None
    plan: Json | None = None
    remediation: Json | None = None
    journal: str | None = None
    complaints: Sequence[Complaint] = ()
    failure: str = ""
    metrics: str | None = None
    plan_path: str | None = None
    run: Context = d.field(default_factory=Context)

    @property
    def written(self) -> Json | None:
        """The outcomes of changes that were made; None in check mode, too."""
        remediation = self.remediation
        return None if remediation is None or remediation["check_mode"] else remediation


@d.dataclass(frozen=True)
class State:
    """What was, would be or could be written for an entry, and the reason.

    style: `done`, `planned`, `failed`, `skipped`, `blocked` or `left`.
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
    stranded: dict[str, int]
    allocated: dict[str, int]


def list_items(report: Report, *keys: EntryList) -> list[Item]:
    """Return the entries of some lists, or of all, in the order of the terminal."""
    planned, tried = None, {}
    if report.plan is not None:
        planned = {change["finding"] for change in report.plan["changes"]}
    if report.remediation is not None:
        tried = {outcome["finding"]: outcome for outcome in report.remediation["outcomes"]}
    items = []
    for key in keys or ENTRY_LISTS:
        for entry in sort_entries(report.findings[key]):
            left = explain_unchanged(entry, report.kinds) if entry["change"] else ""
            state, outcome = _describe_plan(entry, planned, left), ""
            if entry["id"] in tried:
                state = _describe_outcome(tried[entry["id"]], report.written is None)
                outcome = state.text
            texts = get_subject(entry), get_server_name(entry), list_hosts(entry)
            items.append(Item(entry, *texts, sum_freed(entry), left, state, outcome))
    return items


def _describe_outcome(outcome: Json, check_mode: bool) -> State:
    """Return the state of an entry whose change was made or tried."""
    name, reason = outcome["outcome"], outcome["reason"]
    if name in NOT_MADE:
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
    done, is_planned = OUTCOME_BY_ACTION[change["action"]], entry["id"] in (planned or ())
    # A reviewed plan may leave out what these options would change.
    if planned is not None and not left:
        left = "it is not in the plan"
    if left and not is_planned:
        return State(f"could be {done}", "left", f"Not now: {left}.")
    return State(f"would be {done}", "planned")


def list_remediated_findings(report: Report) -> set[str]:
    """Return the ids of the findings whose change was made."""
    outcomes = report.written["outcomes"] if report.written else ()
    return {each["finding"] for each in outcomes if each["outcome"] not in NOT_MADE}


def list_troubles(report: Report) -> list[str]:
    """Return a sentence for everything that went wrong, and why nothing may be changed."""
    troubles = [*report.findings["summary"]["coverage"]["failed_checks"]]
    failed = report.remediation["tally"].get(FAILED, 0) if report.remediation else 0
    # The failure of a run counts its failed changes already.
    if report.failure:
        troubles.append(report.failure)
    elif failed:
        troubles.append(f"{format_count(failed, 'change', 'changes')} failed.")
    return troubles


# --- what is stranded


def sum_hosts(findings: FindingsDocument) -> list[Total]:
    """Return what is stranded on each host with its whole tree, the largest amounts first.

    Of providers of a host on which nothing is stranded, the file does not have what is allocated.
    """
    roots = {
        provider["uuid"]: (provider["root"] or provider["uuid"], provider["root_name"])
        for entry in iterate_entries(findings)
        for provider in entry["providers"]
    }
    totals: dict[str, Total] = {}
    for provider in findings["capacity"]:
        # A provider that no entry is about stands for itself.
        root, name = roots.get(provider["uuid"], (provider["uuid"], provider["name"]))
        total = totals.setdefault(root, Total(name, {}, {}))
        for cls, stock in provider["resource_classes"].items():
            add_amounts(total.stranded, {cls: stock["stranded"]})
            add_amounts(total.allocated, {cls: stock["used"] or 0})
    return _sort_totals(total for total in totals.values() if any(total.stranded.values()))


def sum_projects(stranded: Stranded) -> list[Total]:
    """Return what is stranded of each project, the largest amounts first."""
    projects = stranded["projects"].items()
    return _sort_totals(Total(label_project(uuid, stranded), each, {}) for uuid, each in projects)


def _sort_totals(totals: Iterable[Total]) -> list[Total]:
    def rank(total: Total) -> tuple[list[int], str]:
        return [-total.stranded.get(cls, 0) for cls in RESOURCE_COLUMNS], total.name

    return sorted(totals, key=rank)


# --- the order


def sort_entries(entries: Iterable[Entry]) -> list[Entry]:
    """Return entries by kind, in the order of the table of kinds, then by host, the oldest first.

    What an entry is protected or undecided for is not in that table: such kinds come last, in the
    order of their names.
    """

    def rank(entry: Entry) -> tuple[tuple[int, str], list[_NaturalKey], int, str]:
        hosts = [make_natural_key(host) for host in list_hosts(entry)]
        return _rank_kind(entry["kind"]), hosts, -(entry["age_seconds"] or 0), entry["id"]

    return sorted(entries, key=rank)


def sort_kinds(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return kinds with their numbers in the order of the table of kinds."""
    return sorted(counts.items(), key=lambda pair: _rank_kind(pair[0]))


def _rank_kind(kind: str) -> tuple[int, str]:
    return _RANKS.get(kind, len(_RANKS)), kind


def make_natural_key(name: str) -> _NaturalKey:
    """Return a key by which numbers in names are compared as numbers."""
    pairs = re.findall(r"([^0-9]*)([0-9]*)", name)
    # Python limits how long a text may be that it reads as a number.
    return [(text, int(digits[:18] or 0)) for text, digits in pairs]


# --- templates


# What the templates call: sentences about what was read, and sums.
_SENTENCES = (describe_amounts, describe_reading, describe_scope, describe_unjudged_hosts)
_SUMS = (format_count, sort_kinds, sum_hosts, sum_projects)


def build_environment(
    helpers: Iterable[Callable[..., t.Any]], finalize: Callable[[t.Any], t.Any], *, autoescape: bool
) -> jinja2.Environment:
    """Return an environment for the templates, in which nothing undefined is left out silently.

    helpers: what a template calls besides the above, by their own names.
    finalize: is called for the value of each expression.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=autoescape,
        finalize=finalize,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update({each.__name__: each for each in (*_SENTENCES, *_SUMS, *helpers)})
    environment.globals["phrases"] = phrases
    return environment
