# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A provider with another UUID has the name of a compute node (LP 1817833)."""

from __future__ import annotations

from collections.abc import Iterator

from ..._common.errors import Reason
from ..facts.index import SnapshotIndex
from ..facts.trees import build_tree_finding, find_name_conflicts
from ..models.finding import Finding
from ..models.kind import CONDITION, EVERY, OPT_IN, define_kind
from ..models.snapshot import FORMER_ROOTS, TOTALS
from ..options.policy import Policy

KIND = define_kind(__name__, __doc__, CONDITION, OPT_IN, needs=(FORMER_ROOTS, TOTALS), cells=EVERY)


def check(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the providers that have the name of a compute node without a provider of its own.

    Proof: All soundness checks pass, and the compute node of that name has another UUID, for which
    Placement has no provider (LP 1817833). The provider has the trait `COMPUTE_NODE` or
    `OWNER_NOVA`, which only Nova sets; without one the finding is undecided. No other Nova uses
    this Placement, as for `orphaned_provider`.

    Needs: Every cell, because the proof is that no cell has a compute node with the UUID of the
    provider.

    Change: The tree is deleted, children first, once it has no allocations. Restart nova-compute on
    the host afterwards.
    """
    for root, node in find_name_conflicts(index):
        reason = Reason(
            "node_name_has_other_provider",
            f"Compute node {node.name} has the UUID {node.uuid}, but provider {root.uuid} already "
            "has its name, so Placement refuses to create the compute node's own provider and "
            "nothing can be scheduled there (LP 1817833). Once that tree is deleted, restart "
            f"nova-compute on {node.host}.",
        )
        yield build_tree_finding("name_conflict", index, root, reason, policy)
