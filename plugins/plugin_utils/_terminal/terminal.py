# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Findings and outcomes as lines for a terminal."""

from __future__ import annotations

import collections
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import make_printable
from ansible_collections.osops.placement.plugins.plugin_utils._log_correlation import (
    correlate_records,
    get_record_subject,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.phrases import (
    MAX_NAME,
    describe_complaint,
    explain_unchanged,
)
from ansible_collections.osops.placement.plugins.plugin_utils._report.units import format_amounts
from ansible_collections.osops.placement.plugins.plugin_utils._terminal.lines import (
    CHANGED,
    ERROR,
    MAX_ROWS,
    MAX_UNCHANGED_ROWS,
    OK,
    SKIPPED,
    WARNING,
    Line,
    format_coverage,
    format_field,
    format_omitted,
    format_server,
    format_write,
    wrap_path,
    wrap_text,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Collection, Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._findings.entries import Entry

_MAX_COMPLAINTS = 3

# What a change does to its consumer, and then what it leaves it with.
_VERBS = {"remove": "keeping", "reduce": "keeping", "rewrite": "giving it", "create": "giving it"}
_DELETE_PROVIDERS = "delete_providers"


def format_findings(
    findings: Mapping[str, t.Any],
    path: str,
    kinds: Collection[str] | None,
    width: int,
    complaints: Iterable[Entry] = (),
) -> list[str]:
    """Return the table of what a detection found: orphans, drift, what is protected and undecided, and a line of totals.

    kinds: those that may be changed; None for any.
    complaints: the records of `nova_log_info`, to be shown with what explains them.
    """
    told = correlate_records(findings, complaints)
    log = _make_log_formatter(told["explained"], width)
    found = sorted(
        findings["findings"],
        key=lambda entry: (entry["kind"], _format_dropped_hosts(entry), entry["id"]),
    )
    # What a user chose to have put right is told like an orphan, with the write that would be made.
    orphans = [
        entry
        for entry in found
        if entry["verdict"] == "orphaned"
        or (kinds and entry["kind"] in kinds and _has_change(entry))
    ]
    drifted = [entry for entry in found if entry not in orphans]
    title = f"Orphaned allocations in {make_printable(findings['cloud']['placement_endpoint'])} at {findings['finished_at']}"
    lines = ["", *wrap_text(title, width)]
    if orphans:
        lines += ["", f"{'KIND':20}{'CONSUMER':38}SERVER"]
    for entry in orphans[:MAX_ROWS]:
        lines += [*_format_with_write(entry, kinds, width), *log(entry)]
    lines += format_omitted(orphans, MAX_ROWS, path, width)
    if drifted:
        lines += ["", "Not as it should be, and left alone:"]
    for entry in drifted[:MAX_ROWS]:
        lines += [*_format_entry(entry, width, CHANGED), *log(entry)]
        if _has_change(entry):
            lines += format_field(
                "could",
                f"be put right; not now, for {entry['kind']} is not among the kinds to remediate",
                width,
            )
    lines += format_omitted(drifted, MAX_ROWS, path, width)
    for title, key, tone in (
        ("Undecided, and left alone:", "undecided", WARNING),
        ("Protected, and left alone:", "protected", SKIPPED),
    ):
        if findings[key]:
            lines += ["", title]
            for entry in findings[key][:MAX_UNCHANGED_ROWS]:
                lines += [*_format_entry(entry, width, tone), *log(entry)]
            lines += format_omitted(findings[key], MAX_UNCHANGED_ROWS, path, width)
    unexplained = told["unexplained"]
    if unexplained:
        lines += ["", "Complaints of hosts without a finding:"]
    for record in unexplained[:MAX_ROWS]:
        about = get_record_subject(record)
        lines += [
            f"{make_printable(record['kind'], 19):20}{make_printable(about, min(MAX_NAME, width - 20))}".rstrip(),
            *format_field("log", describe_complaint(record), width),
        ]
    lines += [f"… and {len(unexplained) - MAX_ROWS} more"] if len(unexplained) > MAX_ROWS else []
    return [*lines, "", *_format_totals(findings["summary"], width)]


def format_remediation(
    remediation: Mapping[str, t.Any], journal: str | None, width: int
) -> list[str]:
    """Return what became of each change that was not simply made, and the tally."""
    lines = [""]
    told_of = [outcome for outcome in remediation["outcomes"] if outcome["reason"]]
    for outcome in told_of[:MAX_ROWS]:
        # What is deleted is no consumer's: its finding names the root of the tree.
        provider = outcome.get("provider") or {}
        about = outcome.get("consumer") or make_printable(
            provider.get("name") or outcome["finding"].partition("/")[2], MAX_NAME
        )
        tone = ERROR if outcome["outcome"] == "failed" else SKIPPED
        lines += [
            Line(f"{outcome['outcome']:9} {about}  {outcome['kind']}", tone),
            *format_field("why", outcome["reason"], width),
        ]
    lines += format_omitted(told_of, MAX_ROWS, "remediation.json", width)
    told = ", ".join(f"{count} {name}" for name, count in remediation["tally"].items() if count)
    if not told:
        lines.append("Nothing to remediate.")
    elif remediation["check_mode"]:
        lines += wrap_text(f"Check mode, nothing was written. Without it: {told}.", width)
    else:
        tone = ERROR if remediation["tally"].get("failed") else OK
        lines += [Line(line, tone) for line in wrap_text(f"Outcome: {told}.", width)]
    return [*lines, *(wrap_path(f"Journal: {make_printable(journal)}", width) if journal else [])]


def _format_with_write(entry: Entry, kinds: Collection[str] | None, width: int) -> list[str]:
    change, left = entry["change"], explain_unchanged(entry, kinds)
    if change["action"] == _DELETE_PROVIDERS:
        tree = ", ".join(
            f"{make_printable(provider['name'], MAX_NAME)} ({provider['uuid']})"
            for provider in change["providers"]
        )
        return [
            "",
            *_format_entry(entry, width, CHANGED),
            *format_write(f"DELETE /resource_providers of {tree}", left, width),
        ]
    names = {
        provider["uuid"]: make_printable(provider["name"], MAX_NAME)
        for provider in entry["providers"]
    }

    def told(shares: Mapping[str, Mapping[str, int]]) -> str:
        return "; ".join(
            f"{format_amounts(share)} of {names.get(provider, provider)}"
            for provider, share in shares.items()
        )

    writes = [_format_consumer_generation(part) for part in (change, change["partner"]) if part]
    kept = ", ".join(names.get(provider, provider) for provider in change["after"]["allocations"])
    post = f"POST /allocations of {' and '.join(writes)}, {_VERBS[change['action']]} {kept or 'nothing'}"
    return [
        "",
        Line(_format_heading(entry, width), CHANGED),
        *_format_first_seen(entry, width),
        *format_field("host", _format_dropped_hosts(entry), width),
        *format_field("frees", told(change["frees"]), width),
        *format_field("claims", told(change["claims"]), width),
        *format_field("why", entry["reason"], width),
        *format_write(post, left, width),
    ]


def _make_log_formatter(
    explained: Iterable[Mapping[str, t.Any]], width: int
) -> Callable[[Entry], list[str]]:
    """Return what tells of an entry what hosts said of it."""
    records: dict[str, list[Entry]] = collections.defaultdict(list)
    for pair in explained:
        records[pair["finding"]].append(pair["record"])

    def lines(entry: Entry) -> list[str]:
        own = records[entry["id"]]
        more = f"; and {len(own) - _MAX_COMPLAINTS} more" if len(own) > _MAX_COMPLAINTS else ""
        return (
            format_field(
                "log", "; ".join(map(describe_complaint, own[:_MAX_COMPLAINTS])) + more, width
            )
            if own
            else []
        )

    return lines


def _format_consumer_generation(change: Mapping[str, t.Any]) -> str:
    generation = change["generation"]
    return f"{change['consumer']}, {'new' if generation is None else f'at generation {generation}'}"


def _has_change(entry: Entry) -> bool:
    """Tell whether there is a write that would settle a finding."""
    return bool(entry["change"])


def _format_entry(entry: Entry, width: int, tone: str) -> list[str]:
    return [
        Line(_format_heading(entry, width), tone),
        *_format_first_seen(entry, width),
        *format_field("why", entry["reason"], width),
    ]


def _format_first_seen(entry: Entry, width: int) -> list[str]:
    """Tell of what was known before since when it is."""
    return [] if entry["new"] else format_field("known", f"since {entry['first_seen']}", width)


def _format_heading(entry: Entry, width: int) -> str:
    """Return the kind, what it is about, and the server's name where there is one."""
    about = entry["consumer"] or make_printable(entry["id"].partition("/")[2], 37)
    return f"{entry['kind']:20}{about:38}{format_server(entry, width)}".rstrip()


def _format_dropped_hosts(entry: Entry) -> str:
    dropped = {
        make_printable(provider["root_name"], MAX_NAME)
        for provider in entry["providers"]
        if provider["dropped"]
    }
    return ", ".join(sorted(dropped))


def _format_totals(summary: Mapping[str, t.Any], width: int) -> list[str]:
    verdicts, coverage = summary["verdicts"], summary["coverage"]
    stranded = summary["stranded"]["resource_classes"]
    shares = summary["stranded"]["share_of_claimed"]
    told = f"{verdicts['orphaned']} orphaned, {verdicts['drifted']} not as they should be"
    if verdicts["orphaned"] + verdicts["drifted"]:
        told += f" ({sum(summary['new'].values())} of them new)"
    told += (
        f"; {format_amounts(stranded, shares)} of all that is claimed are stranded"
        if stranded
        else ""
    )
    lines = wrap_text(
        f"Total: {told}; {verdicts['protected']} protected; {verdicts['undecided']} undecided; "
        f"of {coverage['consumers']} consumers on {coverage['providers']} providers and {coverage['hypervisors']} hypervisors.",
        width,
    )
    if coverage["left_out"]:
        lines += wrap_text(
            f"{coverage['left_out']} more consumers look wrong and were not looked at closely, for nothing may be changed.",
            width,
        )
    return [*lines, *format_coverage(coverage, width)]
