# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
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
    format_server,
    format_third_column,
    format_write,
    wrap_text,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._findings.entries import Entry


def format_host(host: Mapping[str, t.Any], width: int) -> list[str]:
    """Return what Nova and Placement have of a host that is to be retired, and what holds it back."""
    name = make_printable(host["name"], MAX_NAME)
    if not host["known"]:
        return ["", f"{name}: neither Nova nor Placement knows it."]
    service = host["service"]
    state = f"{service['status']}, {service['state']}" if service else "none"
    if service and service["disabled_reason"]:
        state += f" ({service['disabled_reason']})"
    lines = ["", name, *format_field("service", state, width)]
    for label, key in (("nodes", "nodes"), ("tree", "providers"), ("in", "aggregates")):
        told = [
            f"{make_printable(known['name'], MAX_NAME)} ({known['uuid']})" for known in host[key]
        ]
        lines += format_field(label, ", ".join(told), width)
    for title, key, subject in (
        ("Held back by:", "blockers", "subject"),
        ("Left over, and no hindrance:", "left_over", "consumer"),
    ):
        if host[key]:
            lines += ["", title]
        for known in host[key][:MAX_ROWS]:
            about = f"{known['kind']:20}{make_printable(known[subject], 37):38}{format_third_column(known.get('name', ''), width)}".rstrip()
            lines += [about, *format_field("why", known["reason"], width)]
        lines += format_omitted(host[key], MAX_ROWS, "host.json", width)
    return lines if host["blockers"] else [*lines, "", Line("Nothing holds it back.", OK)]


def format_guests(
    document: Mapping[str, t.Any], path: str, kinds: Collection[str], width: int
) -> list[str]:
    """Return what hypervisors have of servers that are not there: what is left over, and what only looks like it.

    kinds: those that are put away.
    """
    coverage = document["summary"]["coverage"]
    lines = ["", f"Left over on {coverage['hosts']} hypervisors at {document['finished_at']}"]
    for entry in document["findings"][:MAX_ROWS]:
        what = (
            "undefine the domain"
            if entry["kind"] == "leftover_domain"
            else "move the directory to the quarantine"
        )
        left = (
            "" if entry["kind"] in kinds else f"{entry['kind']} is not among the kinds to remediate"
        )
        lines += ["", *_format_guest(entry, width), *format_write(what, left, width)]
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
    told = ", ".join(
        f"{count} {verdict}" for verdict, count in document["summary"]["verdicts"].items()
    )
    lines += [
        "",
        *wrap_text(
            f"Of {coverage['domains']} domains and {coverage['directories']} directories: {told}.",
            width,
        ),
    ]
    return [*lines, *format_coverage(coverage, width)]


def _format_guest(entry: Entry, width: int) -> list[str]:
    size = entry["guest"].get("size_bytes")
    size_told = "" if size is None else f", {size / 1024**3:.1f} GiB"
    return [
        f"{entry['kind']:20}{entry['uuid']:38}{format_server(entry, width)}".rstrip(),
        *format_field("host", f"{entry['host']}, {entry['name']}{size_told}", width),
        *format_field("why", entry["reason"], width),
    ]
