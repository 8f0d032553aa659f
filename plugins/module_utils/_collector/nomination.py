# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""Who is worth a closer look: what the listings alone say. A listing nominates; only direct answers
convict. Pure.
"""

from __future__ import annotations

import collections
import itertools
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._collector.shards import (
    is_left_to_other_shard,
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
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Hypervisor,
        Server,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Allocations,
        Provider,
        Resources,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Snapshot

# Not its disk: servers may claim that of a sharing provider, and nova-compute counts it all the
# same.
_COMPARED_CLASSES = ("VCPU", "MEMORY_MB")
# Of the few hosts of a shard most may have the same fault; so many have to agree before what they
# have is taken for usual.
_MIN_AGREEING_NODES = 5


def find_candidates(
    snapshot: Snapshot,
    server_details: Mapping[str, Server] | None = None,
    living: Collection[str] = (),
) -> list[str]:
    """Return the consumers that the listings do not show to be servers that hold the tree of their
    host and nothing else.

    server_details: servers by uuid whose flavor was read because their host was
        `choose_hosts_for_server_details`.
    living: the servers that Nova lists, where it could not list its compute nodes; those are not
        nominated then.
    """
    index = SnapshotIndex(snapshot)
    if not index.nodes:
        silent = set(list_down_cell_hosts(snapshot.services))
        unknown = [consumer for consumer in snapshot.allocations if consumer not in living]
        return sorted(
            unknown,
            key=lambda consumer: (
                bool(silent & set(index.list_hosts_of(snapshot.allocations[consumer]))),
                consumer,
            ),
        )
    scope, without = snapshot.scope, _list_servers_without_allocation(index)
    allocations_by_consumer = snapshot.allocations
    if scope.shard:
        allocations_by_consumer = {
            consumer: allocations
            for consumer, allocations in allocations_by_consumer.items()
            if not is_left_to_other_shard(consumer, allocations, index)
        }
    if scope.needs_every_lookup:
        return sorted({*allocations_by_consumer, *scope.consumers, *without})
    home, seen = _ServerLocations(index), server_details or {}
    candidates = without
    for consumer, allocations in allocations_by_consumer.items():
        server = seen.get(consumer)
        at_home = home.has_only_own_tree(consumer, allocations) or _has_only_tree_of_node(
            server, allocations, index
        )
        if not at_home or (server is not None and _differs_from_flavor(server, allocations, index)):
            candidates.add(consumer)
    return sorted(candidates)


def limit_candidates(candidates: list[str], snapshot: Snapshot, at_most: int) -> list[str]:
    """Return those of `candidates` about whom something may be concluded, and of the others as many
    as show what it looks like.
    """
    if list_failed_checks(snapshot):
        return candidates[:at_most]
    index = SnapshotIndex(snapshot)
    if not index.unjudged_hosts:
        return candidates
    beyond = [
        consumer
        for consumer in candidates
        if _may_be_in_silent_cell(snapshot.allocations.get(consumer, {}), index)
    ]
    left_out = set(beyond[at_most:])
    return [consumer for consumer in candidates if consumer not in left_out]


def _may_be_in_silent_cell(allocations: Allocations, index: SnapshotIndex) -> bool:
    """Tell whether a consumer holds something that may be of a cell that does not answer."""
    nodes = [index.nodes.get(root or "") for root in group_by_tree(allocations, index)]
    return any(node is None or node.host in index.unjudged_hosts for node in nodes)


def choose_samples(servers: Sequence[Server], own_project: str | None, count: int) -> list[Server]:
    """Return `count` of `servers`, of as many projects as can be, those of other projects than our
    own first.
    """
    by_project: dict[str | None, list[Server]] = {}
    for server in servers:
        by_project.setdefault(server.project, []).append(server)
    others = [of_project for project, of_project in by_project.items() if project != own_project]
    of_others = [
        server for turn in itertools.zip_longest(*others) for server in turn if server is not None
    ]
    return [*of_others, *by_project.get(own_project, [])][:count]


def find_roots_without_node(
    index: SnapshotIndex, allocations_by_consumer: Iterable[Allocations]
) -> set[str]:
    """Return the root providers of `holdings` that no listed compute node stands behind."""
    held = {
        root
        for allocations in allocations_by_consumer
        for root in group_by_tree(allocations, index)
        if root
    }
    return held - set(index.nodes)


def choose_hosts_for_server_details(snapshot: Snapshot) -> list[str]:
    """Return the hosts where a server that is at home may hold the wrong amounts, or a child
    provider that nothing explains.

    And those with several compute nodes, of which the hypervisor listing does not say which server
    is on which.
    """
    index, scope = SnapshotIndex(snapshot), snapshot.scope
    if scope.needs_every_lookup or scope.mode == "triage" or not snapshot.every_cell_listed:
        return []
    home = _ServerLocations(index)
    hosts = {index.nodes[root].host for root in index.nodes if index.covers(root)} & set(
        home.shared_hosts
    )
    if scope.includes_any("wrong_amount"):
        counted = (
            share
            for consumer, allocations in snapshot.allocations.items()
            for share in home.filter_counted(consumer, allocations).items()
        )
        covered = {uuid: node for uuid, node in index.nodes.items() if index.covers(uuid)}
        odd = find_mismatched_nodes(
            covered,
            sum_by_tree(counted, snapshot.providers),
            min_agreeing=_MIN_AGREEING_NODES if scope.shard else 1,
        )
        hosts |= {index.nodes[root].host for root in odd if index.nodes[root].state == "up"}
    if scope.includes_any("leaked_child"):
        at_home = (
            allocations
            for consumer, allocations in snapshot.allocations.items()
            if home.has_only_own_tree(consumer, allocations)
        )
        roots = (
            root
            for allocations in at_home
            for root, held in group_by_tree(allocations, index).items()
            if held != {root}
        )
        hosts |= {index.nodes[root].host for root in roots if root}
    return sorted(hosts)


def choose_nodes_for_server_listing(snapshot: Snapshot) -> Collection[str]:
    """Return the compute nodes that are to be asked for their servers one by one, where not all
    were listed with them.
    """
    index = SnapshotIndex(snapshot)
    if snapshot.scope.is_narrow:
        held = {
            index.get_root(provider)
            for allocations in snapshot.allocations.values()
            for provider in allocations
        }
        return {root for root in index.nodes if root in held or index.covers(root)}
    return (
        [root for root in index.nodes if index.covers(root)]
        if snapshot.scope.mode == "triage"
        else ()
    )


def choose_nodes_for_absence_proof(snapshot: Snapshot, fresh: bool) -> Collection[str]:
    """Return the compute nodes that must be asked for their servers before anybody is said to be on
    none of them.

    That Nova has no memory of a consumer at all counts only when no host shows it. Triage does
    without that kind, and a proof made anew (`fresh`) has asked every host already if it is of that
    kind.
    """
    index, scope = SnapshotIndex(snapshot), snapshot.scope
    nowhere = [
        evidence
        for evidence in snapshot.evidence.values()
        if evidence.server.status == 404 or _has_no_host(evidence.server.value)
    ]
    forgotten = any(evidence.marker.status == 400 for evidence in nowhere)
    if forgotten and not fresh and scope.mode == "full" and scope.includes_any("unknown_consumer"):
        return index.nodes
    # It may be where it holds something, where a migration of it does, and at both ends of each.
    moves = [
        move
        for evidence in nowhere
        for move in index.get_listed_migrations(evidence.uuid).value or ()
    ]
    ends = {host for move in moves for host in (move.source_compute, move.dest_compute)}
    theirs = [
        snapshot.evidence[uuid]
        for uuid in (move.uuid for move in moves)
        if uuid in snapshot.evidence
    ]
    held = (
        evidence.allocation.value.resources
        for evidence in (*nowhere, *theirs)
        if evidence.allocation.value
    )
    claimed = {index.get_root(provider) for allocations in held for provider in allocations}
    return {root for root, node in index.nodes.items() if root in claimed or node.host in ends}


def sum_by_tree(
    amounts: Iterable[tuple[str, Resources]], providers: Mapping[str, Provider]
) -> dict[str, Resources]:
    """Add up shares of providers by the roots of their trees."""
    sums: dict[str, collections.Counter[str]] = {}
    for uuid, share in amounts:
        if uuid in providers:
            sums.setdefault(providers[uuid].root, collections.Counter()).update(share)
    return t.cast("dict[str, Resources]", sums)


def find_mismatched_nodes(
    nodes: Mapping[str, Hypervisor], allocated: Mapping[str, Resources], min_agreeing: int = 1
) -> list[str]:
    """Return the compute nodes whose trees are not `allocated` as nova-compute says they are used,
    or that are not up to say so.

    What a host reserves counts as used. How much that is differs from cloud to cloud and hardly
    from host to host, so the difference that most hosts have is taken for it; where there is no
    such difference, or fewer than `min_agreeing` have it, every host is odd.
    """
    odd = {uuid for uuid, node in nodes.items() if node.state != "up" or not node.used}
    for cls in _COMPARED_CLASSES:
        gaps = {
            uuid: node.used.get(cls, 0)
            - sum(allocated.get(uuid, {}).get(member, 0) for member in node.PLACEMENT_CLASSES[cls])
            for uuid, node in nodes.items()
            if uuid not in odd
        }
        (usual, times), *_others = collections.Counter(gaps.values()).most_common(1) or [(0, 0)]
        odd |= {
            uuid
            for uuid, gap in gaps.items()
            if gap != usual or times < max(min_agreeing, len(gaps) // 2 + 1)
        }
    return sorted(odd)


class _ServerLocations:
    """Where the hypervisor listing shows each server, by the root of its compute node."""

    def __init__(self, index: SnapshotIndex) -> None:
        self._land = index
        by_host: dict[str, list[Hypervisor]] = {}
        for node in index.nodes.values():
            by_host.setdefault(node.host, []).append(node)
        # Of a service with many nodes (ironic) the listing does not say which node a server is on.
        alone = [of_host[0] for of_host in by_host.values() if len(of_host) == 1]
        self.shared_hosts = sorted(host for host, nodes in by_host.items() if len(nodes) > 1)
        self._servers: dict[str | None, frozenset[str] | None] = {
            node.uuid: None if node.servers is None else frozenset(node.servers) for node in alone
        }

    def has_only_own_tree(self, consumer: str, allocations: Allocations) -> bool:
        """Tell whether the consumer is at home; on a host that was not asked for its servers nobody
        is thought not to be.
        """
        root, *others = group_by_tree(allocations, self._land) or (None,)
        if others or root not in self._servers:
            return False
        servers = self._servers[root]
        return servers is None or consumer in servers

    def filter_counted(self, consumer: str, allocations: Allocations) -> Allocations:
        """Return what nova-compute counts of `holding`: a server on its host, and both hosts of a
        migration under way.
        """
        migration = self._land.migrations.get(consumer)
        if migration is not None:
            return {} if migration.ended else allocations
        return {
            provider: share
            for provider, share in allocations.items()
            if consumer in (self._servers.get(self._land.get_root(provider)) or ())
        }


def _list_servers_without_allocation(index: SnapshotIndex) -> set[str]:
    """The servers on the hosts in scope that hold nothing."""
    in_scope = (node for node in index.nodes.values() if index.covers(node.uuid))
    return {
        server
        for node in in_scope
        for server in node.servers or ()
        if server not in index.snapshot.allocations
    }


def _has_no_host(server: Server | None) -> bool:
    return server is not None and not server.host


def _has_only_tree_of_node(
    server: Server | None, allocations: Allocations, index: SnapshotIndex
) -> bool:
    tree = index.find_tree_at(server.host, server.node) if server else None
    return tree is not None and set(group_by_tree(allocations, index)) == {tree}


def _differs_from_flavor(server: Server, allocations: Allocations, index: SnapshotIndex) -> bool:
    """Tell whether a server without special wishes holds a child provider, or other amounts than
    its flavor's on its host.
    """
    flavor = server.flavor
    if flavor is None or list_special_specs(flavor.extra_specs or {}):
        return False
    if any(
        index.get_root(provider) != provider and not index.is_sharing(provider)
        for provider in allocations
    ):
        return True
    on_host = {
        cls: amount
        for provider, share in allocations.items()
        if not index.is_sharing(provider)
        for cls, amount in share.items()
    }
    claims = [calculate_resources(flavor, volume_backed) for volume_backed in (False, True)]
    if any(map(index.is_sharing, allocations)):
        claims = [
            {cls: amount for cls, amount in claim.items() if cls != "DISK_GB"} for claim in claims
        ]
    return on_host not in claims
