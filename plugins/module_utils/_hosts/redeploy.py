# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a host that was deployed again is complete."""

from __future__ import annotations

import dataclasses as d
import functools
import urllib.parse
from collections.abc import Callable, Iterable

from .._common.text import summarize_names
from .._core.clients.nova import NovaReader
from .._core.clients.placement import PlacementReader
from .._core.clients.provider_state import ProviderState, ProviderStateReader
from .._core.clients.session import Session
from .._core.facts.services import COMPUTE, get_listed_services
from .._core.facts.trees import require_compute_nodes
from .._core.models.nova import Aggregate, Hypervisor, Service
from .._core.models.placement import NOVA_TRAITS, Provider
from .emptiness import Contents, list_occupants
from .host import Host
from .migrations import UnfinishedEvacuations, read_unfinished_evacuations

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


OK, MISSING, DIFFERS, RESTORED, FAILED = "ok", "missing", "differs", "restored", "failed"
# A host without one of these is not complete, or not as it was asked for.
BAD_OUTCOMES = frozenset({MISSING, FAILED})
DISCOVER_HOSTS = "nova-manage cell_v2 discover_hosts"
_SYNC_AGGREGATES = "nova-manage placement sync_aggregates"


@d.dataclass(frozen=True)
class Check:
    """One part of a host.

    outcome: `ok`, `missing` (the host is not complete), `differs` (it is not what it was),
        `restored` or `failed` (it could not be restored).
    """

    name: str
    outcome: str
    detail: str


def list_checks(host: RedeployedHost) -> list[Check]:
    """Return the checks of a host, in the order in which its parts come back.

    A part that rests on a missing one is missing too, and says so.
    """
    return [Check(name, *judge(host)) for name, judge in _CHECKS.items()]


def _check_service(host: RedeployedHost) -> tuple[str, str]:
    service = host.service
    if not host.services:
        return MISSING, f"Nova lists no nova-compute on {host.name}: start it, it registers itself."
    if service is None:
        return MISSING, (
            f"Nova lists {len(host.services)} services nova-compute with the host name "
            f"{host.name}, in different cells: only one may remain."
        )
    if service.status == "UNKNOWN":
        return MISSING, "Its cell does not answer."
    # Nova shows such a service as down, whatever it reports.
    if service.forced_down:
        return MISSING, "It is forced down: unset that once the host is back."
    if service.state != "up":
        return MISSING, f"It is {service.state}, and last reported at {service.updated_at}."
    if service.status == "disabled":
        return OK, f"up, disabled ({service.disabled_reason or 'without a reason'})"
    return OK, f"up, {service.status}"


def _check_mapping(host: RedeployedHost) -> tuple[str, str]:
    if not host.services:
        return MISSING, "There is no service that could be assigned to a cell yet."
    if host.mapped is None:
        return MISSING, "Nova did not say whether the host is assigned to a cell."
    if not host.mapped:
        return MISSING, (
            "The host is not assigned to a cell, so Nova's API does not list its compute node and "
            f"nothing is scheduled there: run {DISCOVER_HOSTS}."
        )
    return OK, "assigned to a cell"


def _check_node(host: RedeployedHost) -> tuple[str, str]:
    if host.nodes:
        return OK, summarize_names(sorted(f"{node.name} ({node.uuid})" for node in host.nodes))
    # The compute node may well exist in the database of its cell.
    if host.mapped is False:
        return MISSING, "Nova does not list compute nodes of a host that is not assigned to a cell."
    return MISSING, (
        "Nova lists no compute node of the host: nova-compute creates it, so look into its log "
        "for what stops it."
    )


def _check_provider(host: RedeployedHost) -> tuple[str, str]:
    # With ironic each node has its own provider, and nodes change their service.
    if len(host.nodes) > 1:
        return OK, "one for each of its compute nodes is not checked"
    if host.provider is None:
        return MISSING, _explain_missing_provider(host)
    if host.node is not None and host.provider.name != host.node.name:
        return MISSING, (
            f"Provider {host.provider.uuid} has the name {host.provider.name}, and its compute "
            f"node the name {host.node.name}."
        )
    return OK, f"{host.provider.name} ({host.provider.uuid}), as the compute node"


def _explain_missing_provider(host: RedeployedHost) -> str:
    if host.namesake is not None and host.node is not None:
        return (
            f"Placement refuses to create provider {host.node.uuid} of the compute node, because "
            f"provider {host.namesake.uuid} has its name. See the finding name_conflict or "
            "former_provider."
        )
    if host.node is None:
        return "Without a compute node it is unknown which provider is that of the host."
    return (
        f"Placement has no provider {host.node.uuid}: nova-compute creates it at its next "
        "update, or says in its log why it cannot."
    )


def _check_state(
    host: RedeployedHost, check: Callable[[RedeployedHost, ProviderState], tuple[str, str]]
) -> tuple[str, str]:
    """Return what a check of the state of the only provider says."""
    if len(host.nodes) > 1:
        return OK, "not checked"
    if host.state is None:
        return MISSING, "The host has no provider."
    return check(host, host.state)


def _check_inventory(_host: RedeployedHost, state: ProviderState) -> tuple[str, str]:
    # All of a class may be reserved, which leaves nothing to schedule.
    present = {cls for cls, stock in state.inventories.items() if stock.capacity > 0}
    lacking = []
    # A host can dedicate all of its CPUs. Its disk may be that of a sharing provider.
    if not present & {"VCPU", "PCPU"}:
        lacking.append("VCPU")
    if "MEMORY_MB" not in present:
        lacking.append("MEMORY_MB")
    if lacking:
        return MISSING, (
            f"The provider has no {' and no '.join(lacking)}: nova-compute adds it at its next "
            "update."
        )
    return OK, ", ".join(f"{stock.total} {cls}" for cls, stock in sorted(state.inventories.items()))


def _check_traits(_host: RedeployedHost, state: ProviderState) -> tuple[str, str]:
    if not NOVA_TRAITS & state.traits:
        return MISSING, (
            "The provider has not COMPUTE_NODE: nova-compute adds it at its next update."
        )
    return OK, f"{len(state.traits)}, with COMPUTE_NODE"


def _check_aggregates(host: RedeployedHost, state: ProviderState) -> tuple[str, str]:
    own = [aggregate for aggregate in host.aggregates if host.name in aggregate.hosts]
    # Nova mirrors an aggregate when a host is added, and only logs it if that fails.
    unmirrored = [entry.name for entry in own if entry.uuid not in state.aggregates]
    if unmirrored:
        return MISSING, (
            f"The host is in {summarize_names(sorted(unmirrored))}, but its provider is not in the "
            f"aggregate of Placement: run {_SYNC_AGGREGATES}."
        )
    if not own:
        return OK, "in none"
    return OK, f"in {summarize_names(sorted(entry.name for entry in own))}, and its provider too"


def _check_evacuations(host: RedeployedHost) -> tuple[str, str]:
    for occupant in list_occupants(Contents(Host(host.name), evacuations=host.evacuations)):
        return MISSING, occupant.reason
    return OK, "none from the host waits for a start of nova-compute"


_CHECKS: dict[str, Callable[[RedeployedHost], tuple[str, str]]] = {
    "service": _check_service,
    "host mapping": _check_mapping,
    "compute node": _check_node,
    "provider": _check_provider,
    "inventory": functools.partial(_check_state, check=_check_inventory),
    "traits": functools.partial(_check_state, check=_check_traits),
    "aggregates": functools.partial(_check_state, check=_check_aggregates),
    "evacuations": _check_evacuations,
}
