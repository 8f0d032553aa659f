# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute nodes on which more or less is used than Placement has allocated. Pure."""

from __future__ import annotations

import collections
import typing as t
from collections.abc import Iterable, Mapping

from ..models.nova import Hypervisor
from ..models.placement import Provider, Resources

# Not the disk: servers may hold that of a sharing provider, and nova-compute counts it all the
# same.
_COMPARED_CLASSES = ("VCPU", "MEMORY_MB")


def sum_by_tree(
    amounts: Iterable[tuple[str, Resources]], providers: Mapping[str, Provider]
) -> dict[str, Resources]:
    """Return the sums of the amounts of providers, by the roots of their trees."""
    sums: dict[str, collections.Counter[str]] = {}
    for uuid, resources in amounts:
        if uuid in providers:
            sums.setdefault(providers[uuid].root, collections.Counter()).update(resources)
    return t.cast("dict[str, Resources]", sums)


def find_mismatched_nodes(
    nodes: Mapping[str, Hypervisor], allocated: Mapping[str, Resources], min_agreeing: int = 1
) -> list[str]:
    """Return the compute nodes whose use, as nova-compute reports it, is not what is `allocated`.

    Those that are not up, or report nothing, are among them. What a host reserves counts as used.
    How much that is differs from cloud to cloud and hardly from host to host, so the difference
    that most hosts have is taken for it; without such a difference, or when fewer than
    `min_agreeing` have it, every host is returned.
    """
    mismatched = {uuid for uuid, node in nodes.items() if node.state != "up" or not node.used}
    for cls in _COMPARED_CLASSES:
        gaps = {}
        for uuid, node in nodes.items():
            if uuid in mismatched:
                continue
            amounts = allocated.get(uuid, {})
            # Placement has pinned and shared processors apart, nova-compute counts them as one.
            total = sum(amounts.get(member, 0) for member in node.PLACEMENT_CLASSES[cls])
            gaps[uuid] = node.used.get(cls, 0) - total
        mismatched |= _list_unusual(gaps, min_agreeing)
    return sorted(mismatched)


def _list_unusual(gaps: Mapping[str, int], min_agreeing: int) -> set[str]:
    """Return the keys whose number is not that of most; all keys if most do not have the same."""
    if not gaps:
        return set()
    [(usual, times)] = collections.Counter(gaps.values()).most_common(1)
    if times < max(min_agreeing, len(gaps) // 2 + 1):
        return set(gaps)
    return {key for key, number in gaps.items() if number != usual}
