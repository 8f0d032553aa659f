# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Findings and outcomes as lines for a terminal."""

from __future__ import annotations

import collections
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import printable
from ansible_collections.osops.placement.plugins.plugin_utils._log_correlation import complained_of, joined
from ansible_collections.osops.placement.plugins.plugin_utils._report.phrases import NAME, complaint, why_not
from ansible_collections.osops.placement.plugins.plugin_utils._report.units import amounts
from ansible_collections.osops.placement.plugins.plugin_utils._terminal.lines import (
    CHANGED,
    DOUBTFUL,
    FINE,
    ROWS,
    SPARED,
    SPARED_ROWS,
    WRONG,
    Line,
    field,
    gates,
    more,
    path_line,
    server,
    wrapped,
    write,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Collection, Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._findings.entries import Entry

_COMPLAINTS = 3

# What a change does to its consumer, and then what it leaves it with.
_VERBS = {"remove": "keeping", "reduce": "keeping", "rewrite": "giving it", "create": "giving it"}
_TREE = "delete_providers"


def findings_lines(
    findings: Mapping[str, t.Any], path: str, kinds: Collection[str] | None, width: int, complaints: Iterable[Entry] = ()
) -> list[str]:
    """Return the table of what a detection found: orphans, drift, what is protected and undecided, and a line of totals.

    kinds: those that may be changed; None for any.
    complaints: the records of `nova_log_info`, to be shown with what explains them.
    """
    told = joined(findings, complaints)
    log = _log(told["explained"], width)
    found = sorted(findings["findings"], key=lambda entry: (entry["kind"], _host(entry), entry["id"]))
    # What a user chose to have put right is told like an orphan, with the write that would be made.
    orphans = [entry for entry in found if entry["verdict"] == "orphaned" or (kinds and entry["kind"] in kinds and _writes(entry))]
    drifted = [entry for entry in found if entry not in orphans]
    title = f"Orphaned allocations in {printable(findings['cloud']['placement_endpoint'])} at {findings['finished_at']}"
    lines = ["", *wrapped(title, width)]
    if orphans:
        lines += ["", f"{'KIND':20}{'CONSUMER':38}SERVER"]
    for entry in orphans[:ROWS]:
        lines += [*_with_write(entry, kinds, width), *log(entry)]
    lines += more(orphans, ROWS, path, width)
    if drifted:
        lines += ["", "Not as it should be, and left alone:"]
    for entry in drifted[:ROWS]:
        lines += [*_spared(entry, width, CHANGED), *log(entry)]
        if _writes(entry):
            lines += field("could", f"be put right; not now, for {entry['kind']} is not among the kinds to remediate", width)
    lines += more(drifted, ROWS, path, width)
    for title, key, tone in (("Undecided, and left alone:", "undecided", DOUBTFUL), ("Protected, and left alone:", "protected", SPARED)):
        if findings[key]:
            lines += ["", title]
            for entry in findings[key][:SPARED_ROWS]:
                lines += [*_spared(entry, width, tone), *log(entry)]
            lines += more(findings[key], SPARED_ROWS, path, width)
    unexplained = told["unexplained"]
    if unexplained:
        lines += ["", "Complaints of hosts without a finding:"]
    for record in unexplained[:ROWS]:
        about = complained_of(record)
        lines += [
            f"{printable(record['kind'], 19):20}{printable(about, min(NAME, width - 20))}".rstrip(),
            *field("log", complaint(record), width),
        ]
    lines += [f"… and {len(unexplained) - ROWS} more"] if len(unexplained) > ROWS else []
    return [*lines, "", *_totals(findings["summary"], width)]


def remediation_lines(remediation: Mapping[str, t.Any], journal: str | None, width: int) -> list[str]:
    """Return what became of each change that was not simply made, and the tally."""
    lines = [""]
    told_of = [outcome for outcome in remediation["outcomes"] if outcome["reason"]]
    for outcome in told_of[:ROWS]:
        # What is deleted is no consumer's: its finding names the root of the tree.
        provider = outcome.get("provider") or {}
        about = outcome.get("consumer") or printable(provider.get("name") or outcome["finding"].partition("/")[2], NAME)
        tone = WRONG if outcome["outcome"] == "failed" else SPARED
        lines += [Line(f"{outcome['outcome']:9} {about}  {outcome['kind']}", tone), *field("why", outcome["reason"], width)]
    lines += more(told_of, ROWS, "remediation.json", width)
    told = ", ".join(f"{count} {name}" for name, count in remediation["tally"].items() if count)
    if not told:
        lines.append("Nothing to remediate.")
    elif remediation["check_mode"]:
        lines += wrapped(f"Check mode, nothing was written. Without it: {told}.", width)
    else:
        tone = WRONG if remediation["tally"].get("failed") else FINE
        lines += [Line(line, tone) for line in wrapped(f"Outcome: {told}.", width)]
    return [*lines, *(path_line(f"Journal: {printable(journal)}", width) if journal else [])]


def _with_write(entry: Entry, kinds: Collection[str] | None, width: int) -> list[str]:
    change, left = entry["change"], why_not(entry, kinds)
    if change["action"] == _TREE:
        tree = ", ".join(f"{printable(provider['name'], NAME)} ({provider['uuid']})" for provider in change["providers"])
        return ["", *_spared(entry, width, CHANGED), *write(f"DELETE /resource_providers of {tree}", left, width)]
    names = {provider["uuid"]: printable(provider["name"], NAME) for provider in entry["providers"]}

    def told(shares: Mapping[str, Mapping[str, int]]) -> str:
        return "; ".join(f"{amounts(share)} of {names.get(provider, provider)}" for provider, share in shares.items())

    writes = [_at_generation(part) for part in (change, change["partner"]) if part]
    kept = ", ".join(names.get(provider, provider) for provider in change["after"]["allocations"])
    post = f"POST /allocations of {' and '.join(writes)}, {_VERBS[change['action']]} {kept or 'nothing'}"
    return [
        "",
        Line(_head(entry, width), CHANGED),
        *_since(entry, width),
        *field("host", _host(entry), width),
        *field("frees", told(change["frees"]), width),
        *field("claims", told(change["claims"]), width),
        *field("why", entry["reason"], width),
        *write(post, left, width),
    ]


def _log(explained: Iterable[Mapping[str, t.Any]], width: int) -> Callable[[Entry], list[str]]:
    """Return what tells of an entry what hosts said of it."""
    records: dict[str, list[Entry]] = collections.defaultdict(list)
    for pair in explained:
        records[pair["finding"]].append(pair["record"])

    def lines(entry: Entry) -> list[str]:
        own = records[entry["id"]]
        more = f"; and {len(own) - _COMPLAINTS} more" if len(own) > _COMPLAINTS else ""
        return field("log", "; ".join(map(complaint, own[:_COMPLAINTS])) + more, width) if own else []

    return lines


def _at_generation(change: Mapping[str, t.Any]) -> str:
    generation = change["generation"]
    return f"{change['consumer']}, {'new' if generation is None else f'at generation {generation}'}"


def _writes(entry: Entry) -> bool:
    """Tell whether there is a write that would settle a finding."""
    return bool(entry["change"])


def _spared(entry: Entry, width: int, tone: str) -> list[str]:
    return [Line(_head(entry, width), tone), *_since(entry, width), *field("why", entry["reason"], width)]


def _since(entry: Entry, width: int) -> list[str]:
    """Tell of what was known before since when it is."""
    return [] if entry["new"] else field("known", f"since {entry['first_seen']}", width)


def _head(entry: Entry, width: int) -> str:
    """Return the kind, what it is about, and the server's name where there is one."""
    about = entry["consumer"] or printable(entry["id"].partition("/")[2], 37)
    return f"{entry['kind']:20}{about:38}{server(entry, width)}".rstrip()


def _host(entry: Entry) -> str:
    dropped = {printable(provider["root_name"], NAME) for provider in entry["providers"] if provider["dropped"]}
    return ", ".join(sorted(dropped))


def _totals(summary: Mapping[str, t.Any], width: int) -> list[str]:
    verdicts, coverage = summary["verdicts"], summary["coverage"]
    stranded = summary["stranded"]["resource_classes"]
    shares = summary["stranded"]["share_of_claimed"]
    told = f"{verdicts['orphaned']} orphaned, {verdicts['drifted']} not as they should be"
    if verdicts["orphaned"] + verdicts["drifted"]:
        told += f" ({sum(summary['new'].values())} of them new)"
    told += f"; {amounts(stranded, shares)} of all that is claimed are stranded" if stranded else ""
    lines = wrapped(
        f"Total: {told}; {verdicts['protected']} protected; {verdicts['undecided']} undecided; "
        f"of {coverage['consumers']} consumers on {coverage['providers']} providers and {coverage['hypervisors']} hypervisors.",
        width,
    )
    if coverage["left_out"]:
        lines += wrapped(
            f"{coverage['left_out']} more consumers look wrong and were not looked at closely, for nothing may be changed.", width
        )
    return [*lines, *gates(coverage, width)]
