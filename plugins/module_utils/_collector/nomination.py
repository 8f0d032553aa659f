# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""Which consumers are candidates, by the listings alone. Pure.

A listing only names candidates; only direct answers about a candidate prove anything.
"""

from __future__ import annotations

import collections
import itertools
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._collector.shards import (
    is_left_to_other_shard,
)
from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
    sum_amounts_by_key,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.flavor import (
    calculate_resources,
    list_special_specs,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import (
    SnapshotIndex,
    group_by_tree,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.soundness import (
    list_down_cell_hosts,
    list_failed_checks,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Hypervisor,
        Migration,
        Server,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Allocations,
        Provider,
        Resources,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import (
        Evidence,
        Snapshot,
    )

# Not the disk: servers may hold that of a sharing provider, and nova-compute counts it all the
# same.
_COMPARED_CLASSES = ("VCPU", "MEMORY_MB")
# Of the few hosts of a shard most may have the same fault; so many have to agree before what they
# have counts as usual.
_MIN_AGREEING_NODES = 5


def find_candidates(
    snapshot: Snapshot,
    server_details: Mapping[str, Server] | None = None,
    living: Collection[str] = (),
) -> list[str]:
    """Return the consumers that the listings do not show to be in order, sorted.

    In order is a server that holds the tree of its host and nothing else.

    server_details: servers by uuid whose flavor was read because their host was one of
        `choose_hosts_for_server_details`.
    living: the servers that Nova lists, where it could not list its compute nodes; those are not
        candidates then.
    """
    index = SnapshotIndex(snapshot)
    if not index.nodes:
        return _list_consumers_not_living(index, living)
    scope, without_allocation = snapshot.scope, _list_servers_without_allocation(index)
    allocations_by_consumer = snapshot.allocations
    if scope.shard:
        allocations_by_consumer = {
            consumer: allocations
            for consumer, allocations in allocations_by_consumer.items()
            if not is_left_to_other_shard(consumer, allocations, index)
        }
    if scope.needs_every_lookup:
        return sorted({*allocations_by_consumer, *scope.consumers, *without_allocation})
    locations, details = _ServerLocations(index), server_details or {}
    candidates = without_allocation
    for consumer, allocations in allocations_by_consumer.items():
        server = details.get(consumer)
        # On a host with several nodes only the server itself says on which it is.
        at_home = locations.has_only_own_tree(consumer, allocations) or _has_only_tree_of_node(
            server, allocations, index
        )
        if not at_home or (server is not None and _differs_from_flavor(server, allocations, index)):
            candidates.add(consumer)
    return sorted(candidates)


def _list_consumers_not_living(index: SnapshotIndex, living: Collection[str]) -> list[str]:
    """Return the consumers that are not `living` servers, those on hosts of silent cells last."""
    silent = set(list_down_cell_hosts(index.snapshot.services))
    first, last = [], []
    for consumer, allocations in index.snapshot.allocations.items():
        if consumer in living:
            continue
        if silent.isdisjoint(index.list_hosts_of(allocations)):
            first.append(consumer)
        else:
            last.append(consumer)
    return [*sorted(first), *sorted(last)]


def limit_candidates(candidates: list[str], snapshot: Snapshot, at_most: int) -> list[str]:
    """Return the `candidates` that can be judged, and `at_most` so many of the others.

    The others are read only as examples.
    """
    if list_failed_checks(snapshot):
        return candidates[:at_most]
    index = SnapshotIndex(snapshot)
    if not index.unjudged_hosts:
        return candidates
    kept, silent = [], 0
    for consumer in candidates:
        if _may_be_in_silent_cell(snapshot.allocations.get(consumer, {}), index):
            silent += 1
            if silent > at_most:
                continue
        kept.append(consumer)
    return kept


def _may_be_in_silent_cell(allocations: Allocations, index: SnapshotIndex) -> bool:
    """Return whether an allocation may be of a host in a cell that does not answer."""
    for root in group_by_tree(allocations, index):
        node = index.nodes.get(root or "")
        if node is None or node.host in index.unjudged_hosts:
            return True
    return False


def choose_samples(servers: Sequence[Server], own_project: str | None, count: int) -> list[Server]:
    """Return `count` of `servers`, of as many projects as possible, our own project last."""
    by_project: dict[str | None, list[Server]] = {}
    for server in servers:
        by_project.setdefault(server.project, []).append(server)
    own = by_project.pop(own_project, [])
    samples: list[Server] = []
    # One server of each project in turn.
    for turn in itertools.zip_longest(*by_project.values()):
        samples.extend(filter(None, turn))
    return [*samples, *own][:count]


def find_roots_without_node(
    index: SnapshotIndex, allocations_by_consumer: Iterable[Allocations]
) -> set[str]:
    """Return the root providers of the allocations that are not a listed compute node's."""
    roots: set[str] = set()
    for allocations in allocations_by_consumer:
        roots.update(filter(None, group_by_tree(allocations, index)))
    return roots - set(index.nodes)


