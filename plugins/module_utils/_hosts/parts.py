# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Network agents, aggregates and other services of hosts, and what they block."""

from __future__ import annotations

import dataclasses as d
import functools
import typing as t
from collections.abc import Iterable, Iterator, Sequence

from .._common.errors import CloudError
from .._common.parallel import map_parallel
from .._common.text import format_count, make_printable, summarize_names
from .._core.clients.nova import NovaReader
from .._core.clients.other_services import list_cinder_services
from .._core.clients.session import Session
from .._core.facts.services import COMPUTE
from .._core.models.codec import convert_to_json
from .._core.models.nova import Aggregate, Service
from .._core.models.surroundings import BLOCK_STORAGE_API, OtherService
from .blockers import DELETE, Blocker
from .network_agents import NETWORK, Agent, AgentReader, AgentResource, BoundPort

# The device that Neutron gives to the port of a DHCP server that it keeps for a later one.
_RESERVED_DEVICE = "reserved_dhcp_port"
# The owners of ports whose device is a server; the part behind the colon is a zone.
_SERVER_OWNERS = ("compute:", "baremetal:")


@d.dataclass(frozen=True)
class NetworkParts:
    """What Neutron has of a host.

    unread: why that is not known, empty where it is, and in a cloud without a network service.
    """

    agents: tuple[Agent, ...] = ()
    ports: tuple[BoundPort, ...] = ()
    unread: str = ""


