# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What the reports have in common: the words for an entry, and everything that went wrong."""

from __future__ import annotations

import collections
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import make_printable
from ansible_collections.osops.placement.plugins.module_utils._models.change import FAILED, SKIPPED
from ansible_collections.osops.placement.plugins.plugin_utils._report.units import format_amounts

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._findings.entries import Entry
    from ansible_collections.osops.placement.plugins.plugin_utils._report.report import Report

# The longest name that is shown whole.
MAX_NAME = 40

# What a host says by each kind of complaint.
_COMPLAINT_TEXTS = {
    "not_in_database": "it is not found in the database",
    "not_managed": "it is not managed here",
    "moved_away": "it has moved to <to>",
    "power_state_counts": "servers in the database: <database>, on the hypervisor: <hypervisor>",
    "provider_conflict": "another resource provider has this name",
    "rpc_version_cap": "version <requested> was requested where <cap> is the cap",
}


def get_server_name(entry: Entry) -> str:
    return str(entry["server"]["name"] or "") if entry["server"] else ""


def list_hosts(entry: Entry) -> list[str]:
    """Return the hosts whose share is an orphan, or else all that an entry is about."""
    about = [provider for provider in entry["providers"] if provider["dropped"]] or entry[
        "providers"
    ]
    return sorted({provider["root_name"] for provider in about}) or (
        [entry["service"]["host"]] if entry["service"] else []
    )


def sum_freed(entry: Entry) -> dict[str, int]:
    """Return what the change of an entry would give back, by resource class."""
    sums: collections.Counter[str] = collections.Counter()
    for share in ((entry["change"] or {}).get("frees") or {}).values():
        sums.update(share)
    return dict(sums)


def explain_unchanged(entry: Entry, kinds: Collection[str] | None) -> str:
    """Return why the change of a finding is not made, empty when it is; `kinds` are those that may be changed, None for any."""
    if kinds is not None and entry["kind"] not in kinds:
        return f"{entry['kind']} is not among the kinds to remediate"
    # What version 1.0 wrote does not wait.
    return str(entry.get("waiting") or "") if entry["selected"] else "it is not selected"


def describe_complaint(record: Mapping[str, t.Any]) -> str:
    """Return who complained of what, how often and until when."""
    said = _COMPLAINT_TEXTS.get(record["kind"], record["kind"])
    facts = {
        "to": record.get("other_host") or "no host",
        **(record.get("counts") or {}),
        **(record.get("versions") or {}),
    }
    for name, fact in facts.items():
        said = said.replace(f"<{name}>", str(fact))
    claimed = f", holding {format_amounts(record['amounts'])}" if record.get("amounts") else ""
    last = f", last at {record['last_seen']}" if record.get("last_seen") else ""
    return f"{make_printable(record['host'], MAX_NAME)} says: {said}{claimed} ({record.get('count', 1)} times{last})"


def map_outcomes(report: Report) -> dict[str, str]:
    """Return what became of the change of each finding, or would in earnest, by the finding's id."""
    would = "would be " if _is_check_mode(report) else ""
    return {known["finding"]: f"{would}{known['outcome']}" for known in _list_outcomes(report)}


def list_remediated_findings(report: Report) -> set[str]:
    """Return the ids of the findings whose change was really made."""
    if _is_check_mode(report):
        return set()
    return {
        known["finding"]
        for known in _list_outcomes(report)
        if known["outcome"] not in (SKIPPED, FAILED)
    }


def list_troubles(report: Report) -> list[str]:
    """Return a sentence for everything that went wrong, the reasons included why nothing may be changed."""
    told = [*report.findings["summary"]["coverage"]["failed_checks"]]
    if report.failure:
        told.append(report.failure)
    elif failed := (report.remediation or {}).get("tally", {}).get(FAILED):
        told.append(f"{failed} changes failed.")
    return told


def _list_outcomes(report: Report) -> t.Any:
    return (report.remediation or {}).get("outcomes", [])


def _is_check_mode(report: Report) -> bool:
    return bool((report.remediation or {}).get("check_mode"))
