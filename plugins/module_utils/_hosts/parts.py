# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the network agents, aggregates and other services of hosts, and deletes network agents.

API reference: https://docs.openstack.org/api-ref/network/v2/#agents
"""

from __future__ import annotations

import dataclasses as d
import functools
import operator
import typing as t
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from .._common.clock import read_back
from .._common.errors import CloudError
from .._common.parallel import map_parallel
from .._common.text import make_printable
from .._core.clients.api import Api, Reply
from .._core.clients.nova import NovaReader
from .._core.clients.other_services import ADMIN, SAMPLE, list_cinder_services, shows_other_projects
from .._core.clients.session import Session
from .._core.facts.services import COMPUTE
from .._core.models.codec import convert_to_json
from .._core.models.nova import Aggregate, Service
from .._core.models.other_services import BLOCK_STORAGE_API, OtherService

# The kinds of resources that Neutron schedules to one agent.
NETWORK, ROUTER = "network", "router"
# What Neutron schedules to the agents of a type: the path of the listing, its key and the kind.
_SCHEDULED = {
    "DHCP agent": ("dhcp-networks", "networks", NETWORK),
    "L3 agent": ("l3-routers", "routers", ROUTER),
}
# Only administrators see this field of a network.
_ADMIN_FIELD = "provider:network_type"
_NO_RIGHTS = (
    "lists no network agent: these credentials may not see any. Use a role that may (get_agent in "
    "the policy of Neutron, admin by default)."
)
# The device that Neutron gives to the port of a DHCP server that it keeps for a later one.
_RESERVED_DEVICE = "reserved_dhcp_port"
# The owners of ports whose device is a server; the part behind the colon is a zone.
_SERVER_OWNERS = ("compute:", "baremetal:")

_MAX_NAME = 80


@d.dataclass(frozen=True)
class AgentResource:
    """A network or a router that Neutron has scheduled to an agent."""

    kind: str
    uuid: str
    name: str


@d.dataclass(frozen=True)
class Agent:
    """A network agent (`GET /v2.0/agents`).

    alive: whether it has reported within Neutron's `agent_down_time`.
    resources: what Neutron has scheduled to it; None where that is not known.
    """

    uuid: str
    binary: str
    type: str
    host: str
    alive: bool
    admin_state_up: bool = True
    heartbeat_at: str | None = None
    description: str | None = None
    resources: tuple[AgentResource, ...] | None = ()


@d.dataclass(frozen=True)
class BoundPort:
    """A port that is bound to a host (`GET /v2.0/ports`).

    device: the uuid of the server or router, or Neutron's own id of a DHCP server.
    """

    uuid: str
    device_owner: str
    device: str


@d.dataclass(frozen=True)
class AgentReader:
    """Reads network agents, what they serve, and the ports that are bound to a host.

    It reads with the credentials for a project, which have these roles there.
    """

    api: Api
    project: str | None = None
    roles: Collection[str] = frozenset()

    def list_agents(self, host: str) -> tuple[Agent, ...]:
        """Return the agents of a host, sorted by binary and uuid, with what they serve.

        Raises CloudError where they cannot be known.
        """
        reply, agents = self.api.read_pages("/v2.0/agents", "agents", _parse_agent, host=host)
        self.api.expect(reply, f"for the network agents of {host}")
        if not agents:
            self.require_access()
            return ()
        # A filter that Neutron ignored must not make the agents of another host those of this one.
        own = [agent for agent in agents if agent.host == host]
        own.sort(key=lambda agent: (agent.binary, agent.uuid))
        return tuple(map(self.add_resources, own))

    def get_agent(self, uuid: str) -> Agent | None:
        """Return an agent with what it serves, or None if there is none.

        Raises CloudError where these credentials may not see agents: Neutron then answers 404 too.
        """
        path = f"/v2.0/agents/{uuid}"
        reply, agent = self.api.read(path, None, lambda reply: _parse_agent(reply.body["agent"]))
        self.api.expect(reply, f"for network agent {uuid}", 200, 404)
        if agent is None:
            self.require_access()
            return None
        return self.add_resources(agent)

    def require_access(self) -> None:
        """Raise CloudError if an agent that Neutron does not show may be there nevertheless.

        Neutron leaves out what the credentials may not see, without an error.
        """
        reply, agents = self.api.read("/v2.0/agents", None, _parse_agents, limit="1")
        self.api.expect(reply, "for its network agents")
        if agents:
            return
        # Without any agent, only something else that administrators see tells the two cases apart.
        reply, fields = self.api.read("/v2.0/networks", None, _list_network_fields, limit="1")
        self.api.expect(reply, "for its networks")
        if fields and _ADMIN_FIELD not in fields:
            raise CloudError(f"Neutron at {self.api.endpoint} lists no network agent: {_NO_RIGHTS}")

    def add_resources(self, agent: Agent) -> Agent:
        """Return `agent` with the networks or routers that Neutron has scheduled to it."""
        if agent.type not in _SCHEDULED:
            return agent
        path, key, kind = _SCHEDULED[agent.type]
        # What could not be listed is None: it may be there.
        _reply, resources = self.api.read_pages(
            f"/v2.0/agents/{agent.uuid}/{path}", key, functools.partial(_parse_resource, kind)
        )
        return d.replace(agent, resources=resources)

    def list_bound_ports(self, host: str) -> tuple[BoundPort, ...]:
        """Return the ports that are bound to a host, sorted by uuid.

        Raises CloudError unless the ports of all projects are certainly among them.
        """
        filters: dict[str, t.Any] = {"binding:host_id": host}
        reply, listed = self.api.read_pages("/v2.0/ports", "ports", _parse_port, **filters)
        self.api.expect(reply, f"for the ports of {host}")
        self._require_all_ports()
        # Neutron ignores filters that it does not know.
        ports = [port for bound_to, port in listed or () if bound_to == host]
        return tuple(sorted(ports, key=lambda port: port.uuid))

    def _require_all_ports(self) -> None:
        """Raise CloudError unless these credentials show the ports of other projects.

        Neutron's policies can grant the agents alone: it then leaves out the ports of all other
        projects, and a host full of them looks as if nothing used it.
        """
        if ADMIN in self.roles:
            return
        shows_others = functools.partial(shows_other_projects, own=self.project)
        reply, are_shown = self.api.read("/v2.0/ports", None, shows_others, limit=SAMPLE)
        self.api.expect(reply, "for its ports")
        if not are_shown:
            raise CloudError(
                f"Neutron at {self.api.endpoint} shows these credentials no port of another "
                "project, so it is not certain whether anything uses the host. Use a role that may "
                "see all ports (context_is_admin or context_with_global_access in the policy of "
                "Neutron, admin by default)."
            )


class AgentWriter:
    """Deletes network agents. What it reports as done it has read back."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._reader = AgentReader(api)

    def delete_agent(self, agent: Agent) -> None:
        """Delete `agent`. Raises CloudError if Neutron still has it."""
        name = f"the {agent.type} of {agent.host}"
        refusal = ""
        try:
            reply = self._api.write("DELETE", f"/v2.0/agents/{agent.uuid}", None)
            # With the chassis of OVN, Neutron deletes all agents on it.
            self._api.expect(reply, f"to delete {name}", 204, 404)
        except CloudError as error:
            refusal = str(error)
        # The workers of Neutron's API hear of a deleted chassis of OVN one after the other.
        if read_back(lambda: self._reader.get_agent(agent.uuid), operator.not_, not refusal):
            raise CloudError(
                refusal or f"Neutron accepted the deletion of {name}, but still lists it."
            )


def _parse_agents(reply: Reply) -> tuple[Agent, ...]:
    return tuple(map(_parse_agent, reply.body["agents"]))


def _parse_agent(row: Mapping[str, t.Any]) -> Agent:
    # An agent that never reported, or an answer without the field, is taken for a living one.
    return Agent(
        uuid=row["id"],
        binary=row["binary"],
        type=row["agent_type"],
        host=row["host"],
        alive=row.get("alive") is not False,
        admin_state_up=row.get("admin_state_up") is not False,
        heartbeat_at=row.get("heartbeat_timestamp") or None,
        description=row.get("description") or None,
    )


def _parse_resource(kind: str, row: Mapping[str, t.Any]) -> AgentResource:
    return AgentResource(kind, row["id"], row.get("name") or "")


def _parse_port(row: Mapping[str, t.Any]) -> tuple[str | None, BoundPort]:
    """Return the host that a port is bound to, and the port."""
    owner, device = row.get("device_owner") or "", row.get("device_id") or ""
    return row.get("binding:host_id"), BoundPort(row["id"], owner, device)


def _list_network_fields(reply: Reply) -> list[str]:
    return [field for network in reply.body["networks"] for field in network]


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