def choose_hosts_for_server_details(snapshot: Snapshot) -> list[str]:
    """Return the hosts of which the servers are to be read with their flavors, sorted.

    These are hosts where a server that is at home may hold the wrong amounts, or a child provider
    that nothing explains, and those with several compute nodes, of which the hypervisor listing
    does not say which server is on which.
    """
    index, scope = SnapshotIndex(snapshot), snapshot.scope
    if scope.needs_every_lookup or scope.mode == "triage" or not snapshot.every_cell_listed:
        return []
    locations = _ServerLocations(index)
    covered = {node.host for uuid, node in index.nodes.items() if index.covers(uuid)}
    hosts = covered & set(locations.shared_hosts)
    if scope.includes_any("wrong_amount"):
        hosts |= _list_hosts_with_mismatch(index, locations)
    if scope.includes_any("leaked_child"):
        hosts |= _list_hosts_with_children(index, locations)
    return sorted(hosts)


def _list_hosts_with_mismatch(index: SnapshotIndex, locations: _ServerLocations) -> set[str]:
    """Return the hosts of which more or less is allocated than nova-compute says is used."""
    covered = {uuid: node for uuid, node in index.nodes.items() if index.covers(uuid)}
    min_agreeing = 1
    if index.snapshot.scope.shard:
        min_agreeing = _MIN_AGREEING_NODES
    counted = sum_by_tree(_list_counted_amounts(index, locations), index.providers)
    hosts = set()
    for uuid in find_mismatched_nodes(covered, counted, min_agreeing):
        # A nova-compute that is down says nothing about what is used now.
        if index.nodes[uuid].state == "up":
            hosts.add(index.nodes[uuid].host)
    return hosts


def _list_counted_amounts(
    index: SnapshotIndex, locations: _ServerLocations
) -> Iterator[tuple[str, Resources]]:
    """Yield each provider with the amounts that nova-compute counts, consumer by consumer."""
    for consumer, allocations in index.snapshot.allocations.items():
        yield from locations.filter_counted(consumer, allocations).items()


def _list_hosts_with_children(index: SnapshotIndex, locations: _ServerLocations) -> set[str]:
    """Return the hosts of which a server that is at home holds a child provider."""
    hosts = set()
    for consumer, allocations in index.snapshot.allocations.items():
        if not locations.has_only_own_tree(consumer, allocations):
            continue
        for root, providers in group_by_tree(allocations, index).items():
            if root and providers != {root}:
                hosts.add(index.nodes[root].host)
    return hosts


def choose_nodes_for_server_listing(snapshot: Snapshot) -> Collection[str]:
    """Return the compute nodes to be asked for their servers one by one, as roots.

    There are none where the hypervisor listing came with the servers of all hosts.
    """
    index = SnapshotIndex(snapshot)
    if snapshot.scope.is_narrow:
        roots: set[str | None] = set()
        for allocations in snapshot.allocations.values():
            roots.update(map(index.get_root, allocations))
        return {root for root in index.nodes if root in roots or index.covers(root)}
    if snapshot.scope.mode == "triage":
        return [root for root in index.nodes if index.covers(root)]
    return ()


