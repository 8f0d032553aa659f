# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything about a host, as modules return it, and what remains of it after its removal. Pure."""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Iterable, Iterator

from .._common.text import make_printable
from .._core.models.codec import convert_to_json
from .._core.models.nova import Aggregate, Hypervisor
from .._core.models.placement import Provider
from .blockers import PartPolicy
from .emptiness import Blocker, Contents
from .host import Host
from .host_record import HostRecords
from .migrations import describe_migration
from .parts import Agent, HostParts, describe_other_service, list_part_warnings

_MAX_NAME = 80


@d.dataclass(frozen=True)
class HostReport:
    """Everything about one host.

    name: as the user named it; a host in another spelling is found too.
    namesakes: the providers of others that have one of its names.
    records: what earlier looks have kept of it.
    """

    name: str
    contents: Contents
    parts: HostParts
    records: HostRecords
    namesakes: tuple[Provider, ...] = ()
    providers: tuple[Provider, ...] = ()
    blockers: tuple[Blocker, ...] = ()

    @property
    def host(self) -> Host:
        return self.contents.host

    def describe(self) -> dict[str, t.Any]:
        """Return the host as `compute_host_info` returns it."""
        migrations = self.contents.migrations
        return {
            "name": self.name,
            "host": self.host.name,
            "known": self.host.exists,
            "service": convert_to_json(self.host.service),
            "nodes": _pick("uuid name state status running_vms", self.host.nodes),
            "providers": _pick("uuid name root parent", self.providers),
            "aggregates": _pick("id uuid name zone metadata", self.parts.aggregates),
            "servers": _pick("uuid name status task_state", self.contents.servers),
            "migrations": [
                describe_migration(row, migrations.at)
                for row in migrations.value or ()
                if not row.ended
            ],
            "left_over": _pick("id kind consumer reason", self.contents.leftovers),
            "blockers": list(map(convert_to_json, self.blockers)),
            "agents": list(map(convert_to_json, self.parts.network.agents)),
            "ports": list(map(convert_to_json, self.parts.network.ports)),
            "other_services": list(map(describe_other_service, self.parts.services)),
            "warnings": list(list_part_warnings(self.host.name, self.parts)),
            "unread": list(self.parts.unread),
        }


def _pick(names: str, models: Iterable[t.Any]) -> list[dict[str, t.Any]]:
    """Return some fields of each of `models`."""
    return [{name: getattr(model, name) for name in names.split()} for model in models]


def describe_removal(report: HostReport, policy: PartPolicy) -> dict[str, t.Any]:
    """Return whether nothing remains of a host that an earlier look has found, and a sentence."""
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
    return {"complete": not remains, "message": " ".join([sentence, *notes])}


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
