# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings as lines for a terminal: a few in full, many in one line each, and figures."""

from __future__ import annotations

import collections
import itertools
import typing as t
from collections.abc import Callable, Collection, Iterable, Sequence

from ...module_utils._common.text import format_count, make_printable
from ...module_utils._core.findings.coverage import (
    describe_amounts,
    describe_reading,
    describe_unjudged_hosts,
)
from ...module_utils._core.findings.entries import (
    Coverage,
    Entry,
    FindingsDocument,
    Stranded,
    Summary,
    get_subject,
)
from ...module_utils._core.models.change import DELETE_PROVIDERS
from ...module_utils._core.models.kinds import KINDS
from ...module_utils._core.models.placement import add_amounts
from .._report.log_correlation import Complaint, correlate_records, get_record_subject
from .._report.phrases import (
    MAX_NAME,
    describe_complaint,
    get_server_name,
    list_quota_lines,
)
from .._report.report import Report
from .._report.units import humanize_amounts
from .._report.view import Item, list_items, make_natural_key
from .details import describe_effect, format_drifted, format_entry, format_with_write, map_names
from .lines import (
    CHANGED,
    KIND_COLUMN,
    MAX_IN_FULL,
    MAX_ROWS,
    MAX_UNCHANGED_ROWS,
    SKIPPED,
    WARNING,
    cut_to_width,
    format_failed_checks,
    format_field,
    format_left_alone,
    format_omitted,
    format_reasons,
    format_remark,
    format_row,
    get_prose_width,
    wrap,
    wrap_path,
    wrap_text,
)
from .table import SHORT_UUID, Column, Row, format_table, is_cut

if t.TYPE_CHECKING:  # pragma: no cover
    from ...module_utils._core.models.codec import Json

    # Returns the lines with what hosts said of an entry.
    _Log = Callable[[Entry], list[str]]

_MAX_COMPLAINTS = 3
_MAX_PROJECTS = 5
_MAX_HOSTS = 10

_SUBJECT = "CONSUMER"
_HOST, _FREES = Column("HOST", least=9, comfort=24), Column("FREES", least=13, comfort=34)
_COLUMNS = (
    Column("KIND"),
    _HOST,
    _FREES,
    Column("AGE"),
    Column("SERVER", least=6, comfort=9),
    Column(_SUBJECT, short=SHORT_UUID),
    Column("CHANGE", least=7, comfort=24),
)

_MEANINGS = {kind.name: kind.meaning for kind in KINDS}
# The units of an age, from the largest one, each with its seconds.
_AGE_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))


def format_findings(
    findings: FindingsDocument,
    path: str,
    kinds: Collection[str] | None,
    width: int,
    complaints: Iterable[Complaint] = (),
    verbose: bool = False,
    guests: Json | None = None,
) -> list[str]:
    """Return the table of a detection: orphans, drift, what is protected and undecided, and totals.

    kinds: those that may be changed; None for any.
    complaints: the records of `nova_log_info`, to be shown with what explains them.
    verbose: whether everything is shown in full, however much it is.
    guests: what hypervisors have left over, which explains complaints, too.
    """
    prose = get_prose_width(width)
    correlated = correlate_records(findings, complaints, guests)

    def log(entry: Entry) -> list[str]:
        records = correlated["explained"].get(entry["id"], ())
        return format_field(
            "log", _join_first(map(describe_complaint, records), _MAX_COMPLAINTS), prose
        )

    endpoint = make_printable(findings["cloud"]["placement_endpoint"])
    title = f"Orphaned allocations in {endpoint} at {findings['finished_at']}"
    lines = ["", *wrap_text(title + _format_version(findings), prose)]
    with_write, others = _split_items(list_items(Report(findings, kinds), "findings"), kinds)
    if verbose or len(findings["findings"]) <= MAX_IN_FULL:
        lines += _format_in_full(with_write, others, path, prose, log)
    else:
        lines += _format_overview([*with_write, *others], path, width)
        for item in [*with_write, *others][:MAX_ROWS]:
            lines += log(item.entry)
    for title, entries, tone in (
        ("Undecided, not changed:", findings["undecided"], WARNING),
        ("Protected, not changed:", findings["protected"], SKIPPED),
    ):
        if verbose:
            lines += _format_unchanged(title, entries, path, prose, tone, log)
        else:
            lines += format_reasons(entries, _name_entry, prose, title, tone)
            lines += list(itertools.chain.from_iterable(map(log, entries)))[:MAX_UNCHANGED_ROWS]
    lines += _format_unexplained(correlated["unexplained"], prose)
    return [*lines, "", *_format_totals(findings["summary"], prose)]


