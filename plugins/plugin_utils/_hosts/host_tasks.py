# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tasks about hosts decide by: leftovers to quarantine, and what remains of a host."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Collection, Iterable, Mapping

from ...module_utils._common.text import make_printable

_MAX_NAME = 80

# Which network agents of a host must be gone.
ALL_AGENTS, DEAD_AGENTS, NO_AGENTS = "all", "dead", "none"


@d.dataclass(frozen=True)
class LeftoverChanges:
    """The changes that a detection of leftovers leads to.

    count: the number of changes on all hypervisors together.
    on_host: whether any of them is, or may be, on one particular hypervisor.
    """

    count: int
    on_host: bool


def select_leftover_changes(
    detected: Mapping[str, t.Any], kinds: Collection[str], host: str
) -> LeftoverChanges:
    """Return the changes of the chosen kinds.

    detected: what hypervisor_guest_detect returned, with the first of its findings only.
    """
    count = 0
    for kind, number in detected["summary"]["kinds"].items():
        if kind in kinds:
            count += number
    findings = detected["findings"]
    is_named = any(finding["host"] == host for finding in findings)
    # The findings that are not returned may be on any host.
    is_cut_short = len(findings) < detected["summary"]["verdicts"]["orphaned"]
    return LeftoverChanges(count, count > 0 and (is_named or is_cut_short))


@d.dataclass(frozen=True)
class HostRemoval:
    """Whether nothing remains of a host, with a sentence for people."""

    complete: bool
    message: str


def describe_host_removal(
    before: Mapping[str, t.Any],
    after: Mapping[str, t.Any],
    providers: Iterable[Mapping[str, t.Any]],
    agents: str = ALL_AGENTS,
) -> HostRemoval:
    """Return whether a host was removed.

    before, after: the host as compute_host_info returned it before and after the removal.
    providers: the resource providers that have one of the names of the host now.
    agents: which of its network agents must be gone too: `ALL_AGENTS`, `NO_AGENTS`, or only the
        `DEAD_AGENTS`, where those that are alive were deleted and may be registered again.
    """
    name = make_printable(before["name"], _MAX_NAME)
    remains = _list_remains(after, providers)
    expected, returned = _sort_agents(after, agents)
    remains += map(_format_agent, expected)
    notes = [f"{_format_agent(agent)}: stop it." for agent in returned]
    notes += _list_notes(after)
    gone = "no service, no compute node, no provider"
    if before.get("agents") and agents == ALL_AGENTS:
        gone += ", no network agent"
    sentence = f"{name} is gone: {gone}, and its name is free."
    if remains:
        sentence = f"{name} was not removed completely: {', '.join(remains)}."
    elif not before["known"] and not before.get("agents"):
        sentence = (
            f"Neither Nova nor Placement knows {name}: it is already gone, or its name is misspelt."
        )
    return HostRemoval(not remains, " ".join([sentence, *notes]))


def _list_remains(host: Mapping[str, t.Any], providers: Iterable[Mapping[str, t.Any]]) -> list[str]:
    remains = []
    service = host["service"]
    if service is not None:
        remains.append(
            f"compute service {service['id']} remains ({service['status']}, {service['state']})"
        )
    for node in host["nodes"]:
        remains.append(f"compute node {_format_named(node)} remains")
    listed = set()
    for provider in host["providers"]:
        listed.add(provider["uuid"])
        remains.append(f"provider {_format_named(provider)} remains")
    for provider in providers:
        if provider["uuid"] not in listed:
            remains.append(f"provider {_format_named(provider)} has the name of the host")
    for aggregate in host.get("aggregates", ()):
        remains.append(f"aggregate {_format_named(aggregate)} still has the host")
    return remains


def _sort_agents(
    host: Mapping[str, t.Any], wanted: str
) -> tuple[list[Mapping[str, t.Any]], list[Mapping[str, t.Any]]]:
    """Return the agents that should be gone, and those that have returned, as they may."""
    expected: list[Mapping[str, t.Any]] = []
    returned: list[Mapping[str, t.Any]] = []
    if wanted == NO_AGENTS:
        return expected, returned
    for agent in host.get("agents", ()):
        if agent["alive"] and wanted == DEAD_AGENTS:
            returned.append(agent)
        else:
            expected.append(agent)
    return expected, returned


def _format_agent(agent: Mapping[str, t.Any]) -> str:
    state = "alive" if agent["alive"] else "dead"
    return f"{make_printable(agent['type'], _MAX_NAME)} {agent['uuid']} remains ({state})"


def _list_notes(host: Mapping[str, t.Any]) -> list[str]:
    """Return what was left alone, and what is not known."""
    notes = [make_printable(sentence) for sentence in host.get("unread", ())]
    for service in host.get("other_services", ()):
        binary = make_printable(service["binary"], _MAX_NAME)
        place = make_printable(service["host"], _MAX_NAME)
        command = make_printable(service["command"], 2 * _MAX_NAME)
        notes.append(f"The {binary} of {place} was left alone: {command}")
    return notes


def _format_named(entry: Mapping[str, t.Any]) -> str:
    return f"{make_printable(entry['name'], _MAX_NAME)} ({entry['uuid']})"
