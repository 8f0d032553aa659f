# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A provider of a compute node that no longer exists."""

from __future__ import annotations

from collections.abc import Iterator

from ..._common.errors import Reason
from ..facts.index import SnapshotIndex
from ..facts.trees import build_tree_finding, find_name_conflicts, list_roots_without_node
from ..models.finding import Finding
from ..models.kind import CONDITION, EVERY, OPT_IN, define_kind
from ..models.snapshot import FORMER_ROOTS, TOTALS
from ..options.policy import Policy

KIND = define_kind(
    __name__,
    __doc__,
    CONDITION,
    OPT_IN,
    needs=(FORMER_ROOTS, TOTALS),
    cells=EVERY,
    was="ghost_provider",
)


def check(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the providers that belonged to a compute node which no longer exists.

    Proof: All soundness checks pass, and Nova lists no compute node with the UUID of the root
    provider. The provider has the trait `COMPUTE_NODE` or `OWNER_NOVA`, which only Nova sets:
    without it, a provider with VCPU and MEMORY_MB may be another service's. No other Nova uses this
    Placement: Keystone lists all endpoints, or you have set `orphan_cleanup_sole_nova`. The finding
    is undecided while any compute service, up or down, has no compute node.

    Needs: Every cell, because the proof is that no cell has the compute node. The host is also
    looked up directly, by its host mapping, and the compute node by the name of the provider.

    Change: The tree is deleted, children first, once it has no allocations.
    """
    conflicting = {provider.uuid for provider, node in find_name_conflicts(index)}
    for root in list_roots_without_node(index):
        if root.uuid not in conflicting and index.has_nova_trait(root.uuid):
            reason = Reason(
                "provider_without_compute_node",
                f"By its traits, provider {root.name} belonged to a compute node, but Nova lists "
                f"no compute node with its UUID {root.uuid}.",
            )
            yield build_tree_finding("orphaned_provider", index, root, reason, policy)
