# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings as lines for a terminal: what they are, what would be changed, and figures."""

from __future__ import annotations

import itertools
import typing as t
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ...module_utils._common.text import format_count, make_printable
from ...module_utils._core.findings.coverage import (
    describe_amounts,
    describe_reading,
    describe_unjudged_hosts,
)
from ...module_utils._core.findings.entries import Entry, FindingsDocument, Stranded, Summary
from .._report.log_correlation import Complaint, correlate_records, get_record_subject
from .._report.order import sort_entries
from .._report.phrases import MAX_NAME, describe_complaint, list_quota_lines
from .._report.units import humanize_amounts
from .details import format_drifted, format_entry, format_with_write
from .lines import (
    KIND_COLUMN,
    MAX_IN_FULL,
    MAX_ROWS,
    MAX_UNCHANGED_ROWS,
    SKIPPED,
    WARNING,
    Line,
    cut_to_width,
    format_failed_checks,
    format_field,
    format_omitted,
    format_row,
    get_prose_width,
    wrap_text,
)
from .overview import format_groups, format_overview

if t.TYPE_CHECKING:  # pragma: no cover
    from ...module_utils._core.models.host_documents import GuestsDocument

_MAX_COMPLAINTS = 3
_MAX_PROJECTS = 5


def format_findings(
    findings: FindingsDocument,
    path: str,
    kinds: Collection[str] | None,
    width: int,
    complaints: Iterable[Complaint] = (),
    verbose: bool = False,
    guests: GuestsDocument | None = None,
) -> list[str]:
    """Return the table of a detection: orphans, drift, what is protected and undecided, and totals.

    kinds: those that may be changed; None for any.
    complaints: the records of `nova_log_info`, to be shown with what explains them.
    verbose: whether everything is shown in full, however much it is.
    guests: what hypervisors have left over, which explains complaints, too.
    """
    prose = get_prose_width(width)
    correlated = correlate_records(findings, complaints, guests)
    log = _make_log_formatter(correlated["explained"], prose)
    endpoint = make_printable(findings["cloud"]["placement_endpoint"])
    title = f"Orphaned allocations in {endpoint} at {findings['finished_at']}"
    lines = ["", *wrap_text(title + _format_version(findings), prose)]
    with_write, others = _split_findings(findings["findings"], kinds)
    if verbose or len(findings["findings"]) <= MAX_IN_FULL:
        lines += _format_in_full(with_write, others, path, kinds, prose, log)
    else:
        lines += format_overview([*with_write, *others], path, kinds, width)
        for entry in [*with_write, *others][:MAX_ROWS]:
            lines += log(entry)

    def format_unchanged(title: str, entries: Sequence[Entry], tone: str) -> list[str]:
        if not verbose:
            return [*format_groups(title, entries, prose, tone), *_list_logs(entries, log)]
        unchanged: list[str] = []
        if entries:
            unchanged += ["", title]
        for entry in entries[:MAX_UNCHANGED_ROWS]:
            unchanged += format_entry(entry, prose, tone)
            unchanged += log(entry)
        return unchanged + format_omitted(entries, MAX_UNCHANGED_ROWS, path, prose)

    lines += format_unchanged("Undecided, not changed:", findings["undecided"], WARNING)
    lines += format_unchanged("Protected, not changed:", findings["protected"], SKIPPED)
    lines += _format_unexplained(correlated["unexplained"], prose)
    return [*lines, "", *_format_totals(findings["summary"], prose)]


def _split_findings(
    entries: Iterable[Entry], kinds: Collection[str] | None
) -> tuple[list[Entry], list[Entry]]:
    """Return the findings that are shown with the write that would be made, and the others."""
    ordered = sort_entries(entries)
    with_write = [entry for entry in ordered if _is_shown_with_write(entry, kinds)]
    return with_write, [entry for entry in ordered if not _is_shown_with_write(entry, kinds)]


