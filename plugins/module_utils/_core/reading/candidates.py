# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Selects the candidates, and the hosts that are asked for their servers. Pure.

A listing only names candidates; only direct answers about a candidate prove anything.
"""

from __future__ import annotations

import collections
import dataclasses as d
import typing as t
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

from ..._common.errors import InvalidInput
from ..._common.text import summarize_names
from ..expected.amounts import ListedComparison, compare_listed
from ..facts.devices import list_network_amounts
from ..facts.index import ListingsIndex, group_by_tree
from ..facts.services import list_down_cell_hosts
from ..facts.soundness import list_failed_checks
from ..models import snapshot as q
from ..models.nova import Hypervisor, Server
from ..models.other_services import PciAlias
from ..models.placement import Allocations, Provider, Resources
from ..models.snapshot import Evidence, ListedAmounts, Listings, Snapshot
from ..options.scope import is_needed, needs_every_lookup
from .allocations import is_left_to_other_shard


def find_candidates(
    index: ListingsIndex,
    server_details: Mapping[str, Server] | None = None,
    living: Collection[str] = (),
    amounts: AmountNominator | None = None,
) -> list[str]:
    """Return the consumers that the listings do not show to be in order, sorted.

    A server is in order if its allocation is in the tree of its host and nowhere else.

    server_details: servers by uuid whose flavor was read because their host was one of
        `choose_hosts_for_server_details`.
    living: the servers that Nova lists, where it could not list its compute nodes; those are not
        candidates then.
    amounts: what names servers whose amounts have to be looked up, made of `server_details`.
    """
    if not index.nodes:
        return _list_consumers_not_living(index, living)
    scope, without_allocation = index.listings.scope, _list_servers_without_allocation(index)
    allocations_by_consumer = index.listings.allocations
    if scope.shard:
        allocations_by_consumer = {
            consumer: allocations
            for consumer, allocations in allocations_by_consumer.items()
            if not is_left_to_other_shard(consumer, allocations, index)
        }
    if needs_every_lookup(scope):
        return sorted({*allocations_by_consumer, *scope.consumers, *without_allocation})
    locations, details = ServerLocations(index), server_details or {}
    amounts = amounts or AmountNominator(index, details, HostChoice(), {})
    candidates = without_allocation
    for consumer, allocations in allocations_by_consumer.items():
        server = details.get(consumer)
        # On a host with several nodes only the server itself says on which it is.
        at_home = locations.has_only_own_tree(consumer, allocations) or _has_only_tree_of_node(
            server, allocations, index
        )
        has_wrong_amounts = amounts.names(consumer)
        # What its ports request, only a lookup shows. The user has asked for it of every server.
        may_have_leak = is_needed(q.BANDWIDTH, scope) and list_network_amounts(allocations)
        if not at_home or has_wrong_amounts or may_have_leak:
            candidates.add(consumer)
    return sorted(candidates)


def _list_consumers_not_living(index: ListingsIndex, living: Collection[str]) -> list[str]:
    """Return the consumers that are not `living` servers, those on hosts of silent cells last."""
    silent, held = set(list_down_cell_hosts(index.listings.services)), index.listings.allocations

    def get_key(consumer: str) -> tuple[bool, str]:
        return not silent.isdisjoint(index.list_hosts_of(held[consumer])), consumer

    return sorted(held.keys() - set(living), key=get_key)


def limit_candidates(candidates: list[str], index: ListingsIndex, at_most: int) -> list[str]:
    """Return the `candidates` that can be judged, and `at_most` so many of the others.

    The others are read only as examples.
    """
    if list_failed_checks(index.listings):
        return candidates[:at_most]
    if not index.unjudged_hosts:
        return candidates
    kept, silent = [], 0
    for consumer in candidates:
        if _may_be_in_silent_cell(index.listings.allocations.get(consumer, {}), index):
            silent += 1
            if silent > at_most:
                continue
        kept.append(consumer)
    return kept


def _may_be_in_silent_cell(allocations: Allocations, index: ListingsIndex) -> bool:
    """Return whether an allocation may be of a host in a cell that does not answer."""
    nodes = (index.nodes.get(root or "") for root in group_by_tree(allocations, index))
    return any(node is None or node.host in index.unjudged_hosts for node in nodes)


def _list_servers_without_allocation(index: ListingsIndex) -> set[str]:
    """Return the servers on the hosts in scope that have no allocation."""
    nodes = filter(index.covers, index.nodes)
    servers = set().union(*(index.nodes[uuid].servers or () for uuid in nodes))
    return servers.difference(index.listings.allocations)


def _has_only_tree_of_node(
    server: Server | None, allocations: Allocations, index: ListingsIndex
) -> bool:
    """Return whether the allocations are of the compute node on which the server says it is."""
    if server is None:
        return False
    tree = index.find_tree_at(server.host, server.node)
    return tree is not None and set(group_by_tree(allocations, index)) == {tree}


def check_named_consumers(snapshot: Snapshot, seen_before: Collection[str]) -> None:
    """Raise InvalidInput for a named consumer that neither Placement nor Nova knows.

    seen_before: the consumers that an earlier run reported, which it may have removed.
    """
    unknown = []
    for uuid in snapshot.scope.consumers:
        evidence = snapshot.evidence.get(uuid)
        if evidence is not None and uuid not in seen_before and _is_unknown(evidence, snapshot):
            unknown.append(uuid)
    if unknown:
        raise InvalidInput(
            f"consumers: neither Placement nor Nova knows {summarize_names(unknown)}. "
            "Give the UUIDs of servers, migrations or other consumers of this cloud."
        )


def _is_unknown(evidence: Evidence, snapshot: Snapshot) -> bool:
    """Return whether every answer about a uuid says that there is nothing of it.

    An answer that says nothing, such as that of a cell that is down, does not count.
    """
    allocation = evidence.allocation.value
    if allocation is None or allocation.resources:
        return False
    if evidence.uuid in snapshot.allocations:
        return False
    if evidence.server.status != 404 or evidence.marker.status != 400:
        return False
    if evidence.migrations.value != () or evidence.deleted_listing.value != ():
        return False
    has_rows = any(answer.value != () for answer in evidence.rows)
    return not has_rows and not evidence.actions.value


# Not the disk: servers may hold that of a sharing provider, and nova-compute counts it all the
# same.
_COMPARED_CLASSES = ("VCPU", "MEMORY_MB")


def sum_by_tree(
    amounts: Iterable[tuple[str, Resources]], providers: Mapping[str, Provider]
) -> dict[str, Resources]:
    """Return the sums of the amounts of providers, by the roots of their trees."""
    sums: dict[str, collections.Counter[str]] = {}
    for uuid, resources in amounts:
        if uuid in providers:
            sums.setdefault(providers[uuid].root, collections.Counter()).update(resources)
    return t.cast("dict[str, Resources]", sums)


def find_mismatched_nodes(
    nodes: Mapping[str, Hypervisor], allocated: Mapping[str, Resources], min_agreeing: int = 1
) -> list[str]:
    """Return the compute nodes whose use, as nova-compute reports it, is not what is `allocated`.

    Those that are not up, or report nothing, are among them. What a host reserves counts as used.
    How much that is differs from cloud to cloud and hardly from host to host, so the difference
    that most hosts have is taken for it; without such a difference, or when fewer than
    `min_agreeing` have it, every host is returned.
    """
    mismatched = {uuid for uuid, node in nodes.items() if node.state != "up" or not node.used}
    for cls in _COMPARED_CLASSES:
        gaps = {}
        for uuid, node in nodes.items():
            if uuid in mismatched:
                continue
            amounts = allocated.get(uuid, {})
            # Placement has pinned and shared processors apart, nova-compute counts them as one.
            total = sum(amounts.get(member, 0) for member in node.PLACEMENT_CLASSES[cls])
            gaps[uuid] = node.used.get(cls, 0) - total
        mismatched |= _list_unusual(gaps, min_agreeing)
    return sorted(mismatched)


def _list_unusual(gaps: Mapping[str, int], min_agreeing: int) -> set[str]:
    """Return the keys whose number is not that of most; all keys if most do not have the same."""
    if not gaps:
        return set()
    [(usual, times)] = collections.Counter(gaps.values()).most_common(1)
    if times < max(min_agreeing, len(gaps) // 2 + 1):
        return set(gaps)
    return {key for key, number in gaps.items() if number != usual}


# Why the amounts of a server were not checked, beside the names of `MissingInput`.
NOT_COMPARED = "not_compared"
UNCHANGED = "unchanged"

# What only a root provider has.
_CLASSES_OF_ROOTS = frozenset({"VCPU", "PCPU", "MEMORY_MB", "DISK_GB"})

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
        self._parents = {row.parent for row in index.providers.values()}
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
        if is_needed(q.FLAVORS, self._index.listings.scope):
            return not compared.fits or self._needs_lookup(consumer, compared)
        # A lookup of each server with a device would cost too much in every run.
        return not compared.fits and not compared.explained

    def _needs_lookup(self, consumer: str, compared: ListedComparison) -> bool:
        """Return whether a lookup shows more of a server whose sums are right."""
        if set(compared.missing) - _BEYOND_LOOKUPS:
            return True
        # On which of several providers the amounts have to be, only the tree of the host shows.
        allocations = self._index.listings.allocations[consumer]
        if len(allocations) > 1:
            return True
        [(provider, amounts)] = allocations.items()
        # What every host has on its root provider cannot be on the wrong one.
        return provider in self._parents and not _CLASSES_OF_ROOTS.issuperset(amounts)

    def summarize(self, candidates: Collection[str]) -> ListedAmounts:
        """Return what the listings say of all servers in scope that are not `candidates`."""
        looked_up = set(candidates)
        checked = collections.Counter[str]()
        for uuid, compared in self._compared.items():
            if uuid not in looked_up:
                checked[self._explain(compared)] += 1
        by_host = self._count_by_host(looked_up, checked)
        by_server = checked.pop("", 0)
        needs_flavors = is_needed(q.FLAVORS, self._index.listings.scope)
        settled, differing = {}, []
        for uuid in sorted(looked_up & set(self._compared)):
            compared = self._compared[uuid]
            if not compared.fits:
                differing.append(uuid)
            elif not (needs_flavors and self._needs_lookup(uuid, compared)):
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

    def _explain(self, compared: ListedComparison) -> str:
        """Return what is missing to know the amounts of a server, empty if they are right."""
        if not compared.missing:
            return ""
        # What a lookup would show is not missing: nobody asked for it.
        if not is_needed(q.FLAVORS, self._index.listings.scope):
            beyond = (name for name in compared.missing if name in _BEYOND_LOOKUPS)
            return next(beyond, NOT_COMPARED)
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
        return len(set(node.servers).difference(looked_up, self._compared))


class ServerLocations:
    """Where the hypervisor listing shows each server, by the root of its compute node."""

    def __init__(self, index: ListingsIndex) -> None:
        self._index = index
        nodes_by_host: dict[str, list[Hypervisor]] = {}
        for node in index.nodes.values():
            nodes_by_host.setdefault(node.host, []).append(node)
        self._servers: dict[str | None, frozenset[str] | None] = {}
        self.shared_hosts: list[str] = []
        for host, (node, *more) in sorted(nodes_by_host.items()):
            # Of a service with many nodes (ironic) the listing does not say which node a server
            # is on.
            if more:
                self.shared_hosts.append(host)
            else:
                # None where it was not asked for them.
                servers = node.servers
                self._servers[node.uuid] = None if servers is None else frozenset(servers)

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
        held = self._index.listings.allocations
        return {
            root
            for root, servers in self._servers.items()
            for uuid in servers or ()
            if root not in map(self._index.get_root, held.get(uuid, ()))
        }

    def filter_counted(self, consumer: str, allocations: Allocations) -> Allocations:
        """Return the allocations of a consumer that nova-compute counts as used.

        It counts a server on its host, and both hosts of a migration that is under way.
        """
        migration = self._index.migrations.get(consumer)
        if migration is not None and migration.ended:
            return {}
        if migration is not None:
            return allocations
        return {
            provider: amounts
            for provider, amounts in allocations.items()
            if consumer in (self._servers.get(self._index.get_root(provider)) or ())
        }


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
    allocated = set().union(*listings.allocations.values())
    # Placement may have made a provider after it listed them.
    return {listings.providers[uuid].root for uuid in allocated & listings.providers.keys()}


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
    does not say which server is on which. Where the user names hosts, or a kind needs
    the flavors of all servers, they are all hosts of the scope.
    """
    scope = index.listings.scope
    # While a cell is down, Nova lists no figures of compute nodes that could be compared.
    if not index.listings.every_cell_listed:
        return HostChoice()
    covered = {node.host for uuid, node in index.nodes.items() if index.covers(uuid)}
    if is_needed(q.FLAVORS, scope) or (scope.hosts and is_needed(q.USAGE, scope)):
        return HostChoice(tuple(sorted(covered)))
    if needs_every_lookup(scope):
        return HostChoice()
    locations = ServerLocations(index)
    hosts = covered & set(locations.shared_hosts)
    agreeing: frozenset[str] = frozenset()
    if is_needed(q.USAGE, scope):
        mismatched, agreeing = _compare_figures(index, locations)
        hosts |= mismatched
    if is_needed(q.CHILDREN, scope):
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
    amounts = (
        counted
        for consumer, allocations in index.listings.allocations.items()
        for counted in locations.filter_counted(consumer, allocations).items()
    )
    counted = sum_by_tree(amounts, index.providers)
    mismatched = set(find_mismatched_nodes(covered, counted, min_agreeing))
    # What nova-compute counts of a server that has nothing there hides what another has too much.
    mismatched |= covered.keys() & locations.list_nodes_with_unclaimed_servers()
    # A nova-compute that is down says nothing about what is used now.
    hosts = {covered[uuid].host for uuid in mismatched if covered[uuid].state == "up"}
    agreeing = frozenset(covered) - mismatched
    # A single host agrees with itself, whatever it has.
    if len(agreeing) < _MIN_NODES_TO_COMPARE:
        agreeing = frozenset()
    return hosts, agreeing


def _list_hosts_with_children(index: ListingsIndex, locations: ServerLocations) -> set[str]:
    """Return the hosts with a server in its place that has an allocation on a child provider."""
    return {
        index.nodes[root].host
        for consumer, allocations in index.listings.allocations.items()
        if locations.has_only_own_tree(consumer, allocations)
        for root, providers in group_by_tree(allocations, index).items()
        if root and providers != {root}
    }
