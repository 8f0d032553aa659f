# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the nodes of Ironic whose providers were read, and looks up those that seem wrong."""

from __future__ import annotations

import dataclasses as d
from collections.abc import Sequence

from ..._common.parallel import map_parallel
from ..clients.nova import NovaReader
from ..clients.other_services import BareMetalReader
from ..clients.placement import PlacementReader
from ..facts.bare_metal import NodeView, build_node_views, find_node_roots, sees_every_node
from ..facts.listings_index import ListingsIndex
from ..models.snapshot import Answer, BareMetal

# Each of them costs a request or two. A cloud in which more nodes are wrong has another fault.
_MAX_LOOKUPS = 100
_WORKERS = 2


def read_bare_metal(
    reader: BareMetalReader, placement: PlacementReader, nova: NovaReader, index: ListingsIndex
) -> BareMetal:
    """Return what Ironic says of the nodes that have a provider.

    Nothing is asked where no provider is a node's. Raises CloudError when a service does not
    answer.
    """
    roots = find_node_roots(index)
    if not roots:
        return BareMetal()
    nodes = reader.list_nodes()
    if nodes.value is None:
        return BareMetal(nodes=nodes)
    sees_all = sees_every_node(nodes.value, index.listings.cloud.project)
    unseen = 0
    views = []
    for view in build_node_views(index, nodes, {}):
        # The absence of a node proves nothing to those who may not see it.
        if view.node is None and not sees_all:
            unseen += 1
        else:
            views.append(view)
    free = {}
    for resource_class in sorted({view.free_class for view in views} - {""}):
        free[resource_class] = placement.query_free_providers(resource_class)
    suspects = [view for view in views if _is_suspect(view, free)]
    looked_up = suspects[:_MAX_LOOKUPS]
    reading = _look_up_consumers(placement, nova, looked_up)
    # Last, so that a node that is taken or freed meanwhile shows that it has just changed.
    uuids = [view.uuid for view in looked_up]
    lookups = map_parallel(reader.get_node, uuids, _WORKERS)
    return d.replace(
        reading,
        nodes=nodes,
        free=free,
        lookups=dict(zip(uuids, lookups, strict=True)),
        left_out=len(suspects) - len(looked_up),
        unseen=unseen,
    )


def _look_up_consumers(
    placement: PlacementReader, nova: NovaReader, views: Sequence[NodeView]
) -> BareMetal:
    """Read again what is allocated on the providers of nodes, and what the nodes are in use by."""
    consumers: list[str] = []
    servers: list[str] = []
    for view in views:
        consumers += view.consumers
        if view.node is not None and view.node.instance and not view.consumers:
            servers.append(view.node.instance)
    allocations = map_parallel(placement.get_allocation, consumers, placement.workers)
    found = map_parallel(nova.get_server, servers, nova.workers)
    roots = [view.root for view in views]
    return BareMetal(
        allocations=dict(zip(consumers, allocations, strict=True)),
        servers=dict(zip(servers, found, strict=True)),
        details=placement.get_details(roots, ("inventories", "usages")),
    )


def _is_suspect(view: NodeView, free: dict[str, Answer[tuple[str, ...]]]) -> bool:
    """Return whether the listings alone do not show that a node and its provider go together."""
    if view.node is None or view.has_foreign_consumer:
        return True
    if view.consumers:
        return False
    # Nova reserves a node that is in use by something else than a server.
    if view.node.instance:
        return True
    answer = free.get(view.free_class)
    has_room = answer is not None and view.root in (answer.value or ())
    return has_room != view.node.is_free