def choose_nodes_for_absence_proof(snapshot: Snapshot, fresh: bool) -> Collection[str]:
    """Return the compute nodes to be asked for their servers before a server counts as absent.

    That Nova has no record of a consumer at all counts only when no host shows it. Triage does
    without that kind, and a renewed proof (`fresh`) has asked every host already if it is of that
    kind.
    """
    index, scope = SnapshotIndex(snapshot), snapshot.scope
    absent = [
        evidence
        for evidence in snapshot.evidence.values()
        if evidence.server.status == 404 or _has_no_host(evidence.server.value)
    ]
    # 400 for the marker: the uuid is not a migration's either.
    is_unknown = any(evidence.marker.status == 400 for evidence in absent)
    if is_unknown and not fresh and scope.mode == "full" and scope.includes_any("unknown_consumer"):
        return index.nodes
    # It may be where it holds something, where a migration of it does, and at both ends of each.
    migrations: list[Migration] = []
    for evidence in absent:
        migrations.extend(index.get_listed_migrations(evidence.uuid).value or ())
    hosts: set[str | None] = set()
    for migration in migrations:
        hosts |= {migration.source_compute, migration.dest_compute}
    roots = _list_roots_of(absent, index)
    for migration in migrations:
        if migration.uuid in snapshot.evidence:
            roots |= _list_roots_of([snapshot.evidence[migration.uuid]], index)
    return {root for root, node in index.nodes.items() if root in roots or node.host in hosts}


def _list_roots_of(consumers: Iterable[Evidence], index: SnapshotIndex) -> set[str | None]:
    """Return the roots of all providers that the consumers hold, by the evidence about them."""
    roots: set[str | None] = set()
    for evidence in consumers:
        if evidence.allocation.value:
            roots.update(map(index.get_root, evidence.allocation.value.resources))
    return roots


def sum_by_tree(
    amounts: Iterable[tuple[str, Resources]], providers: Mapping[str, Provider]
) -> Mapping[str, Resources]:
    """Return the sums of the amounts of providers, by the roots of their trees."""
    of_roots = []
    for uuid, resources in amounts:
        if uuid in providers:
            of_roots.append((providers[uuid].root, resources))
    return sum_amounts_by_key(of_roots)


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


class _ServerLocations:
    """Where the hypervisor listing shows each server, by the root of its compute node."""

    def __init__(self, index: SnapshotIndex) -> None:
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


def _list_servers_without_allocation(index: SnapshotIndex) -> set[str]:
    """Return the servers on the hosts in scope that hold nothing."""
    servers: set[str] = set()
    for node in index.nodes.values():
        if index.covers(node.uuid):
            servers.update(node.servers or ())
    return servers.difference(index.snapshot.allocations)


def _has_no_host(server: Server | None) -> bool:
    return server is not None and not server.host


def _has_only_tree_of_node(
    server: Server | None, allocations: Allocations, index: SnapshotIndex
) -> bool:
    """Return whether the allocations are of the compute node on which the server says it is."""
    if server is None:
        return False
    tree = index.find_tree_at(server.host, server.node)
    return tree is not None and set(group_by_tree(allocations, index)) == {tree}


def _differs_from_flavor(server: Server, allocations: Allocations, index: SnapshotIndex) -> bool:
    """Return whether a server of a plain flavor holds something else of its host than that flavor.

    That is a child provider, or other amounts.
    """
    flavor = server.flavor
    if flavor is None or list_special_specs(flavor.extra_specs or {}):
        return False
    on_host: dict[str, int] = {}
    for provider, amounts in allocations.items():
        if index.is_sharing(provider):
            continue
        if index.get_root(provider) != provider:
            return True
        on_host.update(amounts)
    has_shared_disk = any(map(index.is_sharing, allocations))
    # The listing does not say whether the server boots from a volume.
    for volume_backed in (False, True):
        expected = dict(calculate_resources(flavor, volume_backed))
        if has_shared_disk:
            expected.pop("DISK_GB", None)
        if on_host == expected:
            return False
    return True
