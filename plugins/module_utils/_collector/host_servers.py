# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""What shows whether a server on a host lacks an allocation there."""

from __future__ import annotations

import dataclasses as d
import threading
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


class HostAllocationsReader:
    """Reads the allocations of hosts, and what was done to the servers there that have none."""

    def __init__(self, placement: PlacementReader, nova: NovaReader) -> None:
        self._placement = placement
        self._nova = nova
        self._lock = threading.Lock()
        # Each with a lock of its own, so that nobody waits for the answers about other hosts.
        self._locks: dict[str, threading.Lock] = {}
        self._answers: dict[str, HostAllocations] = {}

    @property
    def answers(self) -> dict[str, HostAllocations]:
        """All that was read, sorted by the root of the host's tree."""
        return dict(sorted(self._answers.items()))

    def read(self, root: str, index: ListingsIndex) -> None:
        """Read what shows whether a server on the compute node `root` lacks an allocation.

        Placement is read before Nova, so that a server that has just arrived seems to lack one.
        """
        with self._lock:
            lock = self._locks.setdefault(root, threading.Lock())
        with lock:
            if root not in self._answers:
                self._answers[root] = self._read(root, index)

    def _read(self, root: str, index: ListingsIndex) -> HostAllocations:
        tree = [known.uuid for known in index.providers.values() if known.root == root]
        host = HostAllocations(
            tree=self._placement.query_tree_allocations(root, tree),
            servers=self._nova.list_server_uuids_on_host(index.nodes[root].host),
        )
        listed = index.nodes[root].servers or ()
        lacking = host.list_servers_without(root, listed, index.get_listed_migrations)
        actions = {}
        for server in lacking[:_MAX_SERVERS]:
            actions[server] = self._nova.list_instance_actions(server)
        return d.replace(host, actions=actions)
