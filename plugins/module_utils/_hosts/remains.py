# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether anything remains of a host that was decommissioned. Pure."""

from __future__ import annotations

import dataclasses as d
from collections.abc import Iterator

from .._common.text import make_printable
from .._core.models.nova import Aggregate, Hypervisor
from .._core.models.placement import Provider
from .host_info import HostReport
from .network_agents import Agent
from .parts import PartPolicy, describe_other_service

_MAX_NAME = 80


@d.dataclass(frozen=True)
class HostRemoval:
    """Whether nothing remains of a host, with a sentence for people."""

    complete: bool
    message: str


def describe_removal(report: HostReport, policy: PartPolicy) -> HostRemoval:
    """Return whether nothing remains of a host that an earlier look has found."""
    records = report.records
    name = make_printable(records.name or report.name, _MAX_NAME)
    remains = list(_list_remains(report))
    notes = []
    for agent in report.parts.network.agents if policy.delete_agents else ():
        # One that was deleted while it was alive registers itself again.
        if agent.alive and policy.delete_running_agents:
            notes.append(f"{_format_agent(agent)}: stop it.")
        else:
            remains.append(_format_agent(agent))
    notes += _list_notes(report)
    gone = "no service, no compute node, no provider"
    if records.had_agents and policy.delete_agents and not policy.delete_running_agents:
        gone += ", no network agent"
    sentence = f"{name} is gone: {gone}, and its name is free."
    if remains:
        sentence = f"{name} was not removed completely: {', '.join(remains)}."
    elif not records.existed and not records.had_agents:
        sentence = (
            f"Neither Nova nor Placement knows {name}: it is already gone, or its name is misspelt."
        )
    return HostRemoval(not remains, " ".join([sentence, *notes]))


def _list_remains(report: HostReport) -> Iterator[str]:
    service = report.host.service
    if service is not None:
        yield f"compute service {service.id} remains ({service.status}, {service.state})"
    for node in report.host.nodes:
        yield f"compute node {_format_named(node)} remains"
    for provider in report.providers:
        yield f"provider {_format_named(provider)} remains"
    for provider in report.namesakes:
        yield f"provider {_format_named(provider)} has the name of the host"
    for aggregate in report.parts.aggregates:
        yield f"aggregate {_format_named(aggregate)} still has the host"


def _list_notes(report: HostReport) -> Iterator[str]:
    """Yield what was left alone, and what is not known."""
    yield from map(make_printable, report.parts.unread)
    for service in report.parts.services:
        binary = make_printable(service.binary, _MAX_NAME)
        place = make_printable(service.host, _MAX_NAME)
        command = make_printable(describe_other_service(service)["command"], 2 * _MAX_NAME)
        yield f"The {binary} of {place} was left alone: {command}"


def _format_agent(agent: Agent) -> str:
    state = "alive" if agent.alive else "dead"
    return f"{make_printable(agent.type, _MAX_NAME)} {agent.uuid} remains ({state})"


def _format_named(entry: Provider | Hypervisor | Aggregate) -> str:
    return f"{make_printable(entry.name, _MAX_NAME)} ({entry.uuid})"
