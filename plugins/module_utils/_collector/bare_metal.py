# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""Reads the nodes of Ironic whose providers were read, and looks up those that seem wrong."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._clients.bare_metal import (
    BareMetalReader,
)
from ansible_collections.osops.placement.plugins.module_utils._common.parallel import map_parallel
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import BareMetal
from ansible_collections.osops.placement.plugins.module_utils._snapshot.bare_metal import (
    build_node_views,
    find_node_roots,
    sees_every_node,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Sequence

    from ansible_collections.osops.placement.plugins.module_utils._clients.nova import NovaReader
    from ansible_collections.osops.placement.plugins.module_utils._clients.placement import (
        PlacementReader,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import (
        Answer,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.surroundings import (
        BareMetalNode,
    )
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.bare_metal import (
        NodeView,
    )
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.listings_index import (
        ListingsIndex,
    )

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
    absent = sorted(set(roots.values()) - {node.uuid for node in nodes.value})
    lookups: dict[str, Answer[BareMetalNode]] = {}
    unseen = 0
    if sees_every_node(nodes.value, index.listings.cloud.project):
        looked_up = absent[:_MAX_LOOKUPS]
        answers = map_parallel(reader.get_node, looked_up, _WORKERS)
        lookups = dict(zip(looked_up, answers, strict=True))
    else:
        unseen = len(absent)
    views = []
    for view in build_node_views(index, nodes, lookups.values()):
        # Nothing can be said of the others.
        if view.node is not None or view.uuid in lookups:
            views.append(view)
    reading = _look_up_suspects(placement, nova, views)
    return d.replace(reading, nodes=nodes, lookups=lookups, unseen=unseen)


def _look_up_suspects(
    placement: PlacementReader, nova: NovaReader, views: Sequence[NodeView]
) -> BareMetal:
    free = {}
    for resource_class in sorted({view.free_class for view in views} - {""}):
        free[resource_class] = placement.query_free_providers(resource_class)
    consumers: list[str] = []
    servers: list[str] = []
    providers: list[str] = []
    left_out = 0
    for view in views:
        if not _is_suspect(view, free):
            continue
        if len(providers) >= _MAX_LOOKUPS:
            left_out += 1
            continue
        providers.append(view.root)
        consumers += view.consumers
        if view.node is not None and view.node.instance and not view.consumers:
            servers.append(view.node.instance)
    allocations = map_parallel(placement.get_allocation, consumers, placement.workers)
    found = map_parallel(nova.get_server, servers, nova.workers)
    return BareMetal(
        free=free,
        allocations=dict(zip(consumers, allocations, strict=True)),
        servers=dict(zip(servers, found, strict=True)),
        details=placement.get_details(providers, ("inventories", "usages")),
        left_out=left_out,
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
