# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""More is allocated than the capacity, or the inventory differs from the hypervisor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..._common.errors import Reason
from ..facts.index import SnapshotIndex
from ..models.finding import Finding, report
from ..models.kind import CONDITION, REPORT, define_kind
from ..models.nova import Hypervisor
from ..models.placement import Inventory, Resources
from ..models.snapshot import INVENTORIES
from ..options.policy import Policy

KIND = define_kind(
    __name__, __doc__, CONDITION, REPORT, named_needs=(INVENTORIES,), was="capacity_drift"
)


def check(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the providers with more allocated than their capacity, or with another inventory.

    Proof: The allocations on a provider exceed its capacity, or the total of its inventory differs
    from what nova-compute reports for its host. Detection checks the providers of other findings
    and of the hosts that you name, and all providers if you name this kind in
    `orphan_cleanup_kinds`.

    Needs: Nothing more, because the finding is only reported.

    Change: None. Move servers away or raise the allocation ratio; restart nova-compute where the
    inventory differs.
    """
    for uuid, details in sorted(index.snapshot.details.items()):
        overuse = _describe_overuse(index.used.get(uuid, {}), details.inventories)
        # Only the root of a compute node has an inventory that nova-compute reports.
        node = index.nodes.get(uuid)
        differences = _describe_inventory_differences(node, details.inventories) if node else []
        if not overuse and not differences:
            continue
        name, what = index.get_name(uuid), "; ".join(overuse + differences)
        reason = Reason("inventory_differs", f"On {name}, {what}.")
        if overuse:
            reason = Reason("more_allocated_than_capacity", f"On {name}, {what}.").extend(
                "No more servers fit there, and none can be resized there: remove the orphans of "
                "this provider, move servers away, or raise the allocation ratio."
            )
        if differences:
            reason = reason.extend("Restart nova-compute there if the difference lasts.")
        yield report(KIND, uuid, reason, index.snapshot.hypervisors, providers=(uuid,))


def _describe_overuse(used: Resources, inventory: Mapping[str, Inventory]) -> list[str]:
    """Return the resource classes of a provider with more allocated than its capacity, as text."""
    return [
        f"{used.get(cls, 0)} {cls} are allocated, but the capacity is {stock.capacity}"
        for cls, stock in sorted(inventory.items())
        if used.get(cls, 0) > stock.capacity
    ]


def _describe_inventory_differences(
    node: Hypervisor, inventory: Mapping[str, Inventory]
) -> list[str]:
    """Return where the inventory of a root differs from what nova-compute reports, as text."""
    differences = []
    for cls, amount in sorted(node.has.items()):
        # A node that reports none of a class proves nothing about the inventory: from compute
        # microversion 2.88 on, Nova no longer returns these numbers.
        if cls in inventory and amount and inventory[cls].total != amount:
            differences.append(
                f"the inventory has {inventory[cls].total} {cls}, "
                f"but the hypervisor reports {amount}"
            )
    return differences
