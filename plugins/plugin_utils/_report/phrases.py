# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What all reports use: the words for an entry, what projects get back, and what went wrong."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Collection, Mapping

from ...module_utils._common.text import format_count, make_printable
from ...module_utils._core.models.change import DELETE_PROVIDERS
from ...module_utils._core.models.outcomes import FAILED, SKIPPED
from ...module_utils._core.models.placement import sum_amounts
from .units import format_amounts, humanize_amount

if t.TYPE_CHECKING:  # pragma: no cover
    from ...module_utils._core.findings.entries import Entry, Stranded
    from ...module_utils._core.models.codec import Json
    from .log_correlation import Complaint
    from .report import Report

UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")

# The longest name that is shown whole, and that of a project.
MAX_NAME, _MAX_PROJECT = 40, 80

# What a host says by each kind of complaint.
_COMPLAINT_TEXTS = {
    "not_in_database": "it is not found in the database",
    "not_managed": "it is not managed here",
    "moved_away": "it has moved to <to>",
    "power_state_counts": "servers in the database: <database>, on the hypervisor: <hypervisor>",
    "provider_conflict": "another resource provider has this name",
    "port_deleted": "its port <port> was deleted in Neutron, and its bandwidth was not freed",
    "rpc_version_cap": "version <requested> was requested, and the cap is <cap>",
}


def get_server_name(entry: Entry) -> str:
    """Return the name of the server that an entry is about, nothing where it has none."""
    if not entry["server"]:
        return ""
    return str(entry["server"]["name"] or "")


def list_hosts(entry: Entry) -> list[str]:
    """Return the hosts whose allocation is an orphan, or else all that an entry is about."""
    dropped = [provider for provider in entry["providers"] if provider["dropped"]]
    hosts = {provider["root_name"] for provider in dropped or entry["providers"]}
    if not hosts and entry["service"]:
        return [entry["service"]["host"]]
    return sorted(hosts)


def sum_freed(entry: Entry) -> dict[str, int]:
    """Return the amounts that the change of an entry would free, by resource class."""
    change = entry["change"]
    if change is None or change["action"] == DELETE_PROVIDERS:
        return {}
    return sum_amounts(change["frees"].values())


def explain_unchanged(entry: Entry, kinds: Collection[str] | None) -> str:
    """Return why the change of a finding is not made, nothing when it is made.

    kinds: those that may be changed; None for any.
    """
    if kinds is not None and entry["kind"] not in kinds:
        return explain_kind(entry["kind"])
    if not entry["selected"]:
        return "it is not selected, or changes only hosts that are not named"
    # What version 1.0 wrote does not wait.
    return entry.get("waiting", "")


def explain_kind(kind: str) -> str:
    """Return why nothing of a kind is changed that was not chosen."""
    return f"{kind} is not among the kinds to remediate"


def describe_complaint(record: Complaint) -> str:
    """Return who complained of what, how often and until when."""
    text = _COMPLAINT_TEXTS.get(record["kind"], record["kind"])
    facts = {
        "to": record.get("other_host") or "no host",
        "port": record.get("port") or "of an unknown UUID",
        **(record.get("counts") or {}),
        **(record.get("versions") or {}),
    }
    for name, fact in facts.items():
        text = text.replace(f"<{name}>", str(fact))
    amounts = record.get("amounts")
    if amounts:
        text += f", with an allocation of {format_amounts(amounts)}"
    count = record.get("count", 1)
    times = "once" if count == 1 else f"{count} times"
    if record.get("last_seen"):
        times += f", last at {record['last_seen']}"
    return f"{make_printable(record['host'], MAX_NAME)} says: {text} ({times})"


def label_project(uuid: str, stranded: Stranded) -> str:
    """Return the name of a project with its uuid, and whether Keystone still has it."""
    # Files of older versions do not have it, and an allocation may have no project.
    quota = stranded.get("quota", {}).get(uuid)
    if not uuid:
        return "no project"
    label = make_printable(uuid, _MAX_PROJECT)
    if quota is None:
        return label
    if quota["name"]:
        label = f"{make_printable(quota['name'], _MAX_PROJECT)} ({label})"
    if quota["exists"] is False:
        label += ", which no longer exists"
    return label


def list_quota_lines(stranded: Stranded) -> list[str]:
    """Return for each project what it gets back of its quota, the largest amounts first.

    Only of those that Keystone has: what no longer exists has no quota.
    """
    quota = stranded.get("quota", {})
    projects = [uuid for uuid in quota if quota[uuid]["exists"]]
    ordered = sorted(
        projects, key=lambda uuid: (-quota[uuid]["cores"], -quota[uuid]["ram_mib"], uuid)
    )
    lines = []
    for uuid in ordered:
        amounts = _describe_quota(quota[uuid])
        if amounts:
            lines.append(f"{label_project(uuid, stranded)}: {amounts}")
    return lines


def _describe_quota(quota: Json) -> str:
    parts = []
    if quota["cores"]:
        parts.append(format_count(quota["cores"], "core", "cores"))
    if quota["ram_mib"]:
        parts.append(f"{humanize_amount('MEMORY_MB', quota['ram_mib'])} of RAM")
    return ", ".join(parts)


def join_counts(counts: Mapping[str, int]) -> str:
    """Return `2 removed, 1 failed`; nothing for none."""
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def list_remediated_findings(remediation: Json | None) -> set[str]:
    """Return the ids of the findings whose change was made; none in check mode."""
    if remediation is None or remediation["check_mode"]:
        return set()
    return {
        outcome["finding"]
        for outcome in remediation["outcomes"]
        if outcome["outcome"] not in (SKIPPED, FAILED)
    }


def list_troubles(report: Report) -> list[str]:
    """Return a sentence for everything that went wrong, and why nothing may be changed."""
    troubles = [*report.findings["summary"]["coverage"]["failed_checks"]]
    failed = 0
    if report.remediation is not None:
        failed = report.remediation["tally"].get(FAILED, 0)
    # The failure of a run counts its failed changes already.
    if report.failure:
        troubles.append(report.failure)
    elif failed:
        troubles.append(f"{format_count(failed, 'change', 'changes')} failed.")
    return troubles
