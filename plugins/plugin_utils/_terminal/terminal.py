# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings as lines for a terminal: a few in full, many in one line each, and figures."""

from __future__ import annotations

import collections
import itertools
import typing as t
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

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
from ...module_utils._core.models.codec import Json
from ...module_utils._core.models.kinds import KINDS
from ...module_utils._core.models.placement import add_amounts
from .._report.log_correlation import (
    Complaint,
    correlate_records,
    describe_complaint,
    get_record_subject,
)
from .._report.phrases import (
    MAX_NAME,
    explain_kind,
    get_server_name,
    humanize_amounts,
    list_parts,
    list_quota_lines,
    map_freed,
)
from .._report.view import Item, Report, list_items, make_natural_key
from .changes import describe_effect, map_names
from .lines import (
    CHANGED,
    KIND_COLUMN,
    MAX_IN_FULL,
    MAX_ROWS,
    MAX_UNCHANGED_ROWS,
    SHORT_UUID,
    SKIPPED,
    WARNING,
    Column,
    Line,
    Row,
    cut_to_width,
    format_command_field,
    format_failed_checks,
    format_field,
    format_left_alone,
    format_omitted,
    format_reasons,
    format_remark,
    format_row,
    format_table,
    format_write,
    get_prose_width,
    is_cut,
    wrap_path,
    wrap_text,
)

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
    # The file of an older version does not say what made it.
    version = findings.get("versions", {}).get("collection")
    title += f", by osops.placement {make_printable(version)}" if version else ""
    lines = ["", *wrap_text(title, prose)]
    # Its exit status may be 0: whoever reads nothing else reads the first line.
    if describe_unjudged_hosts(findings["summary"]["coverage"]):
        lines.insert(1, Line("PART OF THE CLOUD WAS NOT JUDGED", WARNING))
    items = list_items(Report(findings, kinds), "findings")
    items.sort(key=lambda item: not _is_written(item, kinds))
    if verbose or len(items) <= MAX_IN_FULL:
        lines += _format_in_full(items, kinds, path, prose, log)
    else:
        lines += _format_overview(items, path, width)
        lines += itertools.chain.from_iterable(log(item.entry) for item in items[:MAX_ROWS])
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


def _is_written(item: Item, kinds: Collection[str] | None) -> bool:
    """Return whether a finding is shown with the write that would be made.

    All orphans are, and of the drift what a user chose to remediate.
    """
    chosen = item.entry["kind"] in (kinds or ()) and bool(item.entry["change"])
    return chosen or item.entry["verdict"] == "orphaned"


# --- in full: several lines for each, with its proof and the write that would be made


def _format_in_full(
    items: Sequence[Item], kinds: Collection[str] | None, path: str, width: int, log: _Log
) -> list[str]:
    with_write = [item for item in items if _is_written(item, kinds)]
    others = items[len(with_write) :]
    lines = ["", format_row("KIND", "CONSUMER", "SERVER", width)] if with_write else []
    for item in with_write[:MAX_ROWS]:
        lines += [*_format_with_write(item, width), *log(item.entry)]
    lines += format_omitted(with_write, MAX_ROWS, path, width)
    lines += ["", "Drifted, not changed:"] if others else []
    for item in others[:MAX_ROWS]:
        lines += _format_drifted(item.entry, width, log)
    return lines + format_omitted(others, MAX_ROWS, path, width)


def _format_unchanged(
    title: str, entries: Sequence[Entry], path: str, width: int, tone: str, log: _Log
) -> list[str]:
    """Return entries that are not changed in full; nothing without entries."""
    lines = ["", title] if entries else []
    for entry in entries[:MAX_UNCHANGED_ROWS]:
        lines += [*_format_entry(entry, width, tone), *log(entry)]
    return lines + format_omitted(entries, MAX_UNCHANGED_ROWS, path, width)


