# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nothing explains why the server has an allocation on a child provider."""

from __future__ import annotations

from ..._common.errors import Reason
from ..expected.amounts import compare_amounts, get_host_tree
from ..expected.corrections import (
    find_surplus_on_children,
    format_allocations,
    list_amount_evidence,
)
from ..facts.consumer import ConsumerView, is_settled_and_healthy
from ..facts.devices import UnusedProviders, find_unused_providers
from ..models.change import build_reduction
from ..models.finding import Decision, drifted
from ..models.kind import DRIFT, OPT_IN, define_kind
from ..models.snapshot import ACTIONS, AMOUNTS, CHILDREN
from ..options.policy import Policy

KIND = define_kind(__name__, __doc__, DRIFT, OPT_IN, needs=(ACTIONS, AMOUNTS, CHILDREN))


def prove(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the server has an unexplained allocation on a child provider of its host.

    Proof: The server is settled on its host and has more of a child provider there than its flavor,
    image, ports and devices request. All of these could be read. It may be removed only if none of
    it is requested, and `hypervisor_guest_info` has also looked at the host: the guest of the
    server, active, paused or shut off, is defined there and uses no device of that provider, whose
    name says which device it is. The look is not older than an hour, and since a minute before it
    neither the server nor its allocation was changed and no action was requested.

    Needs: The cells of the hosts on which the server is or has allocations, and of the hosts that
    its migrations name. The server is read from its own cell.

    Change: With that proof, the allocation on that child provider is removed, and all else stays.
    Without it there is none: check on the host whether its guest uses such a device.
    """
    if not is_settled_and_healthy(view):
        return None
    present = view.allocation.resources
    expectation = compare_amounts(view, policy, present)
    # What is not certain to be wrong is never taken away.
    if expectation is None or expectation.matches is not False or expectation.allocations is None:
        return None
    surplus = find_surplus_on_children(present, expectation.allocations, get_host_tree(view))
    if not surplus:
        return None
    reason = Reason(
        "unrequested_child_allocation",
        f"Server {view.consumer} has {format_allocations(surplus, view)} of its host "
        f"{view.node_name}, but nothing in its flavor, image, ports or devices asks for that.",
    )
    evidence = list_amount_evidence(view)
    # A guest that uses one of two devices of a provider does not show which allocation is its own.
    unrequested = [child for child in surplus if surplus[child] == present[child]]
    unused = find_unused_providers(view, unrequested, policy.guests)
    if unused.providers:
        change = build_reduction(view.allocation, unused.providers)
        return drifted(_explain(reason, unused), *evidence, change=change)
    # Only the host can say whether the guest uses the device.
    advice = "Check on the host whether its guest uses such a device before you remove anything."
    return drifted(_explain(reason, unused, advice), *evidence)


def _explain(reason: Reason, unused: UnusedProviders, advice: str = "") -> Reason:
    """Return the reason with what the host of the server shows, if anybody has looked there."""
    if unused.explanation is None:
        return reason.extend(advice)
    return unused.explanation.reword(f"{reason} {unused.explanation}").extend(advice)