@d.dataclass(frozen=True)
class HostParts:
    """What a host has in addition to its service, nodes, providers and servers.

    zone: the availability zone that the host leaves.
    zone_hosts: the other hosts with a nova-compute in that zone. None where the host has no
        service, and so no zone that could lose it.
    lonely_aggregates: the aggregates in which no other host has a nova-compute.
    """

    network: NetworkParts = NetworkParts()
    services: tuple[OtherService, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    zone: str | None = None
    zone_hosts: tuple[str, ...] | None = None
    lonely_aggregates: tuple[Aggregate, ...] = ()
    unread: tuple[str, ...] = ()


class PartReader:
    """Reads the parts of hosts; the listings of all hosts only once."""

    def __init__(self, session: Session) -> None:
        self._nova = NovaReader(session.compute)
        self._agents = make_agent_reader(session)
        self._block_storage = session.block_storage

    def read_parts(self, host: str, zone: str | None, services: Sequence[Service]) -> HostParts:
        """Return the parts of a host.

        zone: the availability zone that the host leaves. services: all services of Nova.
        """
        aggregates = tuple(entry for entry in self._listed_aggregates if host in entry.hosts)
        cinder_services, unread = self._cinder_services
        network = read_network_parts(host, self._agents, self._nova)
        if network.unread:
            unread = (*unread, network.unread)
        return HostParts(
            network=network,
            services=tuple(select_other_services(host, services, cinder_services)),
            aggregates=aggregates,
            zone=zone,
            zone_hosts=find_zone_hosts(host, zone, services),
            lonely_aggregates=find_lonely_aggregates(host, aggregates, services),
            unread=unread,
        )

    @functools.cached_property
    def _listed_aggregates(self) -> tuple[Aggregate, ...]:
        return self._nova.list_aggregates()

    @functools.cached_property
    def _cinder_services(self) -> tuple[tuple[OtherService, ...], tuple[str, ...]]:
        """All services of Cinder, and why they are not known."""
        if self._block_storage is None:
            return (), ()
        try:
            return list_cinder_services(self._block_storage), ()
        except CloudError as error:
            return (), (f"The services of Cinder were not looked at. {error}",)


def make_agent_reader(session: Session) -> AgentReader | None:
    """Return what reads network agents, or None in a cloud without a network service."""
    if session.network is None:
        return None
    return AgentReader(session.network, session.project, session.roles)


def read_network_parts(host: str, reader: AgentReader | None, nova: NovaReader) -> NetworkParts:
    """Return what Neutron has of a host; nothing without a network service."""
    if reader is None:
        return NetworkParts()
    try:
        agents = reader.list_agents(host)
        # Without an agent, nothing would be deleted under a port.
        if not agents:
            return NetworkParts()
        return NetworkParts(agents, find_used_ports(host, reader, nova))
    except CloudError as error:
        return NetworkParts(unread=f"The network agents of {host} were not looked at. {error}")


def find_used_ports(host: str, reader: AgentReader, nova: NovaReader) -> tuple[BoundPort, ...]:
    """Return the ports that are bound to a host and whose device is there, or may be."""
    bound = reader.list_bound_ports(host)
    ports = [port for port in bound if port.device not in ("", _RESERVED_DEVICE)]
    flags = map_parallel(lambda port: _may_be_used(port, nova), ports)
    return tuple(port for port, is_used in zip(ports, flags, strict=True) if is_used)


def _may_be_used(port: BoundPort, nova: NovaReader) -> bool:
    is_of_server = port.device_owner.startswith(_SERVER_OWNERS)
    # Only the direct answer that there is no such server proves that nothing uses the port.
    return not is_of_server or nova.get_server(port.device).status != 404


_MAX_NAME = 80


@d.dataclass(frozen=True)
class PartPolicy:
    """What the user allows to happen to the parts of a host.

    delete_agents: whether its network agents go with it.
    delete_running_agents: whether those that are alive go too.
    allow_empty_zone: whether its availability zone may be left without a host.
    """

    delete_agents: bool = True
    delete_running_agents: bool = False
    allow_empty_zone: bool = False


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
    if agent.resources is None:
        yield Blocker(
            "agent_in_use",
            agent.uuid,
            agent.type,
            f"Neutron did not list what the {agent.type} of {agent.host} serves: check neutron-"
            "server and the credentials, and run again.",
            DELETE,
        )
    elif agent.resources:
        yield Blocker("agent_in_use", agent.uuid, agent.type, _describe_resources(agent), DELETE)


def _describe_resources(agent: Agent) -> str:
    resources = agent.resources or ()
    first = resources[0]
    counted = format_count(len(resources), first.kind, f"{first.kind}s")
    labels = [f"{make_printable(entry.name, _MAX_NAME)} ({entry.uuid})" for entry in resources]
    names = summarize_names(labels)
    return (
        f"The {agent.type} of {agent.host} serves {counted}, which it would leave without an "
        f"agent: {names}. Move each to another agent: {_build_move_command(agent, first)}"
    )


def _build_move_command(agent: Agent, resource: AgentResource) -> str:
    noun, option = "router", "--l3"
    if resource.kind == NETWORK:
        noun, option = "network", "--dhcp"
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


def list_part_warnings(host: str, parts: HostParts) -> Iterator[str]:
    """Yield a sentence for each thing that blocks nothing and that somebody should know."""
    for aggregate in parts.lonely_aggregates:
        yield f"{host} is the last host of aggregate {make_printable(aggregate.name, _MAX_NAME)}."
    yield from parts.unread


def select_other_services(
    host: str, services: Iterable[Service], cinder: Iterable[OtherService]
) -> list[OtherService]:
    """Return the services with the name of a host, without nova-compute."""
    own = [one for one in services if one.host == host and one.binary != COMPUTE]
    selected = [
        OtherService("compute", one.id, one.binary, one.host, one.status, one.state) for one in own
    ]
    # cinder-volume has the name of its backend behind that of the host.
    selected += [entry for entry in cinder if entry.host.partition("@")[0] == host]
    return sorted(selected, key=lambda entry: (entry.api, entry.binary, entry.host))


def find_zone_hosts(
    host: str, zone: str | None, services: Iterable[Service]
) -> tuple[str, ...] | None:
    """Return the other hosts with a nova-compute in `zone`, or None where there is no zone."""
    if zone is None:
        return None
    in_zone = {one.host for one in services if one.binary == COMPUTE and one.zone == zone}
    return tuple(sorted(in_zone - {host}))


def find_lonely_aggregates(
    host: str, aggregates: Iterable[Aggregate], services: Iterable[Service]
) -> tuple[Aggregate, ...]:
    """Return the aggregates in which only this host has a nova-compute."""
    hosts = {service.host for service in services if service.binary == COMPUTE}
    # An aggregate keeps the names of hosts whose service is long gone.
    return tuple(one for one in aggregates if not (hosts & set(one.hosts)) - {host})


def describe_other_service(service: OtherService) -> dict[str, t.Any]:
    """Return a service as `compute_host_info` returns it, with the command that removes it."""
    command = f"openstack compute service delete {service.id}"
    if service.api == BLOCK_STORAGE_API:
        command = f"cinder-manage service remove {service.binary} {service.host}"
    return {**convert_to_json(service), "command": command}
