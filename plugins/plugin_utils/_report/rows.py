# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The entries of a report as rows of a table, with the details of each.

Data only: nothing here is escaped yet. The HTML page is its only reader. Where there is nothing,
a text is empty.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Callable, Collection, Mapping

from ...module_utils._common.times import format_duration
from ...module_utils._core.findings.entries import Entry, EntryProvider, get_subject
from ...module_utils._core.models.change import DELETE_PROVIDERS, OUTCOME_BY_ACTION
from ...module_utils._core.models.documents import (
    ChangeDocument,
    MigrationDocument,
    OutcomeDocument,
    RemovalDocument,
    ServerDocument,
    ServiceDocument,
)
from ...module_utils._core.models.outcomes import FAILED, SKIPPED
from .commands import list_safe_hosts
from .log_correlation import correlate_records
from .names import choose_names, map_names
from .order import list_sorted_entries
from .phrases import describe_complaint, explain_unchanged, get_server_name, list_hosts, sum_freed
from .proposed_commands import Context, build_cleanup
from .report import Report
from .units import format_others, humanize_amount, humanize_amounts

VERDICTS = ("orphaned", "drifted", "undecided", "protected")
# The resource classes that have a column.
RESOURCE_COLUMNS = ("VCPU", "MEMORY_MB", "DISK_GB")


@d.dataclass(frozen=True)
class Row:
    """One entry: as it is in the files, and as the table shows and sorts it."""

    entry: Entry
    index: dict[str, t.Any]


@d.dataclass(frozen=True)
class State:
    """The state of an entry, and the reason.

    style: `done`, `planned`, `failed`, `skipped` or `left`.
    """

    text: str
    style: str
    reason: str = ""


def build_rows(report: Report) -> list[Row]:
    """Return the entries in the order of the terminal."""
    get_state = _make_state_getter(report)
    rows = []
    for entry in list_sorted_entries(report.findings):
        rows.append(Row(entry, _build_index(entry, get_state(entry))))
    return rows


def make_details_builder(report: Report) -> Callable[[Entry], dict[str, t.Any]]:
    """Return a function that returns what the page has of a row that is unfolded."""
    get_state = _make_state_getter(report)
    complaints = correlate_records(report.findings, report.complaints)["explained"]
    names = map_names(report)

    def build_details(entry: Entry) -> dict[str, t.Any]:
        return {
            # This looks at the hosts of the entry only; the others fix what it is about.
            "command": _build_host_command(entry, report.run),
            "fixes": list(entry.get("commands", [])),
            # Of the providers and servers in what follows, by uuid.
            "names": choose_names(entry, names),
            "known": _describe_subject(entry),
            "why": get_state(entry).reason,
            "providers": [_describe_provider(provider) for provider in entry["providers"]],
            "changes": _describe_changes(entry["change"]),
            "evidence": entry["evidence"],
            "complaints": list(map(describe_complaint, complaints.get(entry["id"], ()))),
        }

    return build_details


def _build_host_command(entry: Entry, run: Context) -> str:
    hosts = list_safe_hosts(entry)
    return build_cleanup({"orphan_cleanup_hosts": hosts}, run) if hosts else ""


def _describe_provider(provider: EntryProvider) -> dict[str, t.Any]:
    return {
        "name": provider["name"],
        "uuid": provider["uuid"],
        "root_name": provider["root_name"],
        "dropped": provider["dropped"],
        "allocated": humanize_amounts(provider["resources"]) or "nothing",
    }


def _build_index(entry: Entry, state: State) -> dict[str, t.Any]:
    """Return what the page shows, sorts, searches and filters rows by, unfolded or not."""
    frees = sum_freed(entry)
    age = entry["age_seconds"]
    return {
        "id": entry["id"],
        "kind": entry["kind"],
        "verdict": entry["verdict"],
        "about": get_subject(entry),
        "server": get_server_name(entry),
        "hosts": list_hosts(entry),
        "project": entry["project"] or "",
        "frees": [frees.get(cls, 0) for cls in RESOURCE_COLUMNS],
        "amounts": [_format_freed(cls, frees) for cls in RESOURCE_COLUMNS],
        "others": format_others(frees, RESOURCE_COLUMNS),
        "age": age,
        "age_text": "" if age is None else format_duration(age),
        "reason": entry["reason"],
        "state": state.text,
        "look": state.style,
        "new": bool(entry.get("new")),
    }


