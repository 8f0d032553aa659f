# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The proofs of the leaks: parts of the allocation of a live server that it does not need.

Only such a part is removed, and only where it is certain; all the rest of the allocation stays as
it is.
"""

from __future__ import annotations

from ..expected.amounts import compare_amounts, find_host_tree
from ..expected.corrections import find_surplus_on_children
from ..facts.consumer import ConsumerView
from ..facts.guest_devices import find_unused_providers
from ..facts.port_leaks import find_action_doubt, find_port_leak, list_network_amounts
from ..models.change import build_change, build_reduction
from ..models.placement import subtract_amounts
from ..models.snapshot import NOT_ASKED
from ..models.verdict import Decision, drifted, undecided
from ..options.policy import Policy
from .drift import format_allocations, is_settled_and_healthy, list_amount_evidence, wrong_owner

# A service that allocates or frees something does the other half of its work within this time.
_SETTLING_SECONDS = 60


def leaked_port(view: ConsumerView, policy: Policy) -> Decision | None:
    """Decide whether the server has bandwidth or packet rates that none of its ports requests.

    Proof: The server is settled on its host and has more of the resources `NET_BW_*` or
    `NET_PACKET_RATE_*` on child providers of that host than its ports request there. These
    credentials see the ports of other projects. Neutron shows the same ports to Nova and to us, all
    of them ports of a server, bound on this host and without a trunk or a device profile. It shows
    what each requests, and the binding profile names the provider. Nothing in the flavor requests
    such resources. No port of the server is being attached or detached: no such action is open, and
    the allocation is older than a minute.

    Needs: The cells of the hosts on which the server is or has allocations, and of the hosts that
    its migrations name. The server is read from its own cell.

    Change: What its ports do not request is removed, and all else stays.
    """
    if not is_settled_and_healthy(view) or view.subject.shape == NOT_ASKED:
        return None
    leak = find_port_leak(view)
    if leak is None:
        return None
    evidence = (
        *view.server_answers,
        view.subject.interfaces,
        view.subject.server_ports,
        *view.subject.port_actions,
    )
    doubt = leak.doubt or _find_age_doubt(view) or find_action_doubt(view.subject)
    if doubt:
        # That the owner is wrong is certain.
        if wrong_owner(view, policy) is not None:
            return None
        network = list_network_amounts(view.allocation.resources)
        return undecided(
            f"Server {view.consumer} has {format_allocations(network, view)} allocated, and "
            f"whether its ports need all of that cannot be known, because {doubt}.",
            *evidence,
        )
    reason = (
        f"Server {view.consumer} has {format_allocations(leak.amounts, view)} that none of its "
        f"ports requests: a port that was deleted or detached has left it. {_describe_ports(view)}"
    )
    kept = subtract_amounts(view.allocation.resources, leak.amounts)
    return drifted(reason, *evidence, change=build_change(view.allocation, resources=kept))


def _find_age_doubt(view: ConsumerView) -> str:
    """Return why the allocation may be one half of a change; empty if it is not.

    Neutron changes the allocation of a bound port first, and the port then
    (neutron/services/qos/qos_plugin.py, _change_placement_allocation).
    """
    age = view.allocation.age_seconds
    if age is None:
        return "the age of its allocation is unknown"
    if age < _SETTLING_SECONDS:
        return f"its allocation was written {age} seconds ago"
    return ""


def _describe_ports(view: ConsumerView) -> str:
    """Return a sentence about the ports that request something."""
    names = [port.uuid for port in view.subject.server_ports.value or () if port.groups]
    if not names:
        return "It has no port that requests any."
    return f"What its ports {', '.join(sorted(names))} request stays."


def leaked_child(view: ConsumerView, policy: Policy) -> Decision | None:
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
    if expectation is None or expectation.matches is not False or expectation.allocations is None:
        return None
    surplus = find_surplus_on_children(present, expectation.allocations, find_host_tree(view).value)
    if not surplus:
        return None
    reason = (
        f"Server {view.consumer} has {format_allocations(surplus, view)} of its host "
        f"{view.node_name}, but nothing in its flavor, image, ports or devices asks for that."
    )
    evidence = list_amount_evidence(view)
    # A guest that uses one of two devices of a provider does not show which allocation is its own.
    unrequested = [child for child in surplus if surplus[child] == present[child]]
    unused = find_unused_providers(view, unrequested, policy.guests)
    if unused.providers:
        change = build_reduction(view.allocation, unused.providers)
        return drifted(f"{reason} {unused.explanation}", *evidence, change=change)
    # Only the host can say whether the guest uses the device.
    advice = "Check on the host whether its guest uses such a device before you remove anything."
    reason = " ".join(filter(None, (reason, unused.explanation, advice)))
    return drifted(reason, *evidence)
