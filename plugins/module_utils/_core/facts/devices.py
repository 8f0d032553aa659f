# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a guest does not use: devices of child providers, and bandwidth of ports. Pure.

The evidence is what `hypervisor_guest_info` saw on the host. It holds only for as long as nothing
was done to the server since: the server, its allocation and its newest instance action must be
older than the look at the host.

Nova frees what a port has only where it detaches the port itself (nova/compute/manager.py,
_deallocate_port_for_instance). When Neutron deletes a port that is bound, Nova logs that its
allocation is leaked (_process_instance_vif_deleted_event; LP 1820588).
"""

from __future__ import annotations

import dataclasses as d
import re
import typing as t
from collections.abc import Iterable

from ..._common.errors import Reason
from ..._common.times import format_duration, is_earlier, seconds_between, shift_time
from ..models.nova import PORT_ACTIONS, Action, Server
from ..models.other_services import ServerPort
from ..models.placement import Allocations, Resources, add_amounts, subtract_amounts
from ..models.snapshot import Evidence
from .consumer import ConsumerView
from .server import ACTIONS_UNREAD, ServerView

if t.TYPE_CHECKING:  # pragma: no cover
    from ..models.other_services import GuestDevices, HostGuests


AGE_UNKNOWN = Reason("allocation_age_unknown", "the age of its allocation is unknown")

# Beyond this a look at a host proves nothing.
MAX_AGE_SECONDS = 3600
# By how much the clocks of a host, of Nova and of Placement may differ. Nova takes a host whose
# clock differs by more for one that is down (service_down_time).
MAX_CLOCK_DIFFERENCE = 60
# The states of a domain by the status of its server. In any other status Nova may have taken
# devices away that it gives back later: a suspended guest has none (nova/virt/libvirt/driver.py,
# suspend).
_DOMAIN_STATES = {
    "ACTIVE": frozenset({"running", "idle"}),
    "PAUSED": frozenset({"paused"}),
    "SHUTOFF": frozenset({"shut off"}),
}
# `<name of the root>_0000:84:00.0` (nova/compute/pci_placement_translator.py) and
# `<name of the root>_pci_0000_84_00_0` (nova/virt/libvirt/driver.py, VGPU).
_DEVICE_NAME = re.compile(
    r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])"
    r"|pci_([0-9a-f]{4,8})_([0-9a-f]{2})_([0-9a-f]{2})_([0-7])"
)


@d.dataclass(frozen=True)
class UnusedProviders:
    """The child providers of which the guest of a server is proven to use no device.

    providers: their uuids; empty where nothing is proven.
    explanation: what the host shows, or why nothing is proven; None where nobody has looked at any
        host.
    """

    providers: frozenset[str]
    explanation: Reason | None


def find_unused_providers(
    view: ConsumerView, children: Iterable[str], hosts: Iterable[HostGuests]
) -> UnusedProviders:
    """Return those of `children` of which the guest of the server uses no device.

    hosts: all that was seen on hosts.
    """
    looked_at = tuple(hosts)
    if not looked_at:
        return UnusedProviders(frozenset(), None)
    seen = _find_host(view, looked_at)
    if seen is None:
        return _prove_nothing(
            Reason(
                "host_not_in_guests",
                f"none of the results in guests is of its host {view.node_name}",
            )
        )
    guest = seen.guests.get(view.consumer)
    if guest is None:
        return _prove_nothing(
            Reason("no_domain_on_host", f"its host had no domain of it at {seen.read_at}")
        )
    doubt = _find_doubt_about_guest(view, guest) or _find_doubt_about_time(view, seen)
    if doubt:
        return _prove_nothing(doubt)
    uses = {child: _find_doubt_about_child(view, child, guest) for child in sorted(children)}
    unused = [child for child, use in uses.items() if not use]
    if not unused:
        doubts = list(filter(None, uses.values()))
        return _prove_nothing(doubts[0].reword(" and ".join(doubts)))
    names = ", ".join(map(view.index.get_name, unused))
    explanation = Reason(
        "devices_unused", f"At {seen.read_at}, its guest on {seen.host} used no device of {names}."
    )
    return UnusedProviders(frozenset(unused), explanation)


def find_device_address(name: str, root_name: str) -> str | None:
    """Return the PCI address in the name that Nova gives to the provider of a device.

    None for the name of any other provider.
    """
    if not name.startswith(f"{root_name}_"):
        return None
    match = _DEVICE_NAME.fullmatch(name.removeprefix(f"{root_name}_").lower())
    return "{}:{}:{}.{}".format(*filter(None, match.groups())) if match else None


def _prove_nothing(why: Reason) -> UnusedProviders:
    sentence = f"What its guest uses is not proven by what was seen on hosts: {why}."
    return UnusedProviders(frozenset(), why.reword(sentence))


def _find_host(view: ConsumerView, hosts: Iterable[HostGuests]) -> HostGuests | None:
    """Return what was seen on the host of the server."""
    own_host = view.server.host if view.server else None
    # The uuid decides where the host has one: another host may have the same name.
    own = (
        seen
        for seen in hosts
        if (seen.host == own_host if seen.node is None else seen.node == view.own_tree)
    )
    return next(own, None)


def _find_doubt_about_guest(view: ConsumerView, guest: GuestDevices) -> Reason | None:
    status = view.server.status if view.server else "unknown"
    states = _DOMAIN_STATES.get(status, frozenset())
    if guest.state not in states:
        return Reason(
            "domain_in_other_state", f"the server is {status} and its domain was {guest.state}"
        )
    # What a domain that is shut off gets is what its definition says, and libvirt resumes a guest
    # with a saved memory from that.
    if guest.managed_save or (guest.state == "shut off" and not guest.persistent):
        return Reason(
            "domain_not_defined", "its domain has a saved memory, or is not defined on the host"
        )
    if guest.unidentified:
        return Reason("unidentified_device", f"it has {guest.unidentified[0]}")
    return None


def _find_doubt_about_time(view: ConsumerView, seen: HostGuests) -> Reason | None:
    """Return why what was seen may not be so any more; empty if it is."""
    now = view.subject.server.at
    if is_earlier(shift_time(now, MAX_CLOCK_DIFFERENCE), seen.read_at):
        return Reason(
            "host_clock_ahead",
            f"the clock of its host is ahead of Nova's, with {seen.read_at} after {now}",
        )
    age = seconds_between(seen.read_at, now)
    if age is None or age > MAX_AGE_SECONDS:
        return Reason(
            "host_read_long_ago",
            f"its host was read at {seen.read_at}, more than {format_duration(MAX_AGE_SECONDS)} "
            "ago",
        )
    last = shift_time(seen.read_at, -MAX_CLOCK_DIFFERENCE)
    if view.allocation.age_seconds is None:
        return AGE_UNKNOWN
    written = shift_time(view.evidence.allocation.at, -view.allocation.age_seconds)
    updated = view.server.updated if view.server else None
    for what, moment in (("its allocation was written", written), ("Nova changed it", updated)):
        if not is_earlier(moment, last):
            return Reason(
                "changed_since_host_was_read",
                f"{what} at {moment}, and its host was read at {seen.read_at}",
            )
    for action in view.subject.actions.value or ():
        if not is_earlier(action.start_time, last):
            return Reason(
                "action_since_host_was_read",
                f"the action {action.action} was requested at {action.start_time}",
            )
    # A device may be about to be attached with a port.
    return find_action_doubt(view.subject)


def _find_doubt_about_child(view: ConsumerView, child: str, guest: GuestDevices) -> Reason | None:
    """Return why the guest may use a device of a child provider; empty if it uses none."""
    name, own = view.index.get_name(child), view.own_tree or ""
    if not has_only_devices(view.allocation.resources[child]):
        return Reason(
            "not_a_device", f"what it has of {name} is not a device that its domain would show"
        )
    provider = view.index.snapshot.providers.get(child)
    if provider is None or provider.parent != own:
        return Reason(
            "not_a_direct_child", f"{name} is not a direct child of the provider of its host"
        )
    address = find_device_address(name, view.index.get_name(own))
    if address is None:
        return Reason("device_not_named", f"the name of {name} does not say which device it is")
    if address in guest.addresses:
        return Reason("device_in_use", f"its guest uses a device of {name}")
    return None


_DEVICE_CLASSES = frozenset({"FPGA", "PCI_DEVICE", "PGPU", "SRIOV_NET_VF", "VGPU"})
# Nova names the class of a PCI device after its vendor and product, or as the operator wants it.
_OWN_CLASS_PREFIX = "CUSTOM_"


def has_only_devices(amounts: Resources) -> bool:
    """Return whether all of these resources are devices that the definition of a guest shows."""
    return all(cls in _DEVICE_CLASSES or cls.startswith(_OWN_CLASS_PREFIX) for cls in amounts)


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
    doubt: why `amounts` may not be a leak or could not be calculated, as a part of a sentence;
        None if it is one.
    """

    amounts: Allocations
    doubt: Reason | None = None


