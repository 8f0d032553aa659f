# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bandwidth and packet rates of a server that none of its ports requests. Pure.

Nova frees what a port has only where it detaches the port itself (nova/compute/manager.py,
_deallocate_port_for_instance). When Neutron deletes a port that is bound, Nova logs that its
allocation is leaked (_process_instance_vif_deleted_event; LP 1820588).
"""

from __future__ import annotations

import dataclasses as d
from collections.abc import Iterable

from ..models.nova import PORT_ACTIONS, Action, Server
from ..models.placement import Allocations, Resources, add_amounts, subtract_amounts
from ..models.resource_request import ServerPort
from ..models.snapshot import Evidence
from .device_classes import has_only_devices
from .server import ServerView

# The classes that ports request (neutron_lib/placement/constants.py).
_CLASS_PREFIXES = ("NET_BW_", "NET_PACKET_RATE_")

# The owner of the port of a server is this and its availability zone.
_SERVER_PORT_OWNER = "compute:"

# So many of the newest actions on ports are read; with more, an older one may still wait.
MAX_PORT_ACTIONS = 20


@d.dataclass(frozen=True)
class PortLeak:
    """What a server has of the network resources of its host and its ports do not request.

    amounts: by provider; empty where that is not known.
    requested: by provider, what its ports request.
    doubt: why `amounts` may not be a leak or could not be calculated, as a part of a sentence;
        empty if it is one.
    """

    amounts: Allocations
    requested: Allocations
    doubt: str = ""


def is_network_class(resource_class: str) -> bool:
    """Return whether only ports request resources of this class."""
    return resource_class.startswith(_CLASS_PREFIXES)


def list_network_amounts(allocations: Allocations) -> dict[str, Resources]:
    """Return the part of `allocations` that ports may have requested."""
    found: dict[str, Resources] = {}
    for provider, amounts in allocations.items():
        network = {cls: amount for cls, amount in amounts.items() if is_network_class(cls)}
        if network:
            found[provider] = network
    return found


def find_port_leak(view: ServerView) -> PortLeak | None:
    """Return what the ports of a server do not explain; None where they explain everything.

    The result is None, too, where its ports could not be read: then `wrong_amount` says so.
    """
    allocation, server = view.subject.allocation.value, view.server
    if allocation is None or server is None:
        return None
    present = list_network_amounts(allocation.resources)
    if not present:
        return None
    ports = view.subject.server_ports.value
    if ports is None or not _has_all_requests(view.subject):
        return None
    requested: dict[str, dict[str, int]] = {}
    for port in ports:
        doubt = _add_request(requested, port)
        if doubt:
            return PortLeak({}, {}, doubt)
    amounts = subtract_amounts(present, requested)
    # Then the server has what its ports request, whatever else is to be said of them.
    if not amounts:
        return None
    doubts = (
        *(_find_port_doubt(port, server) for port in ports),
        _find_shortage(view, present, requested),
        _find_server_doubt(server),
        _find_place_doubt(view, amounts),
    )
    return PortLeak(amounts, requested, next(filter(None, doubts), ""))


def may_have_leak(view: ServerView) -> bool:
    """Return whether the server may have a part of a child provider that it does not need.

    For this it is enough that it has a device: only its host shows whether its guest uses it.
    """
    leak = find_port_leak(view)
    if leak is not None and not leak.doubt:
        return True
    allocation, own = view.subject.allocation.value, view.own_tree
    if allocation is None:
        return False
    for provider in view.server_trees.get(own, frozenset()) - {own}:
        if has_only_devices(allocation.resources[provider]):
            return True
    return False


def find_action_doubt(subject: Evidence) -> str:
    """Return why a port of the server may be on its way; empty if none is.

    Nova records the action before it asks the host, and gives the server no task. It first
    allocates and then attaches; it first detaches and then frees. So the actions have to be read
    after the ports.
    """
    actions = subject.actions.value
    if actions is None:
        return "its instance actions could not be read"
    requests = list_port_actions(actions)
    if len(requests) > MAX_PORT_ACTIONS:
        return f"more than {MAX_PORT_ACTIONS} of its actions attach or detach a port"
    by_request = {}
    for answer in subject.port_actions:
        if answer.value is not None:
            by_request[answer.value.request_id] = answer.value
    for action in requests:
        detail = by_request.get(action.request_id)
        if detail is None or not detail.is_finished:
            return f"its action {action.action} of {action.start_time} is not known to have ended"
    return ""


def list_port_actions(actions: Iterable[Action]) -> list[Action]:
    """Return those actions that attach or detach a port."""
    return [action for action in actions if action.action in PORT_ACTIONS]


def _has_all_requests(subject: Evidence) -> bool:
    """Return whether Neutron shows the ports that Nova lists, and what each of them requests."""
    ports, attached = subject.server_ports.value, subject.interfaces.value
    # To some roles Neutron shows no ports of other projects, and does not say so.
    if ports is None or attached is None or set(attached) != {port.uuid for port in ports}:
        return False
    return all(port.groups is not None for port in ports)


def _find_port_doubt(port: ServerPort, server: Server) -> str:
    """Return why a port may have more than it requests; empty if it has just that."""
    if not (port.device_owner or "").startswith(_SERVER_PORT_OWNER):
        return f"port {port.uuid} is owned by {port.device_owner or 'nobody'}"
    if port.host != server.host:
        return f"port {port.uuid} is bound on {port.host or 'no host'}"
    if port.has_trunk:
        return f"port {port.uuid} has a trunk"
    if port.device_profile:
        return f"port {port.uuid} has a device profile"
    return ""


def _add_request(requested: dict[str, dict[str, int]], port: ServerPort) -> str:
    """Add what a port requests to `requested`, by its provider.

    Return why the request or the provider is not known; empty if they are.
    """
    groups = port.groups or ()
    if not groups and not port.shows_request:
        return f"Neutron does not show what port {port.uuid} requests"
    for group in groups:
        provider = port.providers.get(group.uuid) or port.providers.get("")
        if provider is None:
            return f"port {port.uuid} does not name the provider of what it requests"
        add_amounts(requested.setdefault(provider, {}), group.resources)
    return ""


def _find_shortage(view: ServerView, present: Allocations, requested: Allocations) -> str:
    """Return of which provider the ports request more than the server has; empty if of none.

    Then the surplus on another provider may be theirs.
    """
    for provider in subtract_amounts(requested, present):
        return f"its ports request more of {view.index.get_name(provider)} than it has"
    return ""


def _find_server_doubt(server: Server) -> str:
    """Return why something other than a port may have requested the amounts."""
    specs = server.flavor.extra_specs if server.flavor else None
    if specs is None:
        return "Nova does not show all of its flavor"
    for name in specs:
        is_network = any(prefix in name for prefix in _CLASS_PREFIXES)
        if is_network or name.startswith("accel:"):
            return f"its flavor has {name}"
    return ""


def _find_place_doubt(view: ServerView, amounts: Allocations) -> str:
    """Return which provider of the amounts is not a child of its host; empty if all are."""
    own = view.own_tree
    for provider in amounts:
        is_child = provider != own and view.index.get_root(provider) == own
        if not is_child or view.index.is_sharing(provider):
            return f"{view.index.get_name(provider)} is not a child provider of its host"
    return ""
