# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which servers have to be looked up for their amounts, and which the listings settle. Pure."""

from __future__ import annotations

import collections
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet

from ..expected.amounts import ListedComparison, compare_listed
from ..facts.listings_index import ListingsIndex
from ..models.nova import Hypervisor, Server
from ..models.resource_request import PciAlias
from ..models.snapshot import ListedAmounts
from .hosts_to_ask import HostChoice, ServerLocations

# Why the amounts of a server were not checked, beside the names of `MissingInput`.
NOT_COMPARED = "not_compared"
UNCHANGED = "unchanged"

# What no lookup shows.
_BEYOND_LOOKUPS = frozenset({"pci_alias", "flavor"})


class AmountNominator:
    """What the listings of one reading say of the amounts of servers.

    server_details: servers by uuid, as far as they were read with their flavors.
    """

    def __init__(
        self,
        index: ListingsIndex,
        server_details: Mapping[str, Server],
        choice: HostChoice,
        pci_aliases: Mapping[str, PciAlias],
    ) -> None:
        self._index = index
        self._choice = choice
        self._compared: dict[str, ListedComparison] = {}
        for uuid, server in server_details.items():
            allocations = index.listings.allocations.get(uuid)
            # A server without an allocation is a candidate for that alone.
            if allocations:
                self._compared[uuid] = compare_listed(server, allocations, pci_aliases)

    def names(self, consumer: str) -> bool:
        """Return whether a server has to be looked up for its amounts."""
        compared = self._compared.get(consumer)
        if compared is None:
            return False
        if self._index.listings.scope.names_amounts:
            return not compared.fits or self._needs_lookup(consumer, compared)
        # A lookup of each server with a device would cost too much in every run.
        return not compared.fits and not compared.explained

    def _needs_lookup(self, consumer: str, compared: ListedComparison) -> bool:
        """Return whether a lookup shows more of a server whose sums are right."""
        if set(compared.missing) - _BEYOND_LOOKUPS:
            return True
        # On which of several providers the amounts have to be, only the tree of the host shows.
        return len(self._index.listings.allocations[consumer]) > 1

    def summarize(self, candidates: Collection[str]) -> ListedAmounts:
        """Return what the listings say of all servers in scope that are not `candidates`."""
        looked_up = set(candidates)
        checked = collections.Counter[str]()
        for uuid, compared in self._compared.items():
            if uuid not in looked_up:
                checked[self._explain(compared)] += 1
        by_host = self._count_by_host(looked_up, checked)
        by_server = checked.pop("", 0)
        settled = {}
        differing = []
        for uuid in sorted(looked_up & set(self._compared)):
            compared = self._compared[uuid]
            if not compared.fits:
                differing.append(uuid)
            elif not self._needs_tree(uuid):
                settled[uuid] = self._explain(compared)
        unchecked = {name: count for name, count in sorted(checked.items()) if count}
        return ListedAmounts(by_server, by_host, unchecked, settled, tuple(differing))

    def _count_by_host(self, looked_up: AbstractSet[str], checked: dict[str, int]) -> int:
        """Return how many servers are on hosts whose figures agree with the sums.

        Those on other hosts are added to `checked`.
        """
        listings = self._index.listings
        if listings.reading.is_incremental:
            listed = sum(node.running_vms for node in self._list_nodes())
            checked[UNCHANGED] = max(listed - len(looked_up | self._compared.keys()), 0)
            return 0
        by_host = 0
        for node in self._list_nodes():
            others = self._count_others(node, looked_up)
            if node.uuid in self._choice.agreeing:
                by_host += others
            else:
                checked[NOT_COMPARED] = checked.get(NOT_COMPARED, 0) + others
        return by_host

    def _needs_tree(self, consumer: str) -> bool:
        return self._index.listings.scope.names_amounts and self._needs_lookup(
            consumer, self._compared[consumer]
        )

    def _explain(self, compared: ListedComparison) -> str:
        """Return what is missing to know the amounts of a server, empty if they are right."""
        if not compared.missing:
            return ""
        # What a lookup would show is not missing: nobody asked for it.
        if not self._index.listings.scope.names_amounts:
            for name in compared.missing:
                if name in _BEYOND_LOOKUPS:
                    return name
            return NOT_COMPARED
        return compared.missing[0]

    def _list_nodes(self) -> list[Hypervisor]:
        """Return the compute nodes in scope, of ironic's one for each service."""
        shared = set(ServerLocations(self._index).shared_hosts)
        nodes: dict[str, Hypervisor] = {}
        for uuid, node in self._index.nodes.items():
            if not self._index.covers(uuid):
                continue
            # Each node of a service with several lists the servers of all.
            nodes.setdefault(node.host if node.host in shared else uuid, node)
        return list(nodes.values())

    def _count_others(self, node: Hypervisor, looked_up: Collection[str]) -> int:
        """Return how many servers on a compute node the listings say nothing else of."""
        if node.servers is None:
            return node.running_vms
        count = 0
        for uuid in node.servers:
            if uuid not in looked_up and uuid not in self._compared:
                count += 1
        return count