def list_network_amounts(allocations: Allocations) -> Allocations:
    """Return the part of `allocations` that ports may have requested."""
    found = {
        provider: {cls: held[cls] for cls in held if cls.startswith(_CLASS_PREFIXES)}
        for provider, held in allocations.items()
    }
    return {provider: amounts for provider, amounts in found.items() if amounts}


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
    ports, attached = view.subject.server_ports.value, view.subject.interfaces.value
    # To some roles Neutron shows no ports of other projects, and does not say so.
    if ports is None or attached is None or set(attached) != {port.uuid for port in ports}:
        return None
    if any(port.groups is None for port in ports):
        return None
    requested: dict[str, dict[str, int]] = {}
    for port in ports:
        if doubt := _add_request(requested, port):
            return PortLeak({}, doubt)
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
    return PortLeak(amounts, next(filter(None, doubts), None))


def may_have_leak(view: ServerView) -> bool:
    """Return whether the server may have a part of a child provider that it does not need.

    For this it is enough that it has a device: only its host shows whether its guest uses it.
    """
    leak = find_port_leak(view)
    if leak is not None and not leak.doubt:
        return True
    allocation, own = view.subject.allocation.value, view.own_tree
    children = view.server_trees.get(own, frozenset()) - {own}
    return allocation is not None and any(
        has_only_devices(allocation.resources[child]) for child in children
    )


