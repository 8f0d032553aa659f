# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""A cloud cut into shards: what each of them reads, and whose finding is whose. Pure.

A shard has the trees whose root uuids fall to it, and lists the claims of these. What every shard
reads whole are the listings of Nova, so that each knows where each server lives, and the claims on
sharing providers, which belong to no tree.

A consumer that holds shares of several trees is seen by several shards, and looks healthy to the
one where it lives. So it belongs to the lowest of the trees where it does not live, whose shard
surely nominates it, and to the tree of its home only when there is no other.
"""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import (
    SnapshotIndex,
    group_by_tree,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Hypervisor,
        Server,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Allocations,
        Provider,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Shard


def list_roots_in_shard(
    shard: Shard, providers: Mapping[str, Provider], nodes: Iterable[Hypervisor]
) -> frozenset[str]:
    """Return the roots in the shard, and with them the compute nodes that have no provider."""
    roots = {provider.root for provider in providers.values()} | {node.uuid for node in nodes}
    return frozenset(filter(shard.contains, roots))


def list_providers_to_read(shard: Shard, providers: Mapping[str, Provider]) -> list[str]:
    """Return the providers whose claims the shard lists."""
    return [
        uuid
        for uuid, provider in providers.items()
        if provider.sharing or shard.contains(provider.root)
    ]


def select_allocations(
    shard: Shard,
    allocations_by_consumer: Mapping[str, Allocations],
    providers: Mapping[str, Provider],
) -> dict[str, Allocations]:
    """Return those of `holdings` that the shard has to do with, as far as it reads them."""
    read = set(list_providers_to_read(shard, providers))
    parts = {
        consumer: {provider: share for provider, share in allocations.items() if provider in read}
        for consumer, allocations in allocations_by_consumer.items()
    }
    return {
        consumer: part
        for consumer, part in parts.items()
        if any(shard.contains(providers[provider].root) for provider in part)
    }


def is_left_to_other_shard(consumer: str, allocations: Allocations, index: SnapshotIndex) -> bool:
    """Tell whether the shard of a consumer's host sees all that this one does: it is on a host
    elsewhere and seen here only on a shared disk.
    """
    nodes = index.list_nodes_with(consumer)
    return (
        bool(nodes) and not group_by_tree(allocations, index) and not any(map(index.covers, nodes))
    )


def find_owning_root(
    consumer: str,
    allocations: Allocations,
    index: SnapshotIndex,
    server_details: Mapping[str, Server],
) -> str | None:
    """Return the root whose shard tells of a consumer with the whole `holding`; None when nobody
    nominates it.

    server_details: servers by uuid, known to every shard that has a compute node of their host
        where that has several. The listing does not say on which of these a server is.
    """
    held = {root for root in group_by_tree(allocations, index) if root is not None}
    homes = index.list_nodes_with(consumer)
    if elsewhere := held - homes:
        return min(elsewhere)
    if homes:
        glance = server_details.get(consumer)
        shown = (
            {index.find_tree_at(glance.host, glance.node)} if glance and len(homes) > 1 else set()
        )
        return min((held - shown) or held or homes)
    return min(
        (root for provider in allocations if (root := index.get_root(provider))), default=None
    )
