# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option `guests`: what `hypervisor_guest_info` returned on hosts, as evidence."""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Iterator, Mapping

from ..._common.errors import InvalidInput, describe_form_error
from ..._common.json_files import read_json_option, require_private_file
from ..._common.options import List, Options
from ..._common.times import shift_time
from ..models.other_services import GuestDevices, HostGuests


class GuestOptions(Options):
    guests = List(elements="raw")
    """
    Results of M(osops.placement.hypervisor_guest_info), one for each host. Each entry is such a
    dictionary, or the path of a JSON file with one.

    A server with a domain on another host than the one where Nova has the server keeps all its
    allocations, whatever the state of the domain and however old the result is.

    They also show which devices of its host the guest of a server uses, which no API does. Only
    with them an allocation of the kind V(leaked_child) may be removed. Nothing else is ever removed
    because of them.

    A result belongs to a host by its C(compute_id). If that is V(null), C(host) must be the name of
    the host of the compute service.

    A result proves nothing about devices if it is older than one hour, or if the server, its
    allocation or its instance actions changed later than one minute before the host was read.

    Since 2.0.0.
    """


def read_guests(values: Iterable[t.Any]) -> tuple[HostGuests, ...]:
    """Return the guests of each host; each value is a result or the path of a file with one.

    Raises InvalidInput for anything else, a file that others can replace, and two results of one
    host.
    """
    hosts: dict[str, HostGuests] = {}
    nodes: set[str] = set()
    for value in values:
        if isinstance(value, str):
            require_private_file(value)
        parsed = parse_host_guests(read_json_option("guests", value))
        # Which of the two is true would be a guess.
        if parsed.host in hosts or parsed.node in nodes:
            raise InvalidInput(f"guests has two results for the host {parsed.host!r}: give one.")
        hosts[parsed.host] = parsed
        if parsed.node is not None:
            nodes.add(parsed.node)
    return tuple(hosts.values())


def parse_host_guests(document: t.Any) -> HostGuests:
    """Return the guests in one result of `hypervisor_guest_info`.

    Raises InvalidInput if the document is anything else.
    """
    try:
        guests, states = {}, {}
        for domain in document["domains"] or ():
            states[str(domain["uuid"]).lower()] = str(domain["state"])
            # A domain that Nova did not define is not the guest of a server, whatever its uuid.
            if domain["nova"] is not None:
                guests[str(domain["uuid"])] = _parse_domain(domain)
        host, node, read_at = document["host"], document["compute_id"], document["read_at"]
        if not isinstance(host, str) or not isinstance(node, (str, type(None))):
            raise TypeError("host or compute_id is not a text")
        # It raises InvalidInput for what is not a time.
        return HostGuests(host, node, shift_time(str(read_at), 0), guests, states)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            "guests must be results of hypervisor_guest_info of this version of the collection, "
            f"but an entry is not one ({describe_form_error(error)})."
        ) from error


def _parse_domain(domain: Mapping[str, t.Any]) -> GuestDevices:
    addresses: set[str] = set()
    unidentified = [str(other) for other in domain["other_devices"]]
    for device in domain["hostdevs"]:
        addresses |= set(_list_addresses(device["address"], device["physical_function"]))
        # Of such a device it is unknown whether it is a virtual function, and of what.
        if device["present"] is not True:
            unidentified.append(f"PCI device {device['address']}, which the host does not have now")
    for device in domain["mdevs"]:
        addresses |= set(_list_addresses(device["parent"], device["physical_function"]))
        if device["parent"] is None:
            unidentified.append(
                f"mediated device {device['uuid']}, whose parent the host does not show"
            )
    return GuestDevices(
        state=str(domain["state"]),
        persistent=domain["persistent"] is True,
        managed_save=domain["managed_save"] is not False,
        addresses=frozenset(addresses),
        unidentified=tuple(unidentified),
    )


def _list_addresses(*addresses: t.Any) -> Iterator[str]:
    for address in addresses:
        if address is not None:
            yield str(address).lower()
