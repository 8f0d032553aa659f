# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The server has bandwidth that none of its ports requests, left by a deleted or detached port (LP
1820588).
"""

from __future__ import annotations

import typing as t

from ..._common.errors import Reason
from ..expected.corrections import format_allocations
from ..facts.consumer import ConsumerView, has_wrong_owner, is_settled_and_healthy
from ..facts.devices import AGE_UNKNOWN, find_action_doubt, find_port_leak, list_network_amounts
from ..models.change import build_change
from ..models.finding import Decision, drifted, undecided
from ..models.kind import DRIFT, OPT_IN, define_kind
from ..models.placement import subtract_amounts
from ..models.snapshot import ACTIONS, AMOUNTS, BANDWIDTH, CHILDREN, NOT_ASKED, PORT_ACTIONS, Answer
from ..options.policy import Policy

KIND = define_kind(
    __name__,
    __doc__,
    DRIFT,
    OPT_IN,
    needs=(ACTIONS, AMOUNTS, PORT_ACTIONS, CHILDREN),
    named_needs=(BANDWIDTH,),
)

# A service that allocates or frees something does the other half of its work within this time.
_SETTLING_SECONDS = 60


def prove(view: ConsumerView, policy: Policy) -> Decision | None:
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
    subject = view.subject
    read: tuple[Answer[t.Any], ...] = (subject.interfaces, subject.server_ports)
    evidence = (*view.server_answers, *read, *subject.port_actions)
    if doubt := leak.doubt or _find_age_doubt(view) or find_action_doubt(subject):
        # That the owner is wrong is certain.
        if has_wrong_owner(view):
            return None
        network = list_network_amounts(view.allocation.resources)
        reason = doubt.reword(
            f"Server {view.consumer} has {format_allocations(network, view)} allocated, and "
            f"whether its ports need all of that cannot be known, because {doubt}."
        )
        return undecided(reason, *evidence)
    reason = Reason(
        "unrequested_bandwidth",
        f"Server {view.consumer} has {format_allocations(leak.amounts, view)} that none of its "
        f"ports requests: a port that was deleted or detached has left it. {_describe_ports(view)}",
    )
    kept = subtract_amounts(view.allocation.resources, leak.amounts)
    return drifted(reason, *evidence, change=build_change(view.allocation, resources=kept))


def _find_age_doubt(view: ConsumerView) -> Reason | None:
    """Return why the allocation may be one half of a change; None if it is not.

    Neutron changes the allocation of a bound port first, and the port then
    (neutron/services/qos/qos_plugin.py, _change_placement_allocation).
    """
    age = view.allocation.age_seconds
    if age is None:
        return AGE_UNKNOWN
    if age < _SETTLING_SECONDS:
        return Reason("allocation_just_written", f"its allocation was written {age} seconds ago")
    return None


def _describe_ports(view: ConsumerView) -> str:
    """Return a sentence about the ports that request something."""
    names = [port.uuid for port in view.subject.server_ports.value or () if port.groups]
    if not names:
        return "It has no port that requests any."
    return f"What its ports {', '.join(sorted(names))} request stays."
