# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The server has allocations only on hosts where it is not."""

from __future__ import annotations

from ..._common.errors import Reason
from ..expected.corrections import decide_new_allocation, list_amount_evidence
from ..facts.consumer import ConsumerView, format_providers, is_settled_without_own_tree
from ..facts.moves import explain_possible_guest_of_unshelve
from ..models.finding import Decision, drifted
from ..models.kind import DRIFT, EVERY, OPT_IN, define_kind
from ..models.snapshot import ACTIONS, AMOUNTS, LAST_ACTIONS
from ..options.policy import Policy

KIND = define_kind(
    __name__,
    __doc__,
    DRIFT,
    OPT_IN,
    needs=(ACTIONS, LAST_ACTIONS, AMOUNTS),
    cells=EVERY,
    was="moved_server",
)


def prove(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the server has allocations only on hosts where it is not.

    Proof: The server is settled on its host and has no allocation there, but has allocations on
    other hosts. No evacuation or live migration to one of these hosts failed, and no evacuation can
    have left its guest there, also under another name. No earlier unshelve can have begun on one of
    these hosts without a shelve since, or have taken it to its host after a later one. Its flavor,
    image, ports and devices, and the providers of its host, leave exactly one allocation that Nova
    would have made.

    Needs: Every cell: the new allocation is on a compute node, and only the complete listing of
    compute nodes shows which provider is that node's.

    Change: That allocation is made on its host, and its allocations on other hosts are removed.
    """
    if not is_settled_without_own_tree(view) or not view.trees:
        return None
    reason = Reason(
        "allocation_on_other_hosts_only",
        f"Server {view.consumer} is settled on {view.node_name}, but has allocations only on "
        f"{format_providers(view)}.",
    )
    failed = view.explain_failed_move_to([root for root in view.trees if root])
    if doubt := failed or explain_possible_guest_of_unshelve(view, view.trees):
        found = reason.but(doubt).extend("Look for its guest first (virsh list --all).")
        return drifted(found, *list_amount_evidence(view))
    if remaining_guest := view.explain_possible_guest_of_evacuation(view.trees):
        return drifted(reason.but(remaining_guest), *list_amount_evidence(view))
    return decide_new_allocation(reason, view, policy)
