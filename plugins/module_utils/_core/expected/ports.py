# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The resources that the ports of a server request. Pure.

The source is nova/network/neutron.py, create_resource_requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..models.resource_request import MissingInput, ServerInputs, ServerPort
from .devices import count_devices, list_profile_groups
from .specs import Group, RefusedByNovaError

# nova/network/model.py, VNIC_TYPES_ACCELERATOR
_ACCELERATOR_TYPES = ("accelerator-direct", "accelerator-direct-physical")
# The types of ports without a PCI device.
_VIRTUAL_TYPES = ("normal", "baremetal", "smart-nic")


def list_port_groups(inputs: ServerInputs) -> Iterator[tuple[str, Group]]:
    """Yield the groups that the ports request, with their names; what is unknown is left out.

    Raises RefusedByNovaError for a port with more than one device.
    """
    for port in inputs.ports or ():
        profile = _find_profile(port)
        specs = inputs.device_profiles.get(profile) if profile else None
        if profile and specs is not None:
            if count_devices(specs) > 1:
                raise RefusedByNovaError("the device profile of a port has more than one device")
            yield from list_profile_groups(profile, specs, port.uuid, inputs.accelerators or ())
        for requested in port.groups or ():
            group = Group()
            group.amounts.update(requested.resources)
            group.sources.update(dict.fromkeys(requested.resources, f"port {port.uuid}"))
            group.required |= requested.required
            group.provider = port.providers.get(requested.uuid, port.providers.get(""))
            yield requested.uuid, group


def list_same_subtrees(inputs: ServerInputs) -> tuple[frozenset[str], ...]:
    """Return the sets of groups whose providers have to be in one subtree."""
    return tuple(frozenset(port.same_subtree) for port in inputs.ports or () if port.same_subtree)


def list_missing_ports(inputs: ServerInputs) -> Iterator[MissingInput]:
    """Yield what is unknown about the ports and the device profiles that they name."""
    if inputs.ports is None:
        reason = inputs.unread.get("ports", "the ports of the server could not be read")
        yield MissingInput("ports", reason)
        return
    for port in inputs.ports:
        if port.vnic_type not in _VIRTUAL_TYPES:
            # nova-compute allocates any tracked device (nova/compute/pci_placement_translator.py).
            reason = f"no API shows whether the PCI device of port {port.uuid} is in Placement"
            yield MissingInput("ports", reason, pci=True)
        if port.groups is None:
            yield MissingInput(
                "ports", f"these credentials may not see what port {port.uuid} requests"
            )
        if port.vnic_type is None and port.device_profile:
            yield MissingInput("ports", f"Neutron does not show the VNIC type of port {port.uuid}")
            continue
        if port.vnic_type in _ACCELERATOR_TYPES and not port.device_profile:
            yield MissingInput("ports", f"Neutron shows no device profile of port {port.uuid}")
            continue
        profile = _find_profile(port)
        if profile:
            yield from list_missing_profile(profile, inputs.device_profiles, inputs.unread)


def list_missing_profile(
    profile: str, profiles: Mapping[str, object], unread: Mapping[str, str]
) -> Iterator[MissingInput]:
    """Yield that a device profile is unknown, if it is."""
    if profile in profiles:
        return
    reason = unread.get("device_profiles", f"device profile {profile} could not be read")
    yield MissingInput("device_profile", reason)


def _find_profile(port: ServerPort) -> str | None:
    # Nova ignores the device profile of any other port.
    return port.device_profile if port.vnic_type in _ACCELERATOR_TYPES else None
