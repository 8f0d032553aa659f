# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host has beside its service and its tree, as lines for a terminal."""

from __future__ import annotations

import typing as t

from ...module_utils._common.text import format_count, make_printable
from .._report.phrases import MAX_NAME
from .._terminal.lines import format_field

if t.TYPE_CHECKING:  # pragma: no cover
    from ...module_utils._core.models.host_documents import (
        AgentDocument,
        HostDocument,
        OtherServiceDocument,
    )


def format_host_parts(host: HostDocument, width: int) -> list[str]:
    """Return the network agents and the other services of a host, and what is worth a warning."""
    lines: list[str] = []
    # The file of an older version has none of them.
    agents = host.get("agents", [])
    if agents:
        lines += format_field("agents", ", ".join(map(_describe_agent, agents)), width)
    for service in host.get("other_services", []):
        lines += format_field("also", _describe_service(service), width)
        # On a line of its own, to be copied.
        lines += format_field("", make_printable(service["command"]), width)
    for sentence in host.get("warnings", []):
        lines += format_field("note", make_printable(sentence), width)
    return lines


def _describe_agent(agent: AgentDocument) -> str:
    state = "alive" if agent["alive"] else "dead"
    resources = agent["resources"] or []
    if resources:
        kind = resources[0]["kind"]
        state += f", serves {format_count(len(resources), kind, f'{kind}s')}"
    return f"{make_printable(agent['type'], MAX_NAME)} ({state})"


def _describe_service(service: OtherServiceDocument) -> str:
    return (
        f"{make_printable(service['binary'], MAX_NAME)} of "
        f"{make_printable(service['host'], MAX_NAME)} ({service['status']}, {service['state']}) is "
        "left alone. To remove it:"
    )