def _format_drifted(entry: Entry, width: int, log: _Log) -> list[str]:
    """Return an entry whose kind is not among those that may be changed."""
    lines = [*_format_entry(entry, width, CHANGED), *log(entry)]
    # Each command is on one line, to be copied.
    lines += [format_command_field("fix", command) for command in entry.get("commands", [])]
    if entry["change"]:
        reason = explain_kind(entry["kind"])
        lines += format_field("could", f"be corrected; not now: {reason}", width)
    return lines


def _format_with_write(item: Item, width: int) -> list[str]:
    """Return a finding with the write that would be made."""
    entry, fields, write = item.entry, {}, ""
    change, names = entry["change"], map_names(entry)
    # Some orphans have no change that is known to be right.
    if change and change["action"] == DELETE_PROVIDERS:
        deleted = change["providers"]
        named = [f"{make_printable(each['name'], MAX_NAME)} ({each['uuid']})" for each in deleted]
        write = f"DELETE /resource_providers for {', '.join(named)}"
    elif change:
        dropped = {each["root_name"] for each in entry["providers"] if each["dropped"]}
        hosts = {make_printable(host, MAX_NAME) for host in dropped}
        fields = {
            "host": ", ".join(sorted(hosts)),
            "frees": _format_allocations(change["frees"], names),
            "adds": _format_allocations(change["claims"], names),
        }
        parts = [
            f"{each['consumer']} ({_describe_generation(each)})" for each in list_parts(change)
        ]
        effect = describe_effect(change, names)
        write = f"POST /allocations for {' and '.join(parts)}: {effect}"
    lines = ["", *_format_entry(entry, width, CHANGED, fields)]
    return lines + (format_write(write, item.left, width) if write else [])


def _format_entry(
    entry: Entry, width: int, tone: str, fields: Mapping[str, str] | None = None
) -> list[str]:
    """Return an entry with its reason, and before it the fields that are not empty."""
    heading = format_row(entry["kind"], get_subject(entry), get_server_name(entry), width)
    # An earlier run has seen it.
    known = "" if entry["new"] else f"since {entry['first_seen']}"
    lines: list[str] = [Line(heading, tone)]
    for label, text in {"known": known, **(fields or {}), "why": entry["reason"]}.items():
        lines += format_field(label, text, width)
    return lines


def _format_allocations(
    allocations: Mapping[str, Mapping[str, int]], names: Mapping[str, str]
) -> str:
    pairs = allocations.items()
    return "; ".join(f"{humanize_amounts(each)} on {names.get(uuid, uuid)}" for uuid, each in pairs)


def _describe_generation(change: Json) -> str:
    generation = change["generation"]
    return "new" if generation is None else f"generation {generation}"


# --- as a table, with sums


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
    change = item.entry["change"]
    effect = describe_effect(change, map_names(item.entry)) if change else "none"
    cells = (
        make_printable(item.entry["kind"]),
        hosts or "-",
        humanize_amounts(item.frees) or "-",
        _describe_age(item.entry["age_seconds"]),
        make_printable(item.server, MAX_NAME) or "-",
        # What is not about a consumer, such as a service, has the name of its host.
        "-" if subject == hosts else subject,
        "not now" if item.left else effect,
    )
    return Row(cells, CHANGED)


def _describe_age(seconds: int | None) -> str:
    """Return an age as `45s`, `3m`, `5h` or `12d`; a dash where it is not known."""
    if seconds is None:
        return "-"
    # One day and a half is 36h, which says more than 1d.
    fitting = (pair for pair in _AGE_UNITS if seconds >= 2 * pair[1])
    unit, size = next(fitting, _AGE_UNITS[-1])
    return f"{seconds // size}{unit}"


def _format_kinds(entries: Iterable[Entry], width: int) -> list[str]:
    """Return how many findings there are of each kind, and what the kind means."""
    counts = collections.Counter(entry["kind"] for entry in entries)
    column, digits = max(map(len, counts)), max(len(str(count)) for count in counts.values())
    lines = [""]
    for kind, count in counts.items():
        start = f"{kind:{column}}  {count:{digits}}  "
        meaning = _MEANINGS.get(kind, "a kind of another version")
        lines += wrap_text(meaning, width, start, " " * len(start))
    return lines


