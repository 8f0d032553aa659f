# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The server is on a host, but has no allocation."""

from __future__ import annotations

from ..._common.errors import Reason
from ..expected.corrections import decide_new_allocation, format_amounts
from ..facts.consumer import ConsumerView, is_settled_without_own_tree
from ..models.finding import Decision, undecided
from ..models.kind import DRIFT, EVERY, OPT_IN, define_kind
from ..models.placement import Totals
from ..models.snapshot import ACTIONS, AMOUNTS, HOST_TOTALS, NOT_ASKED, Answer
from ..options.policy import Policy

KIND = define_kind(
    __name__, __doc__, DRIFT, OPT_IN, needs=(ACTIONS, AMOUNTS, HOST_TOTALS), cells=EVERY
)


def prove(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the server has no allocation at all.

    Proof: The server is settled on its host and has no allocation. Nothing is in use on that host
    that is not listed, so that it has none without a record of its consumer either. Its flavor,
    image, ports and devices, and the providers of its host, leave exactly one allocation that Nova
    would have made.

    Needs: Every cell: the new allocation is on a compute node, and only the complete listing of
    compute nodes shows which provider is that node's.

    Change: That allocation is made on its host.
    """
    if not is_settled_without_own_tree(view) or view.allocation.resources:
        return None
    reason = Reason(
        "server_without_allocation",
        f"Server {view.consumer} is settled on {view.node_name}, but has no allocation.",
    )
    totals = view.index.snapshot.host_totals.get(view.own_tree or "", NOT_ASKED)
    if totals.value is None or totals.value.hidden:
        hidden = Reason(
            "allocation_may_be_hidden",
            f"it may have one that Placement does not list: {_describe_totals(totals)}",
        )
        return undecided(reason.but(hidden), *view.state_evidence, totals)
    return decide_new_allocation(reason, view, policy)


def _describe_totals(totals: Answer[Totals]) -> str:
    if totals.value is None:
        return "what is in use on its host could not be compared with what is listed"
    return f"on its host, {format_amounts(totals.value.hidden)} more is in use than is listed"
