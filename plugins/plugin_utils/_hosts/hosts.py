# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts and what hypervisors have left over, as lines for a terminal."""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Collection, Iterable, Sequence

from ...module_utils._common.text import format_count, make_printable
from ...module_utils._core.models.codec import Unchecked
from .._report.phrases import MAX_NAME
from .._terminal.lines import (
    ERROR,
    MAX_IN_FULL,
    MAX_ROWS,
    MAX_UNCHANGED_ROWS,
    OK,
    Line,
    format_failed_checks,
    format_field,
    format_omitted,
    format_reasons,
    format_row,
    format_second_column,
    format_server,
    format_third_column,
    format_write,
    get_prose_width,
    wrap_text,
)
from .host_tables import (
    describe_size,
    format_blocker_table,
    format_guest_table,
    format_leftover_table,
    get_guest_name,
    is_running,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ...module_utils._core.models.codec import Json

_Entry = t.TypeVar("_Entry")

_BLOCKED, _LEFT_OVER = "Blocked by:", "Removable leftovers:"


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
    lines += format_field("nodes", _list_names(host["nodes"]), width)
    lines += format_field("tree", _list_names(host["providers"]), width)
    lines += format_field("in", _list_names(host["aggregates"]), width)
    lines += _format_parts(host, width)
    blockers, leftovers = host["blockers"], host["left_over"]
    if verbose or len(blockers) <= MAX_IN_FULL:
        lines += _format_list(_BLOCKED, blockers, _format_blocker, path, width)
    else:
        lines += ["", _BLOCKED, *format_blocker_table(blockers, path, terminal_width)]
    if verbose or len(leftovers) <= MAX_IN_FULL:
        lines += _format_list(_LEFT_OVER, leftovers, _format_leftover, path, width)
    else:
        lines += ["", _LEFT_OVER]
        lines += format_leftover_table(leftovers, path, terminal_width)
    if not host["blockers"]:
        lines += ["", Line("Ready to decommission.", OK)]
    return lines


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


def _format_blocker(blocker: Unchecked, width: int) -> list[str]:
    about = format_second_column(blocker["subject"])
    name = format_third_column(blocker["name"], width)
    heading = format_row(blocker["kind"], about, name)
    return [heading, *format_field("why", blocker["reason"], width)]


def _format_leftover(leftover: Unchecked, width: int) -> list[str]:
    heading = format_row(leftover["kind"], format_second_column(leftover["consumer"]), "")
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


def _describe_service(service: Unchecked | None) -> str:
    if not service:
        return "none"
    state = f"{service['status']}, {service['state']}"
    if service["disabled_reason"]:
        state += f" ({service['disabled_reason']})"
    return state


def _list_names(
    parts: Iterable[Unchecked],
) -> str:
    return ", ".join(f"{make_printable(part['name'], MAX_NAME)} ({part['uuid']})" for part in parts)


def format_guests(
    document: Json,
    path: str,
    kinds: Collection[str],
    terminal_width: int,
    verbose: bool = False,
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
            if is_running(entry):
                lines += ["", *(Line(line, ERROR) for line in shown)]
            else:
                lines += ["", *shown, *_format_guest_write(entry, kinds, width)]
        lines += format_omitted(findings, MAX_ROWS, path, width)
    else:
        lines += ["", *format_guest_table(findings, path, kinds, terminal_width)]
    for title, entries in (
        ("Undecided, not changed:", document["undecided"]),
        ("Protected, not changed:", document["protected"]),
    ):
        if verbose or len(entries) <= MAX_IN_FULL:
            lines += _format_list(title, entries, _format_guest, path, width, MAX_UNCHANGED_ROWS)
        else:
            lines += format_reasons(entries, get_guest_name, width, title)
    verdicts = document["summary"]["verdicts"]
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    domains = format_count(coverage["domains"], "domain", "domains")
    directories = format_count(coverage["directories"], "directory", "directories")
    lines.append("")
    lines += wrap_text(f"Of {domains} and {directories}: {counts}.", width)
    return lines + format_failed_checks(coverage["failed_checks"], width)


def _format_guest_write(entry: Json, kinds: Collection[str], width: int) -> list[str]:
    action = "move the directory to the quarantine"
    if entry["kind"] == "leftover_domain":
        action = "undefine the domain"
    left = ""
    if entry["kind"] not in kinds:
        left = f"{entry['kind']} is not among the kinds to remediate"
    return format_write(action, left, width)


def _format_guest(entry: Json, width: int) -> list[str]:
    place = f"{entry['host']}, {entry['name']}"
    size = describe_size(entry)
    if size:
        place += f", {size}"
    return [
        format_row(entry["kind"], entry["uuid"], format_server(entry, width)),
        *format_field("host", place, width),
        *format_field("why", entry["reason"], width),
    ]
