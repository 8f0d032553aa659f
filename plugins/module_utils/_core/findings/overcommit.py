# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many hosts have more allocated than they physically have, by resource class. Pure.

No request is made for it: the listings have what is allocated and what nova-compute reports. An
allocation ratio above 1 allows it, so it is a figure, and not a finding for each host.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..facts.index import SnapshotIndex
from ..models.nova import Hypervisor
from .entries import Overcommit


def summarize_overcommit(index: SnapshotIndex) -> dict[str, Overcommit]:
    """Return by resource class how many hosts are over-committed, and how much at most.

    The processors of a host are its VCPU and PCPU together. A class is left out of which no host
    reports a figure.
    """
    sums: dict[str, Overcommit] = {}
    for uuid, node in sorted(index.nodes.items()):
        # What is allocated on a host out of scope was not read.
        if uuid not in index.providers or not index.covers(uuid):
            continue
        for cls, members in node.PLACEMENT_CLASSES.items():
            ratio = _compute_ratio(index, node, cls, members)
            if ratio is None:
                continue
            of_class = sums.setdefault(cls, _create_overcommit())
            of_class["hosts"] += 1
            of_class["overcommitted"] += int(ratio > 1)
            rounded = round(ratio, 2)
            if rounded > of_class["highest"]:
                of_class["highest"] = rounded
                of_class["highest_host"] = node.host
    return dict(sorted(sums.items()))


def _create_overcommit() -> Overcommit:
    return {"hosts": 0, "overcommitted": 0, "highest": 0.0, "highest_host": ""}


def _compute_ratio(
    index: SnapshotIndex, node: Hypervisor, cls: str, members: Sequence[str]
) -> float | None:
    """Return how many times what a host has is allocated; None where that is not known.

    What the host reserves for itself is taken off where the inventory was read.
    """
    physical = node.has.get(cls, 0)
    details = index.snapshot.details.get(node.uuid)
    if details is not None:
        for member in members:
            if member in details.inventories:
                physical -= details.inventories[member].reserved
    if physical <= 0:
        return None
    used = index.used.get(node.uuid, {})
    return sum(used.get(member, 0) for member in members) / physical
