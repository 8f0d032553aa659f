# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the hypervisor listing shows each server, and which allocations fit that. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ..facts.listings_index import ListingsIndex, group_by_tree
from ..models.nova import Hypervisor
from ..models.placement import Allocations


class ServerLocations:
    """Where the hypervisor listing shows each server, by the root of its compute node."""

    def __init__(self, index: ListingsIndex) -> None:
        self._index = index
        nodes_by_host: dict[str, list[Hypervisor]] = {}
        for node in index.nodes.values():
            nodes_by_host.setdefault(node.host, []).append(node)
        self._servers: dict[str | None, frozenset[str] | None] = {}
        self.shared_hosts: list[str] = []
        for host, nodes in sorted(nodes_by_host.items()):
            # Of a service with many nodes (ironic) the listing does not say which node a server
            # is on.
            if len(nodes) > 1:
                self.shared_hosts.append(host)
                continue
            for node in nodes:
                self._servers[node.uuid] = _freeze(node.servers)

    def has_only_own_tree(self, consumer: str, allocations: Allocations) -> bool:
        """Return whether the consumer holds the tree of its host only.

        Of a host that was not asked for its servers, every consumer counts as one of them.
        """
        roots = list(group_by_tree(allocations, self._index))
        if len(roots) != 1 or roots[0] not in self._servers:
            return False
        servers = self._servers[roots[0]]
        return servers is None or consumer in servers

    def list_nodes_with_unclaimed_servers(self) -> set[str | None]:
        """Return the roots of compute nodes that list a server without an allocation there."""
        nodes = set()
        for root, servers in self._servers.items():
            for uuid in servers or ():
                allocations = self._index.listings.allocations.get(uuid, {})
                if root not in map(self._index.get_root, allocations):
                    nodes.add(root)
                    break
        return nodes

    def filter_counted(self, consumer: str, allocations: Allocations) -> Allocations:
        """Return the allocations of a consumer that nova-compute counts as used.

        It counts a server on its host, and both hosts of a migration that is under way.
        """
        migration = self._index.migrations.get(consumer)
        if migration is not None and migration.ended:
            return {}
        if migration is not None:
            return allocations
        counted = {}
        for provider, amounts in allocations.items():
            servers = self._servers.get(self._index.get_root(provider))
            if servers and consumer in servers:
                counted[provider] = amounts
        return counted


def _freeze(servers: Iterable[str] | None) -> frozenset[str] | None:
    """Return the servers of a node as a set, None where it was not asked for them."""
    if servers is None:
        return None
    return frozenset(servers)