def find_action_doubt(subject: Evidence) -> Reason | None:
    """Return why a port of the server may be on its way; empty if none is.

    Nova records the action before it asks the host, and gives the server no task. It first
    allocates and then attaches; it first detaches and then frees. So the actions have to be read
    after the ports.
    """
    actions = subject.actions.value
    if actions is None:
        return ACTIONS_UNREAD
    requests = list_port_actions(actions)
    if len(requests) > MAX_PORT_ACTIONS:
        return Reason(
            "too_many_port_actions",
            f"more than {MAX_PORT_ACTIONS} of its actions attach or detach a port",
        )
    details = filter(None, (answer.value for answer in subject.port_actions))
    finished = {detail.request_id for detail in details if detail.is_finished}
    for action in requests:
        if action.request_id not in finished:
            return Reason(
                "port_action_unfinished",
                f"its action {action.action} of {action.start_time} is not known to have ended",
            )
    return None


def list_port_actions(actions: Iterable[Action]) -> list[Action]:
    """Return those actions that attach or detach a port."""
    return [action for action in actions if action.action in PORT_ACTIONS]


def _find_port_doubt(port: ServerPort, server: Server) -> Reason | None:
    """Return why a port may have more than it requests; empty if it has just that."""
    owner = port.device_owner or "nobody"
    if not owner.startswith(_SERVER_PORT_OWNER):
        return Reason("port_of_other_owner", f"port {port.uuid} is owned by {owner}")
    if port.host != server.host:
        place = port.host or "no host"
        return Reason("port_bound_elsewhere", f"port {port.uuid} is bound on {place}")
    if port.has_trunk:
        return Reason("port_has_trunk", f"port {port.uuid} has a trunk")
    if port.device_profile:
        return Reason("port_has_device_profile", f"port {port.uuid} has a device profile")
    return None


def _add_request(requested: dict[str, dict[str, int]], port: ServerPort) -> Reason | None:
    """Add what a port requests to `requested`, by its provider.

    Return why the request or the provider is not known; empty if they are.
    """
    groups = port.groups or ()
    if not groups and not port.shows_request:
        return Reason(
            "port_request_not_shown", f"Neutron does not show what port {port.uuid} requests"
        )
    for group in groups:
        provider = port.providers.get(group.uuid) or port.providers.get("")
        if provider is None:
            return Reason(
                "port_provider_not_named",
                f"port {port.uuid} does not name the provider of what it requests",
            )
        add_amounts(requested.setdefault(provider, {}), group.resources)
    return None


def _find_shortage(view: ServerView, present: Allocations, requested: Allocations) -> Reason | None:
    """Return of which provider the ports request more than the server has; empty if of none.

    Then the surplus on another provider may be theirs.
    """
    lacking = [view.index.get_name(provider) for provider in subtract_amounts(requested, present)]
    if not lacking:
        return None
    return Reason("ports_request_more", f"its ports request more of {lacking[0]} than it has")


def _find_server_doubt(server: Server) -> Reason | None:
    """Return why something other than a port may have requested the amounts."""
    specs = server.flavor.extra_specs if server.flavor else None
    if specs is None:
        return Reason("flavor_not_shown", "Nova does not show all of its flavor")
    for name in specs:
        is_network = any(prefix in name for prefix in _CLASS_PREFIXES)
        if is_network or name.startswith("accel:"):
            return Reason("flavor_requests_network", f"its flavor has {name}")
    return None


def _find_place_doubt(view: ServerView, amounts: Allocations) -> Reason | None:
    """Return which provider of the amounts is not a child of its host; empty if all are."""
    children = view.server_trees.get(view.own_tree, frozenset()) - {view.own_tree}
    others = [view.index.get_name(provider) for provider in amounts if provider not in children]
    if not others:
        return None
    return Reason("not_a_child_provider", f"{others[0]} is not a child provider of its host")