def _format_freed(resource_class: str, frees: Mapping[str, int]) -> str:
    if not frees.get(resource_class):
        return ""
    return humanize_amount(resource_class, frees[resource_class])


def _make_state_getter(report: Report) -> Callable[[Entry], State]:
    """Return a function that returns what was, would be or could be written for an entry."""
    planned = None
    if report.plan is not None:
        planned = {change["finding"] for change in report.plan["changes"]}
    outcomes: dict[str, OutcomeDocument] = {}
    check_mode = False
    if report.remediation is not None:
        check_mode = report.remediation["check_mode"]
        outcomes = {outcome["finding"]: outcome for outcome in report.remediation["outcomes"]}

    def get_state(entry: Entry) -> State:
        if outcome := outcomes.get(entry["id"]):
            return _build_outcome_state(outcome, check_mode)
        return _build_plan_state(entry, planned, report.kinds)

    return get_state


def _build_outcome_state(outcome: OutcomeDocument, check_mode: bool) -> State:
    """Return the state of an entry whose change was made or tried."""
    name, reason = outcome["outcome"], outcome["reason"]
    if name in (SKIPPED, FAILED):
        return State(name, name, reason)
    if check_mode:
        return State(f"would be {name}", "planned", reason)
    return State(name, "done", reason)


def _build_plan_state(
    entry: Entry, planned: set[str] | None, kinds: Collection[str] | None
) -> State:
    """Return the state of an entry whose change was not tried.

    planned: the ids of the findings in the plan; None without a plan.
    """
    change = entry["change"]
    if not change:
        return State("not changed", "left")
    done = OUTCOME_BY_ACTION[change["action"]]
    if planned is not None and entry["id"] in planned:
        return State(f"would be {done}", "planned")
    left = explain_unchanged(entry, kinds)
    # A reviewed plan may leave out what these options would change.
    if not left and planned is not None:
        left = "it is not in the plan"
    if left:
        return State(f"could be {done}", "left", f"Not now: {left}.")
    return State(f"would be {done}", "planned")


def _describe_subject(entry: Entry) -> list[tuple[str, str]]:
    """Return the facts about the subject of an entry, as labels and texts."""
    age = entry["age_seconds"]
    facts: list[tuple[str, t.Any]] = [
        ("Finding", entry["id"]),
        ("Consumer", entry["consumer"]),
        ("Type", entry["type"]),
        ("Generation", entry["generation"]),
        ("Age", None if age is None else format_duration(age)),
        ("First seen", entry.get("first_seen")),
        ("Project", entry["project"]),
        ("User", entry["user"]),
    ]
    if entry["server"]:
        facts += _describe_server(entry["server"])
    if entry["migration"]:
        facts.append(("Migration", _describe_migration(entry["migration"])))
    if entry["service"]:
        facts.append(("Service", _describe_service(entry["service"])))
        facts.append(("Disabled because", entry["service"]["disabled_reason"]))
    return [(label, str(text)) for label, text in facts if text not in (None, "")]


def _describe_server(server: ServerDocument) -> list[tuple[str, t.Any]]:
    state = None
    if server["status"]:
        task = f", task {server['task_state']}" if server["task_state"] else ""
        host = server["host"] or "no host"
        state = f"{server['status']}{task}, on {host}"
    return [("Server", server["name"]), ("Server UUID", server["uuid"]), ("Server state", state)]


def _describe_migration(migration: MigrationDocument) -> str:
    source = migration["source_compute"] or "nowhere"
    destination = migration["dest_compute"] or "nowhere"
    return (
        f"{migration['uuid']}, {migration['type']}, {migration['status']}, {source} → {destination}"
    )


def _describe_service(service: ServiceDocument) -> str:
    state = service["state"] or "state unknown"
    return f"{service['binary']} on {service['host']}, {service['status']}, {state}"


def _describe_changes(change: ChangeDocument | RemovalDocument | None) -> list[dict[str, t.Any]]:
    """Return the documents of a change and of its partner, or the providers that it deletes."""
    if not change:
        return []
    if change["action"] == DELETE_PROVIDERS:
        return [{"title": "Providers to delete, children first", "providers": change["providers"]}]
    parts = [change, change["partner"]] if change["partner"] else [change]
    return [_describe_allocation_change(part) for part in parts]


def _describe_allocation_change(change: ChangeDocument) -> dict[str, t.Any]:
    """Return the documents before and after a change."""
    return {
        "title": f"{change['action'].capitalize()} the allocation of {change['consumer']}",
        "before": change["before"],
        "after": change["after"],
    }
