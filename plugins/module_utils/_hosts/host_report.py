# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything about a host as modules return it: what blocks its decommissioning besides its
occupants, and what remains of it afterwards. Pure.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Iterable, Iterator, Sequence

from .._common.text import format_count, make_printable, summarize_names
from .._core.facts.index import SnapshotIndex
from .._core.facts.services import COMPUTE
from .._core.models.codec import convert_to_json
from .._core.models.finding import Finding
from .._core.models.nova import Aggregate, Hypervisor
from .._core.models.placement import Provider
from .._core.options.policy import Policy
from .emptiness import DELETE, Blocker, Contents, list_occupants
from .host import Host
from .host_record import HostRecords
from .migrations import describe_migration
from .parts import (
    NETWORK,
    Agent,
    AgentResource,
    BoundPort,
    HostParts,
    describe_other_service,
    list_part_warnings,
)

_MAX_NAME = 80

# How many reasons a refusal has in full.
_MAX_REASONS = 10


@d.dataclass(frozen=True)
class PartPolicy:
    """What the user allows to happen to the parts of a host.

    delete_agents: whether its network agents go with it.
    delete_running_agents: whether those that are alive go too.
    allow_empty_zone: whether its availability zone may be left without a host.
    ignore_other_regions: whether its former providers go although another region may use them.
    """

    delete_agents: bool = True
    delete_running_agents: bool = False
    allow_empty_zone: bool = False
    ignore_other_regions: bool = False


def find_blockers(contents: Contents, policy: Policy) -> Iterator[Blocker]:
    """Yield everything that blocks decommissioning of a host and is not provably left over."""
    host = contents.host
    if contents.index is not None:
        yield from _find_exclusions(host, contents.index, policy)
    yield from list_occupants(contents)
    # Disabling the service is possible while it is up; only its deletion has to wait.
    if host.service and host.service.state == "up":
        yield Blocker(
            "service_up",
            host.service.id or host.name,
            "",
            f"The {COMPUTE} of {host.name} is up, and would create its service and a part of its "
            "host again: stop it before the service is deleted.",
            DELETE,
        )


def _find_exclusions(host: Host, index: SnapshotIndex, policy: Policy) -> Iterator[Blocker]:
    """Yield a blocker for each excluded name of the host.

    Allocations on excluded providers are protected anyway, but here the tree itself would be
    deleted, and the service with it.
    """
    roots = {node.uuid for node in host.nodes} | {root.uuid for root in host.roots}
    for excluded in sorted(policy.exclude_providers):
        if excluded == host.name or not roots.isdisjoint(index.find_roots(excluded)):
            # Of an excluded UUID, the name is shown too.
            name = index.get_name(excluded)
            note = policy.get_exclusion_note([excluded])
            reason = f"{name} is excluded by name ({excluded}) and must not be changed{note}."
            yield Blocker("excluded", excluded, name, reason)


def explain_refusal(
    subject: str, blockers: Sequence[Blocker | Finding], what: str, where: str = ""
) -> str:
    """Return why something is not done to a host or agent; empty if nothing blocks it.

    what: what is refused. where: where all of the blockers are. Both as parts of a sentence.
    """
    if not blockers:
        return ""
    count = ", ".join(filter(None, (f"blockers: {len(blockers)}", where)))
    reasons = " ".join(blocker.reason for blocker in blockers[:_MAX_REASONS])
    return f"{subject} cannot be {what} ({count}). {reasons}"


def find_part_blockers(host: str, parts: HostParts, policy: PartPolicy) -> Iterator[Blocker]:
    """Yield what must not be deleted with a host, or only after it was moved or allowed."""
    if policy.delete_agents:
        for agent in parts.network.agents:
            yield from find_agent_blockers(agent, policy.delete_running_agents)
        if parts.network.agents:
            yield from map(make_port_blocker, parts.network.ports)
    # An empty tuple is known to be empty; None is a host without a zone to lose.
    if parts.zone_hosts == () and not policy.allow_empty_zone:
        zone = make_printable(parts.zone, _MAX_NAME)
        yield Blocker(
            "empty_zone",
            parts.zone or "",
            "",
            f"{host} is the last host of availability zone {zone}: servers that ask for this zone "
            "would find no host. Add another host to it, or set "
            "host_decommission_allow_empty_zone.",
            DELETE,
        )


def find_agent_blockers(agent: Agent, delete_running: bool) -> Iterator[Blocker]:
    """Yield why an agent must not be deleted now."""
    if agent.alive and not delete_running:
        yield Blocker(
            "agent_up",
            agent.uuid,
            agent.type,
            f"The {agent.type} of {agent.host} is alive, and would register itself again: stop "
            f"{agent.binary} before it is deleted. To delete it anyway, set "
            "host_decommission_delete_running_agents.",
            DELETE,
        )
    if agent.resources is None or agent.resources:
        yield Blocker("agent_in_use", agent.uuid, agent.type, _describe_use(agent), DELETE)


def _describe_use(agent: Agent) -> str:
    resources = agent.resources
    if not resources:
        return (
            f"Neutron did not list what the {agent.type} of {agent.host} serves: check neutron-"
            "server and the credentials, and run again."
        )
    first = resources[0]
    counted = format_count(len(resources), first.kind, f"{first.kind}s")
    labels = [f"{make_printable(entry.name, _MAX_NAME)} ({entry.uuid})" for entry in resources]
    names = summarize_names(labels)
    return (
        f"The {agent.type} of {agent.host} serves {counted}, which it would leave without an "
        f"agent: {names}. Move each to another agent: {_build_move_command(agent, first)}"
    )


def _build_move_command(agent: Agent, resource: AgentResource) -> str:
    noun, option = ("network", "--dhcp") if resource.kind == NETWORK else ("router", "--l3")
    return (
        f"openstack network agent remove {noun} {option} {agent.uuid} {resource.uuid} && "
        f"openstack network agent add {noun} {option} OTHER_AGENT {resource.uuid}"
    )


def make_port_blocker(port: BoundPort) -> Blocker:
    """Return the blocker for a port that something uses on the host."""
    return Blocker(
        "port",
        port.uuid,
        port.device_owner,
        f"Port {port.uuid} of {make_printable(port.device_owner, _MAX_NAME)} "
        f"{make_printable(port.device, _MAX_NAME)} is bound to this host, whose network agents "
        "would be deleted: move what uses it, or delete the port.",
        DELETE,
    )


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
