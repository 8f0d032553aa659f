# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection.
# It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Hosts and what hypervisors have left over, as lines for a terminal."""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import make_printable
from ansible_collections.osops.placement.plugins.plugin_utils._report.phrases import MAX_NAME
from ansible_collections.osops.placement.plugins.plugin_utils._terminal.lines import (
    MAX_ROWS,
    MAX_UNCHANGED_ROWS,
    OK,
    Line,
    format_coverage,
    format_field,
    format_omitted,
    format_row,
    format_server,
    format_third_column,
    format_write,
    wrap_text,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._findings.entries import Entry


def format_host(host: Mapping[str, t.Any], width: int) -> list[str]:
    """Return what Nova and Placement have of a host, and what blocks its decommissioning."""
    name = make_printable(host["name"], MAX_NAME)
    if not host["known"]:
        return ["", f"{name}: neither Nova nor Placement knows it."]
    lines = ["", name, *format_field("service", _describe_service(host["service"]), width)]
    for label, key in (("nodes", "nodes"), ("tree", "providers"), ("in", "aggregates")):
        lines += format_field(label, _list_names(host[key]), width)
    for title, key, subject in (
        ("Held back by:", "blockers", "subject"),
        ("Left over, and no hindrance:", "left_over", "consumer"),
    ):
        if host[key]:
            lines += ["", title]
        for entry in host[key][:MAX_ROWS]:
            about = make_printable(entry[subject], 37)
            server = format_third_column(entry.get("name", ""), width)
            lines.append(format_row(entry["kind"], about, server))
            lines += format_field("why", entry["reason"], width)
        lines += format_omitted(host[key], MAX_ROWS, "host.json", width)
    if not host["blockers"]:
        lines += ["", Line("Nothing holds it back.", OK)]
    return lines


def _describe_service(service: Mapping[str, t.Any] | None) -> str:
    if not service:
        return "none"
    state = f"{service['status']}, {service['state']}"
    if service["disabled_reason"]:
        state += f" ({service['disabled_reason']})"
    return state


def _list_names(parts: Iterable[Mapping[str, t.Any]]) -> str:
    return ", ".join(f"{make_printable(part['name'], MAX_NAME)} ({part['uuid']})" for part in parts)


def format_guests(
    document: Mapping[str, t.Any], path: str, kinds: Collection[str], width: int
) -> list[str]:
    """Return what hypervisors have of servers that are not there, and what only looks like it.

    kinds: those of the findings that may be changed.
    """
    coverage = document["summary"]["coverage"]
    lines = ["", f"Left over on {coverage['hosts']} hypervisors at {document['finished_at']}"]
    for entry in document["findings"][:MAX_ROWS]:
        lines += ["", *_format_guest(entry, width), *_format_guest_write(entry, kinds, width)]
    lines += format_omitted(document["findings"], MAX_ROWS, path, width)
    for title, key in (
        ("Undecided, and left alone:", "undecided"),
        ("Protected, and left alone:", "protected"),
    ):
        if document[key]:
            lines += ["", title]
            for entry in document[key][:MAX_UNCHANGED_ROWS]:
                lines += _format_guest(entry, width)
            lines += format_omitted(document[key], MAX_UNCHANGED_ROWS, path, width)
    verdicts = document["summary"]["verdicts"]
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    domains, directories = coverage["domains"], coverage["directories"]
    total = f"Of {domains} domains and {directories} directories: {counts}."
    return [*lines, "", *wrap_text(total, width), *format_coverage(coverage, width)]


def _format_guest_write(entry: Entry, kinds: Collection[str], width: int) -> list[str]:
    action = "move the directory to the quarantine"
    if entry["kind"] == "leftover_domain":
        action = "undefine the domain"
    left = ""
    if entry["kind"] not in kinds:
        left = f"{entry['kind']} is not among the kinds to remediate"
    return format_write(action, left, width)


def _format_guest(entry: Entry, width: int) -> list[str]:
    place = f"{entry['host']}, {entry['name']}"
    size = entry["guest"].get("size_bytes")
    if size is not None:
        place += f", {size / 1024**3:.1f} GiB"
    return [
        format_row(entry["kind"], entry["uuid"], format_server(entry, width)),
        *format_field("host", place, width),
        *format_field("why", entry["reason"], width),
    ]
