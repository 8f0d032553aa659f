# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What shows whether a server on a host lacks an allocation there."""

from __future__ import annotations

import dataclasses as d

from ..clients.nova import NovaReader
from ..clients.placement import PlacementReader
from ..facts.listings_index import ListingsIndex
from ..models.snapshot import HostAllocations

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
