# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Findings and outcomes as lines for a terminal."""

from __future__ import annotations

import collections
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import (
    format_count,
    make_printable,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.coverage import (
    describe_reading,
    describe_unjudged_hosts,
)
from ansible_collections.osops.placement.plugins.module_utils._findings.entries import get_subject
from ansible_collections.osops.placement.plugins.module_utils._models.change import (
    DELETE_PROVIDERS,
)
from ansible_collections.osops.placement.plugins.module_utils._models.kinds import (
    get_finding_subject,
)
from ansible_collections.osops.placement.plugins.module_utils._models.outcomes import (
    FAILED,
)
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
    KIND_COLUMN,
    MAX_ROWS,
    MAX_UNCHANGED_ROWS,
    OK,
    SKIPPED,
    WARNING,
    Line,
    cut_to_width,
    format_failed_checks,
    format_field,
    format_omitted,
    format_row,
    format_second_column,
    format_server,
    format_write,
    wrap_path,
    wrap_text,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._findings.entries import (
        Entry,
        FindingsDocument,
        Summary,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.documents import (
        ChangeDocument,
        OutcomeDocument,
        ProviderDocument,
        RemediationDocument,
        RestorationDocument,
        RestoredOutcomeDocument,
    )
    from ansible_collections.osops.placement.plugins.plugin_utils._log_correlation import (
        Complaint,
        Explanation,
    )

_MAX_COMPLAINTS = 3

# What a change does to its consumer; what the consumer has after it follows.
_VERBS = {"remove": "keeping", "reduce": "keeping", "rewrite": "giving it", "create": "giving it"}


def format_findings(
    findings: FindingsDocument,
    path: str,
    kinds: Collection[str] | None,
    width: int,
    complaints: Iterable[Complaint] = (),
) -> list[str]:
    """Return the table of a detection: orphans, drift, what is protected and undecided, and totals.

    kinds: those that may be changed; None for any.
    complaints: the records of `nova_log_info`, to be shown with what explains them.
    """
    correlated = correlate_records(findings, complaints)
    log = _make_log_formatter(correlated["explained"], width)
    with_write: list[Entry] = []
    others: list[Entry] = []
    for entry in sorted(findings["findings"], key=_make_sort_key):
        if _is_shown_with_write(entry, kinds):
            with_write.append(entry)
        else:
            others.append(entry)
    endpoint = make_printable(findings["cloud"]["placement_endpoint"])
    title = f"Orphaned allocations in {endpoint} at {findings['finished_at']}"
    lines = ["", *wrap_text(title + _format_version(findings), width)]
    if with_write:
        lines += ["", format_row("KIND", "CONSUMER", "SERVER")]
    for entry in with_write[:MAX_ROWS]:
        lines += _format_with_write(entry, kinds, width)
        lines += log(entry)
    lines += format_omitted(with_write, MAX_ROWS, path, width)
    if others:
        lines += ["", "Drifted, not changed:"]
    for entry in others[:MAX_ROWS]:
        lines += _format_drifted(entry, width, log)
    lines += format_omitted(others, MAX_ROWS, path, width)

    def format_unchanged(title: str, entries: Sequence[Entry], tone: str) -> list[str]:
        unchanged: list[str] = []
        if entries:
            unchanged += ["", title]
        for entry in entries[:MAX_UNCHANGED_ROWS]:
            unchanged += _format_entry(entry, width, tone)
            unchanged += log(entry)
        return unchanged + format_omitted(entries, MAX_UNCHANGED_ROWS, path, width)

    lines += format_unchanged("Undecided, not changed:", findings["undecided"], WARNING)
    lines += format_unchanged("Protected, not changed:", findings["protected"], SKIPPED)
    lines += _format_unexplained(correlated["unexplained"], width)
    return [*lines, "", *_format_totals(findings["summary"], width)]


def _format_version(findings: FindingsDocument) -> str:
    """Return the end of the title, which says what found them; nothing for an older file."""
    version = findings.get("versions", {}).get("collection")
    if not version:
        return ""
    return f", by osops.placement {make_printable(version)}"


def _make_sort_key(entry: Entry) -> tuple[str, str, str]:
    return entry["kind"], _format_dropped_hosts(entry), entry["id"]


def _is_shown_with_write(entry: Entry, kinds: Collection[str] | None) -> bool:
    """Return whether an entry is shown like an orphan, with the write that would be made.

    These are all orphans, and of the drift what a user chose to remediate.
    """
    if entry["verdict"] == "orphaned":
        return True
    if not kinds or entry["kind"] not in kinds:
        return False
    return _has_change(entry)


def _format_drifted(entry: Entry, width: int, log: Callable[[Entry], list[str]]) -> list[str]:
    lines = [*_format_entry(entry, width, CHANGED), *log(entry)]
    if _has_change(entry):
        reason = f"{entry['kind']} is not among the kinds to remediate"
        lines += format_field("could", f"be corrected; not now: {reason}", width)
    return lines


def _format_unexplained(records: Sequence[Complaint], width: int) -> list[str]:
    """Return the complaints that no finding explains."""
    lines: list[str] = []
    if records:
        lines += ["", "Complaints of hosts that no finding explains:"]
    for record in records[:MAX_ROWS]:
        kind = make_printable(record["kind"], KIND_COLUMN - 1)
        # No third column follows, so the name may be longer than the second.
        subject = cut_to_width(get_record_subject(record), min(MAX_NAME, width - KIND_COLUMN))
        lines.append(format_row(kind, subject, ""))
        lines += format_field("log", describe_complaint(record), width)
    if len(records) > MAX_ROWS:
        lines.append(f"… and {len(records) - MAX_ROWS} more")
    return lines


def format_remediation(
    remediation: RemediationDocument | RestorationDocument, journal: str | None, width: int
) -> list[str]:
    """Return the outcomes that have a reason, and the tally."""
    lines = [""]
    # Changes that were made as planned are only counted: there may be thousands.
    explained: list[OutcomeDocument | RestoredOutcomeDocument] = []
    for outcome in remediation["outcomes"]:
        if outcome["reason"]:
            explained.append(outcome)
    for outcome in explained[:MAX_ROWS]:
        lines += _format_outcome(outcome, width)
    lines += format_omitted(explained, MAX_ROWS, "remediation.json", width)
    lines += _format_tally(remediation, width)
    if journal:
        lines += wrap_path(f"Journal: {make_printable(journal)}", width)
    return lines


def _format_outcome(outcome: OutcomeDocument | RestoredOutcomeDocument, width: int) -> list[str]:
    subject = get_finding_subject(outcome["finding"])
    # Of a tree that was restored, the name says more than the uuid of its root.
    if _is_of_restoration(outcome) and outcome["provider"]:
        subject = outcome["provider"]["name"]
    about = make_printable(subject, MAX_NAME)
    tone = ERROR if outcome["outcome"] == FAILED else SKIPPED
    return [
        Line(f"{outcome['outcome']:9} {about}  {outcome['kind']}", tone),
        *format_field("why", outcome["reason"], width),
    ]


def _is_of_restoration(
    outcome: OutcomeDocument | RestoredOutcomeDocument,
) -> t.TypeGuard[RestoredOutcomeDocument]:
    return "provider" in outcome


def _format_tally(remediation: RemediationDocument | RestorationDocument, width: int) -> list[str]:
    tally = remediation["tally"]
    counts = ", ".join(f"{count} {name}" for name, count in tally.items() if count)
    if not counts:
        return ["Nothing to remediate."]
    if remediation["check_mode"]:
        return wrap_text(f"Check mode: nothing was written. Without check mode: {counts}.", width)
    tone = ERROR if tally.get("failed") else OK
    return [Line(line, tone) for line in wrap_text(f"Outcome: {counts}.", width)]


def _format_with_write(entry: Entry, kinds: Collection[str] | None, width: int) -> list[str]:
    """Return an entry with the write that would be made."""
    change, left = entry["change"], explain_unchanged(entry, kinds)
    # Some orphans have no change that is known to be right.
    if change is None:
        return ["", *_format_entry(entry, width, CHANGED)]
    if change["action"] == DELETE_PROVIDERS:
        deletion = f"DELETE /resource_providers for {_list_providers(change['providers'])}"
        return ["", *_format_entry(entry, width, CHANGED), *format_write(deletion, left, width)]
    names: dict[str, str] = {}
    for provider in entry["providers"]:
        names[provider["uuid"]] = make_printable(provider["name"], MAX_NAME)
    lines = ["", Line(_format_heading(entry, width), CHANGED)]
    lines += _format_first_seen(entry, width)
    lines += format_field("host", _format_dropped_hosts(entry), width)
    lines += format_field("frees", _format_allocations(change["frees"], names), width)
    lines += format_field("adds", _format_allocations(change["claims"], names), width)
    lines += format_field("why", entry["reason"], width)
    return lines + format_write(_format_post(change, names), left, width)


def _list_providers(providers: Iterable[ProviderDocument]) -> str:
    return ", ".join(
        f"{make_printable(provider['name'], MAX_NAME)} ({provider['uuid']})"
        for provider in providers
    )


def _format_allocations(
    allocations: Mapping[str, Mapping[str, int]], names: Mapping[str, str]
) -> str:
    parts = []
    for provider, resources in allocations.items():
        parts.append(f"{format_amounts(resources)} of {names.get(provider, provider)}")
    return "; ".join(parts)


def _format_post(change: ChangeDocument, names: Mapping[str, str]) -> str:
    """Return the request that makes a change, and what its consumer has then."""
    consumers = _format_consumer_generation(change)
    if change["partner"]:
        consumers += f" and {_format_consumer_generation(change['partner'])}"
    after = change["after"]["allocations"]
    kept = ", ".join(names.get(provider, provider) for provider in after) or "nothing"
    return f"POST /allocations for {consumers}, {_VERBS[change['action']]} {kept}"


def _make_log_formatter(
    explained: Iterable[Explanation], width: int
) -> Callable[[Entry], list[str]]:
    """Return a function that returns the lines with what hosts said of an entry."""
    records: dict[str, list[Complaint]] = collections.defaultdict(list)
    for pair in explained:
        records[pair["finding"]].append(pair["record"])

    def format_log(entry: Entry) -> list[str]:
        own = records[entry["id"]]
        if not own:
            return []
        text = "; ".join(map(describe_complaint, own[:_MAX_COMPLAINTS]))
        if len(own) > _MAX_COMPLAINTS:
            text += f"; and {len(own) - _MAX_COMPLAINTS} more"
        return format_field("log", text, width)

    return format_log


def _format_consumer_generation(change: ChangeDocument) -> str:
    generation = change["generation"]
    if generation is None:
        return f"{change['consumer']} (new)"
    return f"{change['consumer']} (generation {generation})"


def _has_change(entry: Entry) -> bool:
    """Return whether there is a write that would remediate a finding."""
    return bool(entry["change"])


def _format_entry(entry: Entry, width: int, tone: str) -> list[str]:
    return [
        Line(_format_heading(entry, width), tone),
        *_format_first_seen(entry, width),
        *format_field("why", entry["reason"], width),
    ]


def _format_first_seen(entry: Entry, width: int) -> list[str]:
    """Return since when an earlier run has seen the entry, nothing for a new one."""
    if entry["new"]:
        return []
    return format_field("known", f"since {entry['first_seen']}", width)


def _format_heading(entry: Entry, width: int) -> str:
    """Return the kind, what it is about, and the server's name where there is one."""
    about = format_second_column(get_subject(entry))
    return format_row(entry["kind"], about, format_server(entry, width))


def _format_dropped_hosts(entry: Entry) -> str:
    dropped = {
        make_printable(provider["root_name"], MAX_NAME)
        for provider in entry["providers"]
        if provider["dropped"]
    }
    return ", ".join(sorted(dropped))


def _format_totals(summary: Summary, width: int) -> list[str]:
    verdicts, coverage = summary["verdicts"], summary["coverage"]
    stranded = summary["stranded"]["resource_classes"]
    fractions = summary["stranded"]["share_of_claimed"]
    counts = f"{verdicts['orphaned']} orphaned, {verdicts['drifted']} drifted"
    # "0 of them new" would be no news.
    if verdicts["orphaned"] + verdicts["drifted"]:
        counts += f" ({sum(summary['new'].values())} of them new)"
    if stranded:
        counts += f"; stranded: {format_amounts(stranded, fractions)}"
    if fractions:
        counts += " of all allocations"
    consumers = format_count(coverage["consumers"], "consumer", "consumers")
    providers = format_count(coverage["providers"], "provider", "providers")
    hypervisors = format_count(coverage["hypervisors"], "hypervisor", "hypervisors")
    lines = wrap_text(
        f"Total: {counts}; {verdicts['protected']} protected; "
        f"{verdicts['undecided']} undecided; "
        f"of {consumers} on {providers} and {hypervisors}.",
        width,
    )
    if coverage["left_out"]:
        left = format_count(coverage["left_out"], "more candidate was", "more candidates were")
        lines += wrap_text(f"{left} not looked up, because nothing may be changed.", width)
    lines += wrap_text(make_printable(describe_reading(coverage)), width)
    lines += format_failed_checks(coverage["failed_checks"], width)
    unjudged = make_printable(describe_unjudged_hosts(coverage))
    lines += [Line(line, WARNING) for line in wrap_text(unjudged, width)]
    return lines