def _format_hosts(entries: Sequence[Entry], width: int) -> list[str]:
    """Return what the hosts lose that lose most, if there are several."""
    freed: dict[str, dict[str, int]] = {}
    for entry in entries:
        hosts = {provider["uuid"]: provider["root_name"] for provider in entry["providers"]}
        for provider, amounts in map_freed(entry).items():
            add_amounts(freed.setdefault(hosts.get(provider, provider), {}), amounts)
    if len(freed) < 2:
        return []
    ranked = sorted(freed, key=make_natural_key)
    ranked.sort(key=lambda host: _rank_amounts(freed[host]), reverse=True)
    rows = [
        Row((make_printable(host, MAX_NAME), humanize_amounts(freed[host])))
        for host in ranked[:_MAX_HOSTS]
    ]
    left = len(ranked) - _MAX_HOSTS
    more = [f"and {left} more hosts"] if left > 0 else []
    return ["", *format_table((_HOST, _FREES), rows, width), *more]


def _rank_amounts(amounts: Mapping[str, int]) -> tuple[int, int, int]:
    processors = amounts.get("VCPU", 0) + amounts.get("PCPU", 0)
    return processors, amounts.get("MEMORY_MB", 0), amounts.get("DISK_GB", 0)


def _name_entry(entry: Entry) -> str:
    """Return the name of the server of an entry with the UUID of its consumer."""
    name = make_printable(get_server_name(entry), MAX_NAME)
    return f"{name} {make_printable(get_subject(entry), MAX_NAME)}".strip()


def _format_unexplained(records: Sequence[Complaint], width: int) -> list[str]:
    """Return the complaints that no finding explains."""
    lines = ["", "Complaints of hosts that no finding explains:"] if records else []
    for record in records[:MAX_ROWS]:
        kind = make_printable(record["kind"], KIND_COLUMN - 1)
        # No third column follows, so the name may be longer than the second.
        subject = cut_to_width(get_record_subject(record), min(MAX_NAME, width - KIND_COLUMN))
        lines.append(f"{kind:{KIND_COLUMN}}{subject}".rstrip())
        lines += format_field("log", describe_complaint(record), width)
    left = len(records) - MAX_ROWS
    return lines + ([f"… and {left} more"] if left > 0 else [])


# --- figures


def _format_totals(summary: Summary, width: int) -> list[str]:
    coverage = summary["coverage"]
    counts = [
        format_count(coverage["consumers"], "consumer", "consumers"),
        format_count(coverage["providers"], "provider", "providers"),
        format_count(coverage["hypervisors"], "hypervisor", "hypervisors"),
    ]
    total = f"Total: {_count_verdicts(summary)}; of {counts[0]} on {counts[1]} and {counts[2]}."
    lines: list[str] = []
    for sentence in (_describe_quota(summary["stranded"]), total, *_describe_coverage(coverage)):
        lines += format_remark(sentence, width)
    lines += format_failed_checks(coverage["failed_checks"], width)
    return lines + format_remark(describe_unjudged_hosts(coverage), width, WARNING)


def _count_verdicts(summary: Summary) -> str:
    verdicts, stranded = summary["verdicts"], summary["stranded"]
    counts = f"{verdicts['orphaned']} orphaned, {verdicts['drifted']} drifted"
    # "0 of them new" would be no news.
    if verdicts["orphaned"] + verdicts["drifted"]:
        counts += f" ({sum(summary['new'].values())} of them new)"
    fractions = stranded["share_of_claimed"]
    if stranded["resource_classes"]:
        counts += f"; stranded: {humanize_amounts(stranded['resource_classes'], fractions)}"
    if fractions:
        # Files of older versions do not say what their figures are about.
        scope = summary["coverage"].get("scope", "the cloud")
        counts += f" of all allocations in {scope}"
    return f"{counts}; {verdicts['protected']} protected; {verdicts['undecided']} undecided"


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
