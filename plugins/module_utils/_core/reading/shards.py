# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cloud cut into shards: what each of them reads, and which one reports a consumer. Pure.

A shard has the trees whose root uuids fall to it, and lists the allocations of these. Every shard
reads all listings of Nova, so that it knows where each server is, and the allocations of all
sharing providers, which belong to no tree.

A consumer with allocations of several trees is seen by several shards, and seems healthy to the one
that has its host. So it belongs to the lowest of the trees where it is not, because it is a
candidate in that shard for certain, and to the tree of its own host only when it has only that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..facts.listings_index import ListingsIndex, group_by_tree
from ..models.nova import Hypervisor, Server
from ..models.placement import Allocations, Provider
from ..models.snapshot import Shard


def list_roots_in_shard(
    shard: Shard, providers: Mapping[str, Provider], nodes: Iterable[Hypervisor]
) -> frozenset[str]:
    """Return the roots in the shard, and with them the compute nodes that have no provider."""
    roots = {provider.root for provider in providers.values()}
    roots.update(node.uuid for node in nodes)
    return frozenset(filter(shard.contains, roots))


def list_providers_to_read(
    contains: Callable[[str], bool], providers: Mapping[str, Provider]
) -> list[str]:
    """Return the providers whose allocations a part of a cloud lists.

    contains: whether the tree with a root is in the part, such as `Shard.contains`.
    """
    wanted = []
    for uuid, provider in providers.items():
        # A sharing provider belongs to no tree, so every part reads it.
        if provider.sharing or contains(provider.root):
            wanted.append(uuid)
    return wanted


def select_allocations(
    contains: Callable[[str], bool],
    allocations_by_consumer: Mapping[str, Allocations],
    providers: Mapping[str, Provider],
) -> dict[str, Allocations]:
    """Return the allocations of the consumers in a part of a cloud, as far as the part reads them.

    contains: whether the tree with a root is in the part.
    """
    wanted = set(list_providers_to_read(contains, providers))
    selected: dict[str, Allocations] = {}
    for consumer, allocations in allocations_by_consumer.items():
        part = {uuid: amounts for uuid, amounts in allocations.items() if uuid in wanted}
        # A consumer of which only sharing providers are read is another part's.
        if any(contains(providers[uuid].root) for uuid in part):
            selected[consumer] = part
    return selected


def is_left_to_other_shard(consumer: str, allocations: Allocations, index: ListingsIndex) -> bool:
    """Return whether the shard of a consumer's host sees all that this shard does.

    The consumer is then on a host of another shard, and this one sees only its shared disk.
    """
    nodes = index.list_nodes_with(consumer)
    if not nodes or group_by_tree(allocations, index):
        return False
    return not any(map(index.covers, nodes))


def find_owning_root(
    consumer: str,
    allocations: Allocations,
    index: ListingsIndex,
    server_details: Mapping[str, Server],
) -> str | None:
    """Return the root whose shard reports a consumer; None when it is a candidate of no shard.

    allocations: all that the consumer holds, in whichever shard.
    server_details: servers by uuid, read by every shard that has a compute node of their host
        where that has several. The listing does not say on which of these a server is.
    """
    roots = {root for root in group_by_tree(allocations, index) if root is not None}
    homes = index.list_nodes_with(consumer)
    server = server_details.get(consumer)
    # An incremental reading has no listing that shows the servers of all hosts.
    if not homes and server is not None and server.host:
        homes = index.list_nodes_at(server.host)
    elsewhere = roots - homes
    if elsewhere:
        return min(elsewhere)
    if not homes:
        return min(filter(None, map(index.get_root, allocations)), default=None)
    home = None
    if server is not None and len(homes) > 1:
        home = index.find_tree_at(server.host, server.node)
    return min((roots - {home}) or roots or homes)