def _format_version(findings: FindingsDocument) -> str:
    """Return the end of the title, which says what found them; nothing for an older file."""
    version = findings.get("versions", {}).get("collection")
    return f", by osops.placement {make_printable(version)}" if version else ""


def _split_items(
    items: Iterable[Item], kinds: Collection[str] | None
) -> tuple[list[Item], list[Item]]:
    """Return the findings that are shown with the write that would be made, and the others.

    The first are all orphans, and of the drift what a user chose to remediate.
    """
    with_write: list[Item] = []
    others: list[Item] = []
    for item in items:
        chosen = item.entry["kind"] in (kinds or ()) and bool(item.entry["change"])
        (with_write if chosen or item.entry["verdict"] == "orphaned" else others).append(item)
    return with_write, others


def _format_in_full(
    with_write: Sequence[Item], others: Sequence[Item], path: str, width: int, log: _Log
) -> list[str]:
    lines: list[str] = []
    if with_write:
        lines += ["", format_row("KIND", "CONSUMER", "SERVER")]
    for item in with_write[:MAX_ROWS]:
        lines += [*format_with_write(item, width), *log(item.entry)]
    lines += format_omitted(with_write, MAX_ROWS, path, width)
    if others:
        lines += ["", "Drifted, not changed:"]
    for item in others[:MAX_ROWS]:
        lines += format_drifted(item.entry, width, log)
    return lines + format_omitted(others, MAX_ROWS, path, width)


def _format_unchanged(
    title: str, entries: Sequence[Entry], path: str, width: int, tone: str, log: _Log
) -> list[str]:
    """Return entries that are not changed in full; nothing without entries."""
    lines = ["", title] if entries else []
    for entry in entries[:MAX_UNCHANGED_ROWS]:
        lines += [*format_entry(entry, width, tone), *log(entry)]
    return lines + format_omitted(entries, MAX_UNCHANGED_ROWS, path, width)


def _format_overview(items: Sequence[Item], path: str, width: int) -> list[str]:
    """Return a line for each finding, and what they add up to by kind and by host."""
    prose, shown_path = get_prose_width(width), make_printable(path)
    rows = [_make_row(item) for item in items[:MAX_ROWS]]
    lines = ["", *format_table(_COLUMNS, rows, width)]
    lines += format_omitted(items, MAX_ROWS, path, prose)
    if is_cut(_COLUMNS, rows, width, _SUBJECT):
        lines += wrap_path(f"Whole ids: {shown_path}, or a wider terminal.", prose)
    mended = sum(bool(item.entry.get("commands")) for item in items)
    if mended:
        count = format_count(mended, "finding", "findings")
        lines += wrap_path(f"Commands that fix {count}: {shown_path}, or -v.", prose)
    lines += format_left_alone([item.left for item in items], prose)
    entries = [item.entry for item in items]
    return lines + _format_kinds(entries, prose) + _format_hosts(entries, width)


def _make_row(item: Item) -> Row:
    hosts = ", ".join(make_printable(host, MAX_NAME) for host in item.hosts)
    subject = make_printable(item.subject, MAX_NAME)
    change = "none"
    if item.entry["change"]:
        change = describe_effect(item.entry["change"], map_names(item.entry))
    cells = (
        make_printable(item.entry["kind"]),
        hosts or "-",
        humanize_amounts(item.frees) or "-",
        _describe_age(item.entry["age_seconds"]),
        make_printable(item.server, MAX_NAME) or "-",
        # What is not about a consumer, such as a service, has the name of its host.
        "-" if subject == hosts else subject,
        "not now" if item.left else change,
    )
    return Row(cells, CHANGED)


def _format_kinds(entries: Iterable[Entry], width: int) -> list[str]:
    """Return how many findings there are of each kind, and what the kind means."""
    counts = collections.Counter(entry["kind"] for entry in entries)
    column = max(len(kind) for kind in counts)
    digits = max(len(str(count)) for count in counts.values())
    lines = [""]
    for kind, count in counts.items():
        start = f"{kind:{column}}  {count:{digits}}  "
        meaning = _MEANINGS.get(kind, "a kind of another version")
        lines += wrap(meaning, width, start, " " * len(start))
    return lines


