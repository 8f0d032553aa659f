# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads a host that was deployed again: its service, its mapping, its node and its provider."""

from __future__ import annotations

import dataclasses as d
import urllib.parse
from collections.abc import Iterable

from .._core.clients.nova import NovaReader
from .._core.clients.placement import PlacementReader
from .._core.clients.provider_state import ProviderState, ProviderStateReader
from .._core.clients.session import Session
from .._core.facts.preconditions import require_compute_nodes
from .._core.facts.services import COMPUTE, get_listed_services
from .._core.models.nova import Aggregate, Hypervisor, Service
from .._core.models.placement import Provider
from .evacuations import UnfinishedEvacuations, read_unfinished_evacuations

# Nova removed this request after 2.42. It is the only one that shows a missing host mapping.
_HOST_MICROVERSION = "2.42"

# What Nova answers about a host without a mapping (nova/exception.py, HostMappingNotFound).
_UNMAPPED = "is not mapped to any cell"


@d.dataclass(frozen=True)
class RedeployedHost:
    """A host as Nova and Placement have it now.

    services: its compute services; more than one if two cells have a host of that name.
    nodes: its compute nodes that Nova lists.
    mapped: whether Nova's API has assigned it to a cell; None if Nova does not say.
    provider: the provider of its only compute node.
    state: the state of that provider.
    namesake: another provider that has the name of its only compute node, or of the host while it
        has no compute node.
    aggregates: all host aggregates.
    evacuations: those from the host that its nova-compute has not completed.
    """

    name: str
    services: tuple[Service, ...]
    nodes: tuple[Hypervisor, ...]
    mapped: bool | None
    provider: Provider | None
    state: ProviderState | None
    namesake: Provider | None
    aggregates: tuple[Aggregate, ...]
    evacuations: UnfinishedEvacuations

    @property
    def service(self) -> Service | None:
        """Its compute service, if it is the only one."""
        if len(self.services) == 1:
            return self.services[0]
        return None

    @property
    def node(self) -> Hypervisor | None:
        """Its compute node, if it is the only one."""
        if len(self.nodes) == 1:
            return self.nodes[0]
        return None


class RedeployedHostReader:
    """Reads such hosts from one session."""

    def __init__(self, session: Session) -> None:
        self._compute = session.compute
        self._nova = NovaReader(session.compute)
        self._placement = PlacementReader(session.placement)
        self._states = ProviderStateReader(session.placement)

    def read(self, name: str) -> RedeployedHost:
        """Return the host whose compute service has the name `name`, without its evacuations."""
        providers = self._placement.list_providers()
        all_services = get_listed_services(self._nova.list_services())
        services = [one for one in all_services if one.binary == COMPUTE and one.host == name]
        listed = require_compute_nodes(self._nova.list_hypervisors(with_servers=False))
        nodes = tuple(node for node in listed if node.host == name)
        # Placement is read first: a provider that is created meanwhile only seems to be missing.
        provider, node_name = None, name
        if len(nodes) == 1:
            provider, node_name = providers.get(nodes[0].uuid), nodes[0].name
        state = None
        if provider is not None:
            state = self._states.read(provider.uuid)
        namesakes = [entry for entry in providers.values() if entry.name == node_name]
        return RedeployedHost(
            name=name,
            services=tuple(services),
            nodes=nodes,
            mapped=self._read_mapping(name),
            provider=provider,
            state=state,
            namesake=next((entry for entry in namesakes if entry != provider), None),
            aggregates=self._nova.list_aggregates(),
            evacuations=UnfinishedEvacuations(name),
        )

    def add_evacuations(self, host: RedeployedHost, former_names: Iterable[str]) -> RedeployedHost:
        """Return the host with the evacuations that its nova-compute has not completed.

        former_names: what the host and its compute nodes were called before.
        """
        nodes = [node.name for node in host.nodes]
        names = {host.name, *nodes, *former_names}
        # The provider of a renamed host keeps the former name.
        if host.provider is not None:
            names.add(host.provider.name)
        found = read_unfinished_evacuations(self._nova, host.name, names, nodes)
        return d.replace(host, evacuations=found)

    def _read_mapping(self, name: str) -> bool | None:
        path = f"/os-hosts/{urllib.parse.quote(name, safe='')}"
        reply = self._compute.get(path, _HOST_MICROVERSION)
        if reply.status == 200:
            return True
        # The mapping is looked up first. Without a compute node the answer is a 404 as well.
        if reply.status == 404:
            return _UNMAPPED not in reply.detail
        return None