def _format_in_full(
    with_write: Sequence[Entry],
    others: Sequence[Entry],
    path: str,
    kinds: Collection[str] | None,
    width: int,
    log: Callable[[Entry], list[str]],
) -> list[str]:
    lines: list[str] = []
    if with_write:
        lines += ["", format_row("KIND", "CONSUMER", "SERVER")]
    for entry in with_write[:MAX_ROWS]:
        lines += format_with_write(entry, kinds, width)
        lines += log(entry)
    lines += format_omitted(with_write, MAX_ROWS, path, width)
    if others:
        lines += ["", "Drifted, not changed:"]
    for entry in others[:MAX_ROWS]:
        lines += format_drifted(entry, width, log)
    return lines + format_omitted(others, MAX_ROWS, path, width)


def _list_logs(entries: Iterable[Entry], log: Callable[[Entry], list[str]]) -> list[str]:
    return list(itertools.chain.from_iterable(map(log, entries)))[:MAX_UNCHANGED_ROWS]


def _format_version(findings: FindingsDocument) -> str:
    """Return the end of the title, which says what found them; nothing for an older file."""
    version = findings.get("versions", {}).get("collection")
    if not version:
        return ""
    return f", by osops.placement {make_printable(version)}"


def _is_shown_with_write(entry: Entry, kinds: Collection[str] | None) -> bool:
    """Return whether an entry is shown like an orphan, with the write that would be made.

    These are all orphans, and of the drift what a user chose to remediate.
    """
    if entry["verdict"] == "orphaned":
        return True
    return entry["kind"] in (kinds or ()) and bool(entry["change"])


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


def _make_log_formatter(
    explained: Mapping[str, Sequence[Complaint]], width: int
) -> Callable[[Entry], list[str]]:
    """Return a function that returns the lines with what hosts said of an entry."""

    def format_log(entry: Entry) -> list[str]:
        own = [describe_complaint(record) for record in explained.get(entry["id"], ())]
        return format_field("log", _join_first(own, _MAX_COMPLAINTS), width) if own else []

    return format_log


def _format_totals(summary: Summary, width: int) -> list[str]:
    verdicts, coverage = summary["verdicts"], summary["coverage"]
    stranded = summary["stranded"]["resource_classes"]
    fractions = summary["stranded"]["share_of_claimed"]
    counts = f"{verdicts['orphaned']} orphaned, {verdicts['drifted']} drifted"
    # "0 of them new" would be no news.
    if verdicts["orphaned"] + verdicts["drifted"]:
        counts += f" ({sum(summary['new'].values())} of them new)"
    if stranded:
        counts += f"; stranded: {humanize_amounts(stranded, fractions)}"
    if fractions:
        counts += f" of all allocations in {make_printable(coverage['scope'])}"
    consumers = format_count(coverage["consumers"], "consumer", "consumers")
    providers = format_count(coverage["providers"], "provider", "providers")
    hypervisors = format_count(coverage["hypervisors"], "hypervisor", "hypervisors")
    lines = _format_quota(summary["stranded"], width)
    lines += wrap_text(
        f"Total: {counts}; {verdicts['protected']} protected; "
        f"{verdicts['undecided']} undecided; "
        f"of {consumers} on {providers} and {hypervisors}.",
        width,
    )
    for sentence in coverage.get("unread", []):
        lines += wrap_text(make_printable(sentence), width)
    if coverage["left_out"]:
        left = format_count(coverage["left_out"], "more candidate was", "more candidates were")
        lines += wrap_text(f"{left} not looked up, because nothing may be changed.", width)
    lines += wrap_text(make_printable(describe_reading(coverage)), width)
    lines += wrap_text(make_printable(describe_amounts(coverage)), width)
    lines += format_failed_checks(coverage["failed_checks"], width)
    unjudged = make_printable(describe_unjudged_hosts(coverage))
    lines += [Line(line, WARNING) for line in wrap_text(unjudged, width)]
    return lines


def _format_quota(stranded: Stranded, width: int) -> list[str]:
    """Return what the first projects get back of their quota."""
    projects = list_quota_lines(stranded)
    if not projects:
        return []
    text = _join_first(projects, _MAX_PROJECTS)
    return wrap_text(f"Quota to get back where Nova counts it in Placement: {text}.", width)


def _join_first(texts: Sequence[str], most: int) -> str:
    """Return the first of some texts, and how many more there are."""
    left = [f"and {len(texts) - most} more"] if len(texts) > most else []
    return "; ".join([*texts[:most], *left])
