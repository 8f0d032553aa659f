# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Direct lookups of hosts that some answer names and a listing of Nova lacks."""

from __future__ import annotations

import dataclasses as d
from collections.abc import Iterable, Sequence

from ..._common.parallel import map_parallel
from ..clients.nova import NovaReader
from ..facts.agreement import list_host_names
from ..facts.listings_index import ListingsIndex, group_by_tree
from ..facts.soundness import list_failed_checks
from ..models.placement import Allocations
from ..models.snapshot import Answer


class HostLookups:
    """The direct lookups of hosts in one reading; each host is looked up once.

    answers: those of the listings, and all that were added since.
    """

    def __init__(self, nova: NovaReader, index: ListingsIndex) -> None:
        self._nova = nova
        self._index = index
        self.answers: dict[str, Answer[bool]] = dict(index.listings.host_lookups)

    def look_up(self, names: Iterable[str]) -> None:
        """Look up the hosts of those names that were not looked up yet."""
        wanted = sorted(set(names) - set(self.answers))
        self.answers.update(look_up_hosts(self._nova, wanted))

    def look_up_roots(self, roots: Iterable[str]) -> None:
        """Look up the hosts that root providers without a compute node may belong to."""
        # In an unsound reading any root may seem to have no compute node. The lookups so far count:
        # they may show that the listings leave hosts out.
        so_far = d.replace(self._index.listings, host_lookups=self.answers)
        if list_failed_checks(so_far):
            return
        names: set[str] = set()
        for root in roots:
            names.update(list_host_names(self._index.get_name(root)))
        self.look_up(names - self._index.hosts_listed)


def look_up_hosts(nova: NovaReader, names: Sequence[str]) -> dict[str, Answer[bool]]:
    """Return Nova's answer about each host, by its name."""
    if not names:
        return {}
    answers = map_parallel(nova.get_host, names)
    return dict(zip(names, answers, strict=True))


def find_roots_without_node(
    index: ListingsIndex, allocations_by_consumer: Iterable[Allocations]
) -> set[str]:
    """Return the root providers of the allocations that are not a listed compute node's."""
    roots: set[str] = set()
    for allocations in allocations_by_consumer:
        roots.update(filter(None, group_by_tree(allocations, index)))
    return roots - set(index.nodes)
