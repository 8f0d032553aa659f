# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the hypervisor listing shows each server, and which allocations fit that. Pure."""

from __future__ import annotations

import dataclasses as d
from collections.abc import Collection, Iterable, Iterator, Mapping

from ..facts.listings_index import ListingsIndex, group_by_tree
from ..models.nova import Hypervisor, Migration, Server
from ..models.placement import Allocations, Resources
from ..models.snapshot import Evidence, Listings
from .node_usage import find_mismatched_nodes, sum_by_tree


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


# Of the few hosts of a shard most may have the same fault; so many have to agree before what they
# have counts as usual.
_MIN_AGREEING_NODES = 5
# What a host reserves is only known from other hosts.
_MIN_NODES_TO_COMPARE = 2


def choose_nodes_for_server_listing(listings: Listings) -> Collection[str]:
    """Return the compute nodes to be asked for their servers one by one, as roots.

    There are none where the hypervisor listing came with the servers of all hosts.
    """
    if listings.scope.is_narrow:
        return _list_nodes_in_trees(listings, _list_allocated_roots(listings))
    if not listings.scope.groups.is_empty:
        return _list_nodes_in_trees(listings, ())
    return ()


def _list_nodes_in_trees(listings: Listings, more_roots: Collection[str]) -> set[str]:
    """Return the compute nodes whose trees were read, and those with one of `more_roots`."""
    nodes = {node.uuid for node in listings.hypervisors.value or ()}
    # None stands for all trees.
    if listings.trees is None:
        return nodes
    return nodes & {*listings.trees, *more_roots}


def _list_allocated_roots(listings: Listings) -> set[str]:
    """Return the roots of all providers of the allocations that were read."""
    roots = set()
    for allocations in listings.allocations.values():
        for uuid in allocations:
            # Placement may have made a provider after it listed them.
            if uuid in listings.providers:
                roots.add(listings.providers[uuid].root)
    return roots


@d.dataclass(frozen=True)
class HostChoice:
    """The hosts of which the servers are to be read with their flavors.

    hosts: sorted.
    agreeing: of the others, the compute nodes whose figures agree with the sums of all allocations.
    """

    hosts: tuple[str, ...] = ()
    agreeing: frozenset[str] = frozenset()


def choose_hosts_for_server_details(index: ListingsIndex) -> HostChoice:
    """Return the hosts of which the servers are to be read with their flavors.

    These are hosts where a server may have the wrong amounts, or an allocation on a child provider
    that nothing explains, and hosts with several compute nodes, for which the hypervisor listing
    does not say which server is on which. Where the user names hosts or the kind `wrong_amount`,
    they are all hosts of the scope.
    """
    scope = index.listings.scope
    # While a cell is down, Nova lists no figures of compute nodes that could be compared.
    if not index.listings.every_cell_listed:
        return HostChoice()
    covered = {node.host for uuid, node in index.nodes.items() if index.covers(uuid)}
    if scope.names_amounts or (scope.hosts and scope.includes_any("wrong_amount")):
        return HostChoice(tuple(sorted(covered)))
    if scope.needs_every_lookup:
        return HostChoice()
    locations = ServerLocations(index)
    hosts = covered & set(locations.shared_hosts)
    agreeing: frozenset[str] = frozenset()
    if scope.includes_any("wrong_amount"):
        mismatched, agreeing = _compare_figures(index, locations)
        hosts |= mismatched
    if scope.includes_any("leaked_child", "leaked_port"):
        hosts |= _list_hosts_with_children(index, locations)
    return HostChoice(tuple(sorted(hosts)), agreeing)


def _compare_figures(
    index: ListingsIndex, locations: ServerLocations
) -> tuple[set[str], frozenset[str]]:
    """Return the hosts of which more or less is allocated than nova-compute says is used.

    Return also the compute nodes where it is the same.
    """
    covered = {uuid: node for uuid, node in index.nodes.items() if index.covers(uuid)}
    min_agreeing = 1
    # A part of a cloud can be so small that its few hosts are all wrong in the same way.
    if index.listings.scope.shard or not index.listings.scope.groups.is_empty:
        min_agreeing = _MIN_AGREEING_NODES
    counted = sum_by_tree(_list_counted_amounts(index, locations), index.providers)
    mismatched = set(find_mismatched_nodes(covered, counted, min_agreeing))
    # What nova-compute counts of a server that has nothing there hides what another has too much.
    mismatched |= covered.keys() & locations.list_nodes_with_unclaimed_servers()
    hosts = set()
    for uuid in mismatched:
        # A nova-compute that is down says nothing about what is used now.
        if index.nodes[uuid].state == "up":
            hosts.add(index.nodes[uuid].host)
    agreeing = frozenset(covered) - mismatched
    # A single host agrees with itself, whatever it has.
    if len(agreeing) < _MIN_NODES_TO_COMPARE:
        agreeing = frozenset()
    return hosts, agreeing


def _list_counted_amounts(
    index: ListingsIndex, locations: ServerLocations
) -> Iterator[tuple[str, Resources]]:
    """Yield each provider with the amounts that nova-compute counts, consumer by consumer."""
    for consumer, allocations in index.listings.allocations.items():
        yield from locations.filter_counted(consumer, allocations).items()


def _list_hosts_with_children(index: ListingsIndex, locations: ServerLocations) -> set[str]:
    """Return the hosts with a server in its place that has an allocation on a child provider."""
    hosts = set()
    for consumer, allocations in index.listings.allocations.items():
        if not locations.has_only_own_tree(consumer, allocations):
            continue
        for root, providers in group_by_tree(allocations, index).items():
            if root and providers != {root}:
                hosts.add(index.nodes[root].host)
    return hosts


def choose_nodes_for_absence_proof(
    index: ListingsIndex, evidence_by_uuid: Mapping[str, Evidence]
) -> Collection[str]:
    """Return the compute nodes to be asked for their servers before a server counts as absent.

    A search of the cells does not replace this: Nova says nothing when it leaves out a cell whose
    servers it cannot read (nova/compute/multi_cell_list.py). A request for a host of that cell
    fails.
    """
    absent = []
    for evidence in evidence_by_uuid.values():
        if evidence.server.status == 404 or _has_no_host(evidence.server.value):
            absent.append(evidence)
    # It may be where it or a migration of it has an allocation, and at both ends of each.
    migrations: list[Migration] = []
    for evidence in absent:
        migrations.extend(index.get_listed_migrations(evidence.uuid).value or ())
    hosts: set[str | None] = set()
    for migration in migrations:
        hosts |= {migration.source_compute, migration.dest_compute}
    roots = _list_roots_of(absent, index)
    for migration in migrations:
        if migration.uuid in evidence_by_uuid:
            roots |= _list_roots_of([evidence_by_uuid[migration.uuid]], index)
    return {root for root, node in index.nodes.items() if root in roots or node.host in hosts}


def _list_roots_of(consumers: Iterable[Evidence], index: ListingsIndex) -> set[str | None]:
    """Return the roots of all providers in the allocations of the consumers."""
    roots: set[str | None] = set()
    for evidence in consumers:
        if evidence.allocation.value:
            roots.update(map(index.get_root, evidence.allocation.value.resources))
    return roots


def _has_no_host(server: Server | None) -> bool:
    return server is not None and not server.host
