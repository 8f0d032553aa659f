# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts and what hypervisors have left over, as lines for a terminal.

A few entries are shown in full; many are a table with a line each, and each reason once.
"""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Collection, Iterable, Sequence

from ...module_utils._common.text import format_count, make_printable
from ...module_utils._core.models.codec import Unchecked
from .._report.phrases import MAX_NAME, explain_kind, get_server_name
from .._report.view import make_natural_key
from .._terminal.lines import (
    CHANGED,
    ERROR,
    MAX_IN_FULL,
    MAX_ROWS,
    MAX_UNCHANGED_ROWS,
    OK,
    SHORT_UUID,
    Column,
    Line,
    Row,
    format_failed_checks,
    format_field,
    format_left_alone,
    format_omitted,
    format_reasons,
    format_row,
    format_table,
    format_write,
    get_prose_width,
    is_cut,
    paint,
    wrap_path,
    wrap_text,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ...module_utils._core.models.codec import Json

_Entry = t.TypeVar("_Entry")

_BLOCKED, _LEFT_OVER = "Blocked by:", "Removable leftovers:"

_UUID = "UUID"
_BLOCKER_COLUMNS = (
    Column("KIND"),
    Column("NAME", least=6, comfort=16),
    Column(_UUID, short=SHORT_UUID),
    Column("WHAT TO DO", least=10, comfort=27),
)
_LEFTOVER_COLUMNS = (Column("KIND"), Column("CONSUMER"))
_GUEST_COLUMNS = (
    Column("KIND"),
    Column("HOST", least=9, comfort=24),
    Column("SERVER", least=6, comfort=16),
    Column(_UUID, short=SHORT_UUID),
    Column("SIZE"),
    Column("CHANGE"),
)

# So long may the advice of a blocker be in a table.
_MAX_ADVICE = 28
_SEE_REASON = "see below"

_DOMAIN, _RUNNING = "leftover_domain", "running_leftover"
# The change of a leftover in the column of a table, and as a sentence.
_CHANGES = {
    _DOMAIN: ("undefine", "undefine the domain"),
    "leftover_directory": ("quarantine", "move the directory to the quarantine"),
}


def format_host(
    host: Unchecked, path: str, terminal_width: int, verbose: bool = False
) -> list[str]:
    """Return what Nova and Placement have of a host, and what blocks its decommissioning.

    path: the file with all of it.
    verbose: whether everything is shown in full, however much it is.
    """
    width = get_prose_width(terminal_width)
    name = make_printable(host["name"], MAX_NAME)
    # Nothing else was read about it.
    if not host["known"]:
        lines = ["", f"{name}: neither Nova nor Placement knows it."]
        lines += _format_parts(host, width)
        blockers = host["blockers"] if host.get("agents") else []
        return lines + _format_list(_BLOCKED, blockers, _format_blocker, path, width)
    lines = ["", name]
    lines += format_field("service", _describe_service(host["service"]), width)
    for label, part in (("nodes", "nodes"), ("tree", "providers"), ("in", "aggregates")):
        names = [f"{make_printable(e['name'], MAX_NAME)} ({e['uuid']})" for e in host[part]]
        lines += format_field(label, ", ".join(names), width)
    lines += _format_parts(host, width)
    blockers, leftovers = host["blockers"], host["left_over"]
    if verbose or len(blockers) <= MAX_IN_FULL:
        lines += _format_list(_BLOCKED, blockers, _format_blocker, path, width)
    else:
        lines += ["", _BLOCKED, *_format_blocker_table(blockers, path, terminal_width)]
    if verbose or len(leftovers) <= MAX_IN_FULL:
        lines += _format_list(_LEFT_OVER, leftovers, _format_leftover, path, width)
    else:
        lines += ["", _LEFT_OVER, *_format_leftover_table(leftovers, path, terminal_width)]
    return lines if blockers else [*lines, "", Line("Ready to decommission.", OK)]


def _format_parts(host: Unchecked, width: int) -> list[str]:
    """Return the network agents and the other services of a host, and what is worth a warning."""
    lines: list[str] = []
    # The file of an older version has none of them.
    agents = host.get("agents", [])
    if agents:
        lines += format_field("agents", ", ".join(map(_describe_agent, agents)), width)
    for service in host.get("other_services", []):
        lines += format_field("also", _describe_other_service(service), width)
        # On a line of its own, to be copied.
        lines += format_field("", make_printable(service["command"]), width)
    for sentence in host.get("warnings", []):
        lines += format_field("note", make_printable(sentence), width)
    return lines


def _describe_agent(agent: Unchecked) -> str:
    state = "alive" if agent["alive"] else "dead"
    resources = agent["resources"] or []
    if resources:
        kind = resources[0]["kind"]
        state += f", serves {format_count(len(resources), kind, f'{kind}s')}"
    return f"{make_printable(agent['type'], MAX_NAME)} ({state})"


def _describe_other_service(service: Unchecked) -> str:
    return (
        f"{make_printable(service['binary'], MAX_NAME)} of "
        f"{make_printable(service['host'], MAX_NAME)} ({service['status']}, {service['state']}) is "
        "left alone. To remove it:"
    )


def _describe_service(service: Unchecked | None) -> str:
    if not service:
        return "none"
    reason = service["disabled_reason"]
    return f"{service['status']}, {service['state']}{f' ({reason})' if reason else ''}"


def _format_blocker(blocker: Unchecked, width: int) -> list[str]:
    heading = format_row(blocker["kind"], blocker["subject"], blocker["name"], width)
    return [heading, *format_field("why", blocker["reason"], width)]


def _format_leftover(leftover: Unchecked, width: int) -> list[str]:
    heading = format_row(leftover["kind"], leftover["consumer"], "", width)
    return [heading, *format_field("why", leftover["reason"], width)]


def _format_list(
    title: str,
    entries: Sequence[_Entry],
    format_one: Callable[[_Entry, int], list[str]],
    path: str,
    width: int,
    most: int = MAX_ROWS,
) -> list[str]:
    """Return entries in full below their title, at most so many; nothing without entries."""
    lines = ["", title] if entries else []
    for entry in entries[:most]:
        lines += format_one(entry, width)
    return lines + format_omitted(entries, most, path, width)


def _format_blocker_table(blockers: Sequence[Unchecked], path: str, width: int) -> list[str]:
    """Return a line for each blocker of a host, then the reasons that say what to do."""
    advice = [_get_short_advice(blocker) for blocker in blockers]
    rows = [
        build_row((one["kind"], one["name"] or "-", one["subject"], what or _SEE_REASON))
        for one, what in zip(blockers, advice, strict=True)
    ]
    lines = _format_table(_BLOCKER_COLUMNS, rows, path, width)
    unexplained = [one for one, what in zip(blockers, advice, strict=True) if not what]
    return lines + format_reasons(unexplained, _get_blocker_name, get_prose_width(width))


def _get_short_advice(blocker: Unchecked) -> str:
    """Return what the reason of a blocker ends with, if it fits into a table; else nothing.

    Blockers of one kind can have different reasons, each with its own advice.
    """
    _found, colon, advice = blocker["reason"].rpartition(": ")
    advice = advice.removesuffix(".")
    return advice if colon and len(advice) <= _MAX_ADVICE else ""


def _get_blocker_name(blocker: Unchecked) -> str:
    return str(blocker["name"] or blocker["subject"])


def _format_leftover_table(leftovers: Sequence[Unchecked], path: str, width: int) -> list[str]:
    """Return a line for each removable leftover of a host, then the reasons."""
    rows = [build_row((leftover["kind"], leftover["consumer"] or "-")) for leftover in leftovers]
    lines = _format_table(_LEFTOVER_COLUMNS, rows, path, width)
    return lines + format_reasons(leftovers, None, get_prose_width(width))


def build_row(texts: Iterable[str], tone: str | None = None) -> Row:
    return Row(tuple(make_printable(text, MAX_NAME) for text in texts), tone)


def _format_table(
    columns: Sequence[Column], all_rows: Sequence[Row], path: str, width: int
) -> list[str]:
    """Return the first rows, and which file has what the table leaves out."""
    rows, prose = all_rows[:MAX_ROWS], get_prose_width(width)
    lines = format_table(columns, rows, width) + format_omitted(all_rows, MAX_ROWS, path, prose)
    has_uuids = any(column.heading == _UUID for column in columns)
    if has_uuids and is_cut(columns, rows, width, _UUID):
        lines += wrap_path(f"Whole UUIDs: {make_printable(path)}, or a wider terminal.", prose)
    return lines


def format_guests(
    document: Json, path: str, kinds: Collection[str], terminal_width: int, verbose: bool = False
) -> list[str]:
    """Return what hypervisors have of servers that are not there, and what only looks like it.

    kinds: those of the findings that may be changed.
    verbose: whether everything is shown in full, however much it is.
    """
    width = get_prose_width(terminal_width)
    coverage, findings = document["summary"]["coverage"], document["findings"]
    hypervisors = format_count(coverage["hosts"], "hypervisor", "hypervisors")
    lines = ["", f"Leftovers on {hypervisors} at {document['finished_at']}"]
    if verbose or len(findings) <= MAX_IN_FULL:
        for entry in findings[:MAX_ROWS]:
            shown = _format_guest(entry, width)
            if _is_running(entry):
                lines += ["", *paint(shown, ERROR)]
            else:
                lines += ["", *shown, *_format_guest_write(entry, kinds, width)]
        lines += format_omitted(findings, MAX_ROWS, path, width)
    else:
        lines += ["", *_format_guest_table(findings, path, kinds, terminal_width)]
    for title, entries in (
        ("Undecided, not changed:", document["undecided"]),
        ("Protected, not changed:", document["protected"]),
    ):
        if verbose or len(entries) <= MAX_IN_FULL:
            lines += _format_list(title, entries, _format_guest, path, width, MAX_UNCHANGED_ROWS)
        else:
            lines += format_reasons(entries, _get_guest_name, width, title)
    verdicts = document["summary"]["verdicts"]
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    domains = format_count(coverage["domains"], "domain", "domains")
    directories = format_count(coverage["directories"], "directory", "directories")
    lines += ["", *wrap_text(f"Of {domains} and {directories}: {counts}.", width)]
    return lines + format_failed_checks(coverage["failed_checks"], width)


def _format_guest_write(entry: Json, kinds: Collection[str], width: int) -> list[str]:
    kind = entry["kind"]
    left = "" if kind in kinds else f"{kind} is not among the kinds to remediate"
    return format_write(_CHANGES[kind][1], left, width)


def _format_guest(entry: Json, width: int) -> list[str]:
    place = filter(None, (entry["host"], entry["name"], _describe_size(entry)))
    return [
        format_row(entry["kind"], entry["uuid"], get_server_name(entry), width),
        *format_field("host", ", ".join(place), width),
        *format_field("why", entry["reason"], width),
    ]


def _format_guest_table(
    entries: Sequence[Json], path: str, kinds: Collection[str], width: int
) -> list[str]:
    """Return a line for each leftover domain or directory, then the reasons.

    kinds: those that may be changed.
    """

    ordered, prose = sorted(entries, key=_rank_guest), get_prose_width(width)
    rows = [_make_guest_row(entry, kinds) for entry in ordered]
    lines = _format_table(_GUEST_COLUMNS, rows, path, width)
    left = [entry for entry in entries if entry["kind"] not in kinds and not _is_running(entry)]
    lines += format_left_alone([explain_kind(entry["kind"]) for entry in left], prose)
    return lines + format_reasons(ordered, None, prose)


def _rank_guest(entry: Json) -> tuple[t.Any, ...]:
    # A directory follows the domain of the same server.
    is_domain = entry["kind"] == _DOMAIN
    return not _is_running(entry), make_natural_key(entry["host"]), entry["uuid"], not is_domain


def _is_running(entry: Json) -> bool:
    """Return whether an entry is about two guests of one server, which nothing changes."""
    return bool(entry["kind"] == _RUNNING)


def _make_guest_row(entry: Json, kinds: Collection[str]) -> Row:
    change = _SEE_REASON if _is_running(entry) else "not now"
    if entry["kind"] in kinds:
        change, _sentence = _CHANGES.get(entry["kind"], (change, ""))
    name = entry["server"]["name"] if entry["server"] else ""
    size = _describe_size(entry)
    texts = (entry["kind"], entry["host"], name or "-", entry["uuid"], size or "-", change)
    return build_row(texts, ERROR if _is_running(entry) else CHANGED)


def _describe_size(entry: Json) -> str:
    """Return the size of a directory; nothing for a domain, and where it was not measured."""
    size = entry["guest"].get("size_bytes")
    return "" if size is None else f"{size / 1024**3:.1f} GiB"


def _get_guest_name(entry: Json) -> str:
    """Return which domain or directory an entry is about."""
    return f"{entry['name']} on {entry['host']}"
