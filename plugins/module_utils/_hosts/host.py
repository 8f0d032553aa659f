# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A compute host by the name of its service, and how it is found. Pure."""

from __future__ import annotations

import dataclasses as d
from collections.abc import Collection, Iterable, Iterator, Mapping

from .._common.errors import InvalidInput
from .._common.text import summarize_names
from .._core.facts.services import COMPUTE
from .._core.models.change import sort_children_first
from .._core.models.nova import Hypervisor, Service
from .._core.models.placement import Provider


@d.dataclass(frozen=True)
class Host:
    """A compute host by the name of its service: what Nova and Placement have of it.

    nodes: its compute nodes, several with ironic.
    roots: the root providers of these nodes, and those that earlier nodes of that name left behind.
    """

    name: str
    service: Service | None = None
    nodes: tuple[Hypervisor, ...] = ()
    roots: tuple[Provider, ...] = ()

    @property
    def exists(self) -> bool:
        return bool(self.service or self.nodes or self.roots)


def find_host(
    name: str,
    services: Iterable[Service],
    nodes: Collection[Hypervisor],
    providers: Mapping[str, Provider],
    remembered: Collection[str],
    was_service: bool = False,
) -> Host:
    """Return the host with that name: the name of its service, or that of its only compute node.

    remembered: uuids of root providers from an earlier run; one that is still there belongs to the
        host, whatever its name.
    was_service: whether a service had that name. If it is gone, the node of another host may have
        the name, which is then not meant.
    Raises InvalidInput for the name of one of several compute nodes, which can only be
    decommissioned together, and for a host that has compute services in several cells.
    """
    services = list(services)
    computes = {service.host for service in services if service.binary == COMPUTE}
    host = name if was_service else _find_service_host(name, computes, nodes)
    own = tuple(node for node in nodes if node.host == host)
    # Nova deletes all compute nodes of a service together with it.
    if host != name and len(own) > 1:
        raise InvalidInput(
            f"{name} is one of {len(own)} compute nodes of service {host}, which can only be "
            f"decommissioned together: name {host}."
        )
    # A node may have another name than its host, such as the name with its domain.
    names = {name, host, *(node.name for node in own)}
    uuids = {node.uuid for node in own if node.uuid in providers}
    uuids.update(_find_leftover_roots(names, nodes, providers.values(), remembered))
    roots = sorted((providers[uuid] for uuid in uuids), key=lambda provider: provider.name)
    return Host(host, _find_compute_service(host, services), own, tuple(roots))


def _find_compute_service(host: str, services: Iterable[Service]) -> Service | None:
    """Return the service nova-compute of a host, also one in a cell that does not answer."""
    found = {one.id: one for one in services if one.binary == COMPUTE and one.host == host}
    if len(found) > 1:
        ids = summarize_names(id or "one in a cell that does not answer" for id in found)
        raise InvalidInput(
            f"{host} has {len(found)} services {COMPUTE}, in different cells ({ids}), and its "
            "compute nodes and aggregates do not say whose they are: delete the service that is "
            "not in use (openstack compute service delete ID)."
        )
    return next(iter(found.values()), None)


def _find_service_host(name: str, computes: Collection[str], nodes: Collection[Hypervisor]) -> str:
    """Return the name of the service that `name` stands for, or `name` itself if none does."""
    if name in computes or any(node.host == name for node in nodes):
        return name
    return next((node.host for node in nodes if name in (node.name, node.uuid)), name)


def _find_leftover_roots(
    names: Collection[str],
    nodes: Iterable[Hypervisor],
    providers: Iterable[Provider],
    remembered: Collection[str],
) -> Iterator[str]:
    """Yield the uuids of root providers of that host which are not a compute node any more.

    A host that was installed again has another uuid, and the tree of the old one keeps its name
    (LP 1817833).
    """
    node_uuids = {node.uuid for node in nodes}
    for provider in providers:
        if not provider.is_host or provider.uuid in node_uuids:
            continue
        if provider.name in names or provider.uuid in names or provider.uuid in remembered:
            yield provider.uuid


def list_other_spellings(name: str, labels: Iterable[str]) -> list[str]:
    """Return the names that differ from `name` in upper case or in having a domain only."""
    found, own = [], name.casefold()
    for label in labels:
        other = label.casefold()
        if own == other or own.startswith(f"{other}.") or other.startswith(f"{own}."):
            found.append(label)
    return found


def list_host_providers(host: Host, providers: Mapping[str, Provider]) -> list[Provider]:
    """Return all providers of the host, children first."""
    trees = [sort_children_first(root.uuid, providers.values()) for root in host.roots]
    return [provider for tree in trees for provider in tree]
