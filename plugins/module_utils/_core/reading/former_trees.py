# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is read about a provider that a host may have had before, and about that host."""

from __future__ import annotations

import typing as t

from ..clients.nova import NovaReader
from ..clients.placement import PlacementReader
from ..facts.listings_index import ListingsIndex


def read_former_tree(
    placement: PlacementReader, nova: NovaReader, index: ListingsIndex, key: tuple[str, str, str]
) -> dict[str, t.Any]:
    """Return the fields of `Evidence` about a former provider and the host that it was of.

    Placement is read before Nova, so that a server that has just moved is seen on its new host.

    key: the root of the former tree, that of the tree which the host has now, and the host.
    """
    root, own, host = key
    tree = [provider.uuid for provider in index.providers.values() if provider.root == root]
    return {
        "former_tree": placement.query_tree_allocations(root, tree),
        "own_usages": placement.query_usages(own),
        "host_servers": nova.list_server_uuids_on_host(host),
    }
