# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""What the reports have in common: the words for an entry, and everything that went wrong."""

from __future__ import annotations

import collections
import itertools
import typing as t

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterator, Mapping

    from ansible_collections.osops.placement.plugins.plugin_utils._report import Report

Entry = t.Mapping[str, t.Any]

# The lists of `findings.json`, those first that somebody may have to do something about.
LISTS = ("findings", "undecided", "protected")

SKIPPED, FAILED = "skipped", "failed"


def entries(findings: Mapping[str, t.Any]) -> Iterator[Entry]:
    """Yield every entry of `findings.json`."""
    return itertools.chain.from_iterable(findings[key] for key in LISTS)


def subject(entry: Entry) -> str:
    """Return what an entry is about: a uuid, or a name."""
    return str(entry["consumer"] or entry["id"].partition("/")[2])


def server_name(entry: Entry) -> str:
    return str(entry["server"]["name"] or "") if entry["server"] else ""


def hosts(entry: Entry) -> str:
    """Return the hosts whose share is an orphan, or else all that an entry is about."""
    dropped = {provider["root_name"] for provider in entry["providers"] if provider["dropped"]}
    return ", ".join(sorted(dropped or {provider["root_name"] for provider in entry["providers"]}))


def freed(entry: Entry) -> dict[str, int]:
    """Return what the change of an entry would give back, by resource class."""
    sums: collections.Counter[str] = collections.Counter()
    for share in ((entry["change"] or {}).get("frees") or {}).values():
        sums.update(share)
    return dict(sums)


def outcome_of(report: Report) -> dict[str, str]:
    """Return what became of the change of each finding, or would in earnest, by the finding's id."""
    would = "would be " if _only_proven(report) else ""
    return {known["finding"]: f"{would}{known['outcome']}" for known in _outcomes(report)}


def settled_by(report: Report) -> set[str]:
    """Return the ids of the findings whose change was really made."""
    if _only_proven(report):
        return set()
    return {known["finding"] for known in _outcomes(report) if known["outcome"] not in (SKIPPED, FAILED)}


def troubles(report: Report) -> list[str]:
    """Return a sentence for everything that went wrong, the reasons included why nothing may be changed."""
    told = [*report.findings["summary"]["coverage"]["closed_gates"]]
    if report.failure:
        told.append(report.failure)
    elif failed := (report.remediation or {}).get("tally", {}).get(FAILED):
        told.append(f"{failed} changes failed.")
    return told


def _outcomes(report: Report) -> t.Any:
    return (report.remediation or {}).get("outcomes", [])


def _only_proven(report: Report) -> bool:
    return bool((report.remediation or {}).get("check_mode"))
