# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""The entries of a report as rows of a table, and what unfolds from each. Data only: nothing here is escaped yet."""

from __future__ import annotations

import collections
import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.times import format_duration
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import (
    get_subject,
    iterate_entries,
)
from ansible_collections.osops.placement.plugins.module_utils._models.change import (
    FAILED,
    OUTCOME_BY_ACTION,
    SKIPPED,
)
from ansible_collections.osops.placement.plugins.plugin_utils._log_correlation import (
    correlate_records,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.phrases import (
    describe_complaint,
    explain_unchanged,
    get_server_name,
    list_hosts,
    sum_freed,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.units import (
    format_amounts,
    humanize_amount,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._findings.entries import Entry
    from ansible_collections.osops.placement.plugins.plugin_utils._report.report import Report

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
    """What became of an entry: in words, how it is to look (`done`, `planned`, `failed`, `skipped`, `left`), and why."""

    text: str
    style: str
    reason: str = ""


def build_rows(report: Report) -> list[Row]:
    """Return the entries in the order of the table: by verdict, kind, host and id."""
    states = _make_state_getter(report)
    listed = [
        Row(entry, _build_index(entry, states(entry))) for entry in iterate_entries(report.findings)
    ]
    return sorted(
        listed,
        key=lambda row: (
            VERDICTS.index(row.index["verdict"]),
            row.index["kind"],
            row.index["hosts"],
            row.index["id"],
        ),
    )


def make_details_builder(report: Report) -> Callable[[Entry], dict[str, t.Any]]:
    """Return what gives all that is to be unfolded from an entry."""
    states = _make_state_getter(report)
    complaints: dict[str, list[str]] = collections.defaultdict(list)
    for pair in correlate_records(report.findings, report.complaints)["explained"]:
        complaints[pair["finding"]].append(describe_complaint(pair["record"]))
    names = {
        provider["uuid"]: provider["name"]
        for entry in iterate_entries(report.findings)
        for provider in entry["providers"]
    }

    def told(entry: Entry) -> dict[str, t.Any]:
        state = states(entry)
        return {
            "known": _describe_subject(entry),
            "why": state.reason,
            "providers": [
                {key: provider[key] for key in ("name", "uuid", "root_name", "dropped")}
                | {"holds": format_amounts(provider["resources"]) or "nothing"}
                for provider in entry["providers"]
            ],
            "changes": _describe_changes(entry["change"], names),
            "evidence": entry["evidence"],
            "complaints": complaints.get(entry["id"], []),
        }

    return told


def _build_index(entry: Entry, state: State) -> dict[str, t.Any]:
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
        "amounts": [
            humanize_amount(cls, frees[cls]) if frees.get(cls) else "" for cls in RESOURCE_COLUMNS
        ],
        "others": format_amounts(
            {cls: amount for cls, amount in frees.items() if cls not in RESOURCE_COLUMNS}
        ),
        "age": age,
        "age_told": "" if age is None else format_duration(age),
        "reason": entry["reason"],
        "state": state.text,
        "look": state.style,
        "new": bool(entry.get("new")),
    }


def _make_state_getter(report: Report) -> Callable[[Entry], State]:
    """Return what tells of an entry what was, would be or could be written."""
    planned = (
        None if report.plan is None else {change["finding"] for change in report.plan["changes"]}
    )
    outcomes = {
        outcome["finding"]: outcome for outcome in (report.remediation or {}).get("outcomes", ())
    }
    proven_only = bool(report.remediation and report.remediation["check_mode"])

    def state(entry: Entry) -> State:
        outcome, change = outcomes.get(entry["id"]), entry["change"]
        if outcome:
            made = outcome["outcome"]
            if made in (SKIPPED, FAILED):
                return State(made, made, outcome["reason"])
            return State(
                f"would be {made}" if proven_only else made,
                "planned" if proven_only else "done",
                outcome["reason"],
            )
        if not change:
            return State("left alone", "left")
        done = OUTCOME_BY_ACTION[change["action"]]
        if planned is not None and entry["id"] in planned:
            return State(f"would be {done}", "planned")
        left = explain_unchanged(entry, report.kinds) or (
            "" if planned is None else "it is not in the plan"
        )
        return (
            State(f"could be {done}", "left", f"Not now, for {left}.")
            if left
            else State(f"would be {done}", "planned")
        )

    return state


def _describe_subject(entry: Entry) -> list[tuple[str, str]]:
    """Return what is known of whom an entry is about, as labels and texts."""
    server, migration, service = entry["server"], entry["migration"], entry["service"]
    known: list[tuple[str, t.Any]] = [
        ("Finding", entry["id"]),
        ("Consumer", entry["consumer"]),
        ("Type", entry["type"]),
        ("Generation", entry["generation"]),
        ("Age", None if entry["age_seconds"] is None else format_duration(entry["age_seconds"])),
        ("First seen", entry.get("first_seen")),
        ("Project", entry["project"]),
        ("User", entry["user"]),
    ]
    if server:
        task = f", task {server['task_state']}" if server["task_state"] else ""
        rests = f", on {server['host']}" if server["host"] else ", on no host"
        known += [
            ("Server", server["name"]),
            ("Its uuid", server["uuid"]),
            ("Its state", f"{server['status']}{task}{rests}" if server["status"] else None),
        ]
    if migration:
        way = (
            f"{migration['source_compute'] or 'nowhere'} → {migration['dest_compute'] or 'nowhere'}"
        )
        known.append(
            ("Migration", f"{migration['uuid']}, {migration['type']}, {migration['status']}, {way}")
        )
    if service:
        known.append(
            (
                "Service",
                f"{service['binary']} on {service['host']}, {service['status']}, {service['state'] or 'state unknown'}",
            )
        )
        known.append(("Disabled, for", service["disabled_reason"]))
    return [(label, str(text)) for label, text in known if text not in (None, "")]


def _describe_changes(
    change: Mapping[str, t.Any] | None, names: Mapping[str, str]
) -> list[dict[str, t.Any]]:
    """Return the documents before and after of a change and of its partner, or the providers that it deletes."""
    if not change:
        return []
    if change["action"] == "delete_providers":
        return [{"title": "Providers to delete, children first", "providers": change["providers"]}]
    return [
        {
            "title": f"{part['action'].capitalize()} the allocation of {part['consumer']}",
            "before": part["before"],
            "after": part["after"],
            "names": {
                uuid: names[uuid]
                for document in ("before", "after")
                for uuid in part[document]["allocations"]
                if uuid in names
            },
        }
        for part in (change, change["partner"])
        if part
    ]
