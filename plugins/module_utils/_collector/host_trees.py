# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""The trees of the hosts of one reading, each read once for all servers on the host."""

from __future__ import annotations

import threading
import typing as t

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._clients.placement import (
        PlacementReader,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.resource_request import (
        HostTree,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Answer


class HostTrees:
    """The trees of hosts, by root."""

    def __init__(self, placement: PlacementReader) -> None:
        self._placement = placement
        self._lock = threading.Lock()
        # Each with a lock of its own, so that nobody waits for the trees of other hosts.
        self._locks: dict[str, threading.Lock] = {}
        self._answers: dict[str, Answer[HostTree]] = {}

    @property
    def answers(self) -> dict[str, Answer[HostTree]]:
        """All trees that were read, sorted by root."""
        return dict(sorted(self._answers.items()))

    def read(self, root: str) -> Answer[HostTree]:
        """Return the answer about the tree with that root."""
        with self._lock:
            lock = self._locks.setdefault(root, threading.Lock())
        with lock:
            if root not in self._answers:
                self._answers[root] = self._placement.query_host_tree(root)
            return self._answers[root]
