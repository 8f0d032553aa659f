# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""What shows whether a server on a host lacks an allocation there."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import (
    HostAllocations,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._clients.nova import NovaReader
    from ansible_collections.osops.placement.plugins.module_utils._clients.placement import (
        PlacementReader,
    )
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.listings_index import (
        ListingsIndex,
    )

# Of so many servers without an allocation the actions are read; any other may have been moved.
_MAX_SERVERS = 10


def read_host_allocations(
    placement: PlacementReader, nova: NovaReader, index: ListingsIndex, root: str
) -> HostAllocations:
    """Return what shows whether a server on the compute node `root` lacks an allocation.

    Placement is read before Nova, so that a server that has just arrived seems to lack one.
    """
    tree = [known.uuid for known in index.providers.values() if known.root == root]
    host = HostAllocations(
        tree=placement.query_tree_allocations(root, tree),
        servers=nova.list_server_uuids_on_host(index.nodes[root].host),
    )
    listed = index.nodes[root].servers or ()
    lacking = host.list_servers_without(root, listed, index.get_listed_migrations)
    actions = {}
    for server in lacking[:_MAX_SERVERS]:
        actions[server] = nova.list_instance_actions(server)
    return d.replace(host, actions=actions)
