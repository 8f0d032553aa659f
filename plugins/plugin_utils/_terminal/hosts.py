# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""Hosts and what hypervisors have left over, as lines for a terminal."""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import printable
from ansible_collections.osops.placement.plugins.plugin_utils._report.phrases import NAME
from ansible_collections.osops.placement.plugins.plugin_utils._terminal.lines import (
    FINE,
    ROWS,
    SPARED_ROWS,
    Line,
    field,
    gates,
    more,
    server,
    third_column,
    wrapped,
    write,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._findings.entries import Entry


def host_lines(host: Mapping[str, t.Any], width: int) -> list[str]:
    """Return what Nova and Placement have of a host that is to be retired, and what holds it back."""
    name = printable(host["name"], NAME)
    if not host["known"]:
        return ["", f"{name}: neither Nova nor Placement knows it."]
    service = host["service"]
    state = f"{service['status']}, {service['state']}" if service else "none"
    if service and service["disabled_reason"]:
        state += f" ({service['disabled_reason']})"
    lines = ["", name, *field("service", state, width)]
    for label, key in (("nodes", "nodes"), ("tree", "providers"), ("in", "aggregates")):
        told = [f"{printable(known['name'], NAME)} ({known['uuid']})" for known in host[key]]
        lines += field(label, ", ".join(told), width)
    for title, key, subject in (("Held back by:", "blockers", "subject"), ("Left over, and no hindrance:", "left_over", "consumer")):
        if host[key]:
            lines += ["", title]
        for known in host[key][:ROWS]:
            about = f"{known['kind']:20}{printable(known[subject], 37):38}{third_column(known.get('name', ''), width)}".rstrip()
            lines += [about, *field("why", known["reason"], width)]
        lines += more(host[key], ROWS, "host.json", width)
    return lines if host["blockers"] else [*lines, "", Line("Nothing holds it back.", FINE)]


def guest_lines(found: Mapping[str, t.Any], path: str, kinds: Collection[str], width: int) -> list[str]:
    """Return what hypervisors have of servers that are not there: what is left over, and what only looks like it.

    kinds: those that are put away.
    """
    coverage = found["summary"]["coverage"]
    lines = ["", f"Left over on {coverage['hosts']} hypervisors at {found['finished_at']}"]
    for entry in found["findings"][:ROWS]:
        what = "undefine the domain" if entry["kind"] == "leftover_domain" else "move the directory to the quarantine"
        left = "" if entry["kind"] in kinds else f"{entry['kind']} is not among the kinds to remediate"
        lines += ["", *_guest(entry, width), *write(what, left, width)]
    lines += more(found["findings"], ROWS, path, width)
    for title, key in (("Undecided, and left alone:", "undecided"), ("Protected, and left alone:", "protected")):
        if found[key]:
            lines += ["", title]
            for entry in found[key][:SPARED_ROWS]:
                lines += _guest(entry, width)
            lines += more(found[key], SPARED_ROWS, path, width)
    told = ", ".join(f"{count} {verdict}" for verdict, count in found["summary"]["verdicts"].items())
    lines += ["", *wrapped(f"Of {coverage['domains']} domains and {coverage['directories']} directories: {told}.", width)]
    return [*lines, *gates(coverage, width)]


def _guest(entry: Entry, width: int) -> list[str]:
    size = entry["guest"].get("size_bytes")
    size_told = "" if size is None else f", {size / 1024**3:.1f} GiB"
    return [
        f"{entry['kind']:20}{entry['uuid']:38}{server(entry, width)}".rstrip(),
        *field("host", f"{entry['host']}, {entry['name']}{size_told}", width),
        *field("why", entry["reason"], width),
    ]
