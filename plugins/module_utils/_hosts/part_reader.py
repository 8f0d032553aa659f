# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads what hosts have beside their servers and allocations, from Nova, Neutron and Cinder."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from .._common.errors import CloudError
from .._common.parallel import map_parallel
from .._core.clients.block_storage import list_cinder_services
from .._core.clients.nova import NovaReader
from .._core.clients.session import Session
from .._core.models.host_parts import BoundPort, HostParts, NetworkParts, OtherService
from .._core.models.nova import Aggregate, Service
from .network_agents import AgentReader
from .part_rules import find_lonely_aggregates, find_zone_hosts, select_other_services

# The device that Neutron gives to the port of a DHCP server that it keeps for a later one.
_RESERVED_DEVICE = "reserved_dhcp_port"
# The owners of ports whose device is a server; the part behind the colon is a zone.
_SERVER_OWNERS = ("compute:", "baremetal:")


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
