# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Many findings at one glance: one line each, and figures by kind and by host."""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterable, Sequence

from ...module_utils._common.text import format_count, make_printable
from ...module_utils._core.findings.entries import Entry, get_subject
from ...module_utils._core.models.change import DELETE_PROVIDERS
from ...module_utils._core.models.kinds import KINDS
from ...module_utils._core.models.placement import add_amounts
from .._report.order import make_natural_key
from .._report.phrases import MAX_NAME, explain_unchanged, get_server_name, list_hosts, sum_freed
from .._report.units import humanize_amounts
from .ages import describe_age
from .details import describe_effect, map_names
from .lines import (
    CHANGED,
    MAX_ROWS,
    format_left_alone,
    format_omitted,
    format_reasons,
    get_prose_width,
    wrap,
    wrap_path,
)
from .table import SHORT_UUID, Column, Row, format_table, is_cut

# How many hosts are listed.
_MAX_HOSTS = 10

_SUBJECT = "CONSUMER"
_COLUMNS = (
    Column("KIND"),
    Column("HOST", least=9, comfort=24),
    Column("FREES", least=13, comfort=34),
    Column("AGE"),
    Column("SERVER", least=6, comfort=9),
    Column(_SUBJECT, short=SHORT_UUID),
    Column("CHANGE", least=7, comfort=24),
)

_MEANINGS = {kind.name: kind.meaning for kind in KINDS}


def format_overview(
    entries: Sequence[Entry], path: str, kinds: Collection[str] | None, width: int
) -> list[str]:
    """Return a line for each finding, and what they add up to by kind and by host.

    kinds: those that may be changed; None for any.
    """
    prose = get_prose_width(width)
    shown = entries[:MAX_ROWS]
    rows = [_make_row(entry, kinds) for entry in shown]
    lines = ["", *format_table(_COLUMNS, rows, width)]
    lines += format_omitted(entries, MAX_ROWS, path, prose)
    if is_cut(_COLUMNS, rows, width, _SUBJECT):
        lines += wrap_path(f"Whole ids: {make_printable(path)}, or a wider terminal.", prose)
    lines += _format_mended(entries, path, prose)
    unmade = [explain_unchanged(entry, kinds) for entry in entries if entry["change"]]
    lines += format_left_alone(unmade, prose)
    return lines + _format_kinds(entries, prose) + _format_hosts(entries, width)


def _make_row(entry: Entry, kinds: Collection[str] | None) -> Row:
    hosts = ", ".join(make_printable(host, MAX_NAME) for host in list_hosts(entry))
    subject = make_printable(get_subject(entry), MAX_NAME)
    cells = (
        make_printable(entry["kind"]),
        hosts or "-",
        humanize_amounts(sum_freed(entry)) or "-",
        describe_age(entry["age_seconds"]),
        make_printable(get_server_name(entry), MAX_NAME) or "-",
        # What is not about a consumer, such as a service, has the name of its host.
        "-" if subject == hosts else subject,
        _describe_change(entry, kinds),
    )
    return Row(cells, CHANGED)


def _describe_change(entry: Entry, kinds: Collection[str] | None) -> str:
    change = entry["change"]
    if not change:
        return "none"
    if explain_unchanged(entry, kinds):
        return "not now"
    return describe_effect(change, map_names(entry))


def _format_mended(entries: Iterable[Entry], path: str, width: int) -> list[str]:
    """Return where the commands are that fix some of the entries; nothing without any."""
    count = sum(bool(entry.get("commands")) for entry in entries)
    if not count:
        return []
    findings = format_count(count, "finding", "findings")
    return wrap_path(f"Commands that fix {findings}: {make_printable(path)}, or -v.", width)


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
    columns = (Column("HOST", least=9, comfort=24), Column("FREES", least=13, comfort=34))
    lines = ["", *format_table(columns, rows, width)]
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


def format_groups(title: str, entries: Sequence[Entry], width: int, tone: str) -> list[str]:
    """Return a paragraph for each reason not to change something, with a few of its names."""
    return format_reasons(entries, _name_entry, width, title, tone)


def _name_entry(entry: Entry) -> str:
    """Return the name of the server of an entry with the UUID of its consumer."""
    name = make_printable(get_server_name(entry), MAX_NAME)
    return f"{name} {make_printable(get_subject(entry), MAX_NAME)}".strip()
