# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What proves that the guest of a server uses no device of a child provider of its host. Pure.

The evidence is what `hypervisor_guest_info` saw on the host. It holds only for as long as nothing
was done to the server since: the server, its allocation and its newest instance action must be
older than the look at the host.
"""

from __future__ import annotations

import dataclasses as d
import re
import typing as t
from collections.abc import Iterable

from ..._common.times import format_duration, is_earlier, seconds_between, shift_time
from .consumer import ConsumerView
from .device_classes import has_only_devices
from .port_leaks import find_action_doubt

if t.TYPE_CHECKING:  # pragma: no cover
    from ..models.guest_devices import GuestDevices, HostGuests

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
_PCI_NAME = re.compile(r"([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")
_GPU_NAME = re.compile(r"pci_([0-9a-f]{4,8})_([0-9a-f]{2})_([0-9a-f]{2})_([0-7])")


@d.dataclass(frozen=True)
class UnusedProviders:
    """The child providers of which the guest of a server is proven to use no device.

    providers: their uuids; empty where nothing is proven.
    explanation: what the host shows, or why nothing is proven; a sentence, or empty where nobody
        has looked at any host.
    """

    providers: frozenset[str]
    explanation: str


def find_unused_providers(
    view: ConsumerView, children: Iterable[str], hosts: Iterable[HostGuests]
) -> UnusedProviders:
    """Return those of `children` of which the guest of the server uses no device.

    hosts: all that was seen on hosts.
    """
    looked_at = tuple(hosts)
    if not looked_at:
        return UnusedProviders(frozenset(), "")
    seen = _find_host(view, looked_at)
    if seen is None:
        return _prove_nothing(f"none of the results in guests is of its host {view.node_name}")
    guest = seen.guests.get(view.consumer)
    if guest is None:
        return _prove_nothing(f"its host had no domain of it at {seen.read_at}")
    doubt = _find_doubt_about_guest(view, guest) or _find_doubt_about_time(view, seen)
    if doubt:
        return _prove_nothing(doubt)
    unused = []
    doubts = []
    for child in sorted(children):
        doubt = _find_doubt_about_child(view, child, guest)
        if doubt:
            doubts.append(doubt)
        else:
            unused.append(child)
    if not unused:
        return _prove_nothing(" and ".join(doubts))
    names = ", ".join(map(view.index.get_name, unused))
    return UnusedProviders(
        frozenset(unused),
        f"At {seen.read_at}, its guest on {seen.host} used no device of {names}.",
    )


def find_device_address(name: str, root_name: str) -> str | None:
    """Return the PCI address in the name that Nova gives to the provider of a device.

    None for the name of any other provider.
    """
    prefix = f"{root_name}_"
    if not name.startswith(prefix):
        return None
    rest = name.removeprefix(prefix).lower()
    if _PCI_NAME.fullmatch(rest):
        return rest
    match = _GPU_NAME.fullmatch(rest)
    if match is None:
        return None
    return f"{match[1]}:{match[2]}:{match[3]}.{match[4]}"


def _prove_nothing(why: str) -> UnusedProviders:
    return UnusedProviders(
        frozenset(), f"What its guest uses is not proven by what was seen on hosts: {why}."
    )


def _find_host(view: ConsumerView, hosts: Iterable[HostGuests]) -> HostGuests | None:
    """Return what was seen on the host of the server."""
    for seen in hosts:
        # The uuid decides where the host has one: another host may have the same name.
        if seen.node is not None:
            if seen.node == view.own_tree:
                return seen
        elif view.server is not None and seen.host == view.server.host:
            return seen
    return None


def _find_doubt_about_guest(view: ConsumerView, guest: GuestDevices) -> str:
    status = view.server.status if view.server else "unknown"
    states = _DOMAIN_STATES.get(status, frozenset())
    if guest.state not in states:
        return f"the server is {status} and its domain was {guest.state}"
    # What a domain that is shut off gets is what its definition says, and libvirt resumes a guest
    # with a saved memory from that.
    if guest.managed_save or (guest.state == "shut off" and not guest.persistent):
        return "its domain has a saved memory, or is not defined on the host"
    if guest.unidentified:
        return f"it has {guest.unidentified[0]}"
    return ""


def _find_doubt_about_time(view: ConsumerView, seen: HostGuests) -> str:
    """Return why what was seen may not be so any more; empty if it is."""
    now = view.subject.server.at
    if is_earlier(shift_time(now, MAX_CLOCK_DIFFERENCE), seen.read_at):
        return f"the clock of its host is ahead of Nova's, with {seen.read_at} after {now}"
    age = seconds_between(seen.read_at, now)
    if age is None or age > MAX_AGE_SECONDS:
        return (
            f"its host was read at {seen.read_at}, more than {format_duration(MAX_AGE_SECONDS)} ago"
        )
    last = shift_time(seen.read_at, -MAX_CLOCK_DIFFERENCE)
    allocation = view.evidence.allocation
    if view.allocation.age_seconds is None:
        return "the age of its allocation is unknown"
    written = shift_time(allocation.at, -view.allocation.age_seconds)
    updated = view.server.updated if view.server else None
    for what, moment in (("its allocation was written", written), ("Nova changed it", updated)):
        if not is_earlier(moment, last):
            return f"{what} at {moment}, and its host was read at {seen.read_at}"
    return _find_doubt_about_actions(view, last)


def _find_doubt_about_actions(view: ConsumerView, last: str) -> str:
    actions = view.subject.actions.value
    if actions is None:
        return "its instance actions could not be read"
    for action in actions:
        if not is_earlier(action.start_time, last):
            return f"the action {action.action} was requested at {action.start_time}"
    # A device may be about to be attached with a port.
    return find_action_doubt(view.subject)


def _find_doubt_about_child(view: ConsumerView, child: str, guest: GuestDevices) -> str:
    """Return why the guest may use a device of a child provider; empty if it uses none."""
    name, own = view.index.get_name(child), view.own_tree or ""
    if not has_only_devices(view.allocation.resources[child]):
        return f"what it has of {name} is not a device that its domain would show"
    provider = view.index.snapshot.providers.get(child)
    if provider is None or provider.parent != own:
        return f"{name} is not a direct child of the provider of its host"
    address = find_device_address(name, view.index.get_name(own))
    if address is None:
        return f"the name of {name} does not say which device it is"
    if address in guest.addresses:
        return f"its guest uses a device of {name}"
    return ""