def _format_hosts(entries: Sequence[Entry], width: int) -> list[str]:
    """Return what the hosts lose that lose most, if there are several."""
    freed: dict[str, dict[str, int]] = {}
    for entry in entries:
        for host, amounts in _sum_freed_by_host(entry).items():
            add_amounts(freed.setdefault(host, {}), amounts)
    hosts = sorted(freed, key=make_natural_key)
    hosts.sort(key=lambda host: _rank_amounts(freed[host]), reverse=True)
    if len(hosts) < 2:
        return []
    rows = []
    for host in hosts[:_MAX_HOSTS]:
        rows.append(Row((make_printable(host, MAX_NAME), humanize_amounts(freed[host]))))
    lines = ["", *format_table((_HOST, _FREES), rows, width)]
    if len(hosts) > _MAX_HOSTS:
        lines.append(f"and {len(hosts) - _MAX_HOSTS} more hosts")
    return lines


def _sum_freed_by_host(entry: Entry) -> dict[str, dict[str, int]]:
    change = entry["change"]
    if change is None or change["action"] == DELETE_PROVIDERS:
        return {}
    hosts = {provider["uuid"]: provider["root_name"] for provider in entry["providers"]}
    freed: dict[str, dict[str, int]] = {}
    for provider, amounts in change["frees"].items():
        add_amounts(freed.setdefault(hosts.get(provider, provider), {}), amounts)
    return freed


def _rank_amounts(amounts: dict[str, int]) -> tuple[int, int, int]:
    processors = amounts.get("VCPU", 0) + amounts.get("PCPU", 0)
    return processors, amounts.get("MEMORY_MB", 0), amounts.get("DISK_GB", 0)


def _describe_age(seconds: int | None) -> str:
    """Return an age as `45s`, `3m`, `5h` or `12d`; a dash where it is not known."""
    if seconds is None:
        return "-"
    for unit, size in _AGE_UNITS:
        # One day and a half is 36h, which says more than 1d.
        if seconds >= 2 * size or size == 1:
            return f"{seconds // size}{unit}"
    return "-"


def _name_entry(entry: Entry) -> str:
    """Return the name of the server of an entry with the UUID of its consumer."""
    name = make_printable(get_server_name(entry), MAX_NAME)
    return f"{name} {make_printable(get_subject(entry), MAX_NAME)}".strip()


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
        # Files of older versions do not say what their figures are about.
        counts += f" of all allocations in {coverage.get('scope', 'the cloud')}"
    consumers = format_count(coverage["consumers"], "consumer", "consumers")
    providers = format_count(coverage["providers"], "provider", "providers")
    hypervisors = format_count(coverage["hypervisors"], "hypervisor", "hypervisors")
    total = (
        f"Total: {counts}; {verdicts['protected']} protected; "
        f"{verdicts['undecided']} undecided; "
        f"of {consumers} on {providers} and {hypervisors}."
    )
    lines: list[str] = []
    for sentence in (_describe_quota(summary["stranded"]), total, *_describe_coverage(coverage)):
        lines += format_remark(sentence, width)
    lines += format_failed_checks(coverage["failed_checks"], width)
    return lines + format_remark(describe_unjudged_hosts(coverage), width, WARNING)


def _describe_coverage(coverage: Coverage) -> list[str]:
    """Return what was and was not read."""
    sentences = list(coverage.get("unread", []))
    if coverage["left_out"]:
        left = format_count(coverage["left_out"], "more candidate was", "more candidates were")
        sentences.append(f"{left} not looked up, because nothing may be changed.")
    return [*sentences, describe_reading(coverage), describe_amounts(coverage)]


def _describe_quota(stranded: Stranded) -> str:
    """Return what the first projects get back of their quota; nothing for none."""
    projects = _join_first(list_quota_lines(stranded), _MAX_PROJECTS)
    if not projects:
        return ""
    return f"Quota to get back where Nova counts it in Placement: {projects}."


def _join_first(texts: Iterable[str], most: int) -> str:
    """Return the first of some texts, and how many more there are."""
    texts = list(texts)
    left = [f"and {len(texts) - most} more"] if len(texts) > most else []
    return "; ".join([*texts[:most], *left])
