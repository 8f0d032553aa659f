# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a compute host has beside its servers and providers: network agents, ports, services.

The words are those of Nova, Neutron and Cinder. The classes are frozen.
"""

from __future__ import annotations

import dataclasses as d

from .nova import Aggregate

# The service types in the catalogue.
COMPUTE_API, BLOCK_STORAGE_API = "compute", "block-storage"

# The kinds of resources that Neutron schedules to one agent.
NETWORK, ROUTER = "network", "router"


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
class OtherService:
    """A service other than nova-compute with the name of a host.

    api: the service type in the catalogue. id: None for services of block storage.
    """

    api: str
    id: str | None
    binary: str
    host: str
    status: str
    state: str | None


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
