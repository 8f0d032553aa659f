# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What decides on the resource request of a server, from the answers about it. Pure.

An answer that is missing leaves its part unread, with the reason.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping, Sequence

from ..models.nova import SWAPPING_ACTION, Flavor, Server
from ..models.resource_request import Attachment, PciAlias, ServerInputs, ServerPort
from ..models.snapshot import Answer, Evidence
from .devices import count_devices
from .specs import RefusedByNovaError

# The extra spec that names a device profile of Cyborg.
_PROFILE_SPEC = "accel:device_profile"

_OLD_NOVA = "Nova does not show it (that needs compute microversion 2.98)"


def build_inputs(
    flavor: Flavor, subject: Evidence, pci_aliases: Mapping[str, PciAlias]
) -> ServerInputs:
    """Return what decides on the request of a server, from the direct lookups about it.

    flavor: the server's own.
    """
    unread: dict[str, str] = {}
    volume_backed = _decide_volume_backed(subject, unread)
    image_properties = _choose_image_properties(subject, unread)
    if flavor.extra_specs is None:
        unread["extra_specs"] = "Nova does not show the extra specs of its flavor"
    profiles = {}
    for answer in subject.device_profiles:
        if answer.value is not None:
            groups = answer.value.groups
            why = _find_profile_doubt(answer.value.name, groups, flavor, subject)
            if why:
                unread["device_profiles"] = why
            else:
                profiles[answer.value.name] = groups
        else:
            unread["device_profiles"] = describe_unread(answer, "Cyborg", "a device profile")
    accelerators = subject.accelerators.value
    if accelerators is None and subject.device_profiles:
        unread["accelerators"] = describe_unread(
            subject.accelerators, "Cyborg", "its accelerator requests"
        )
    return ServerInputs(
        **vars(flavor),
        volume_backed=volume_backed,
        image_properties=image_properties,
        ports=_choose_ports(subject, unread),
        pci_aliases=pci_aliases,
        device_profiles=profiles,
        accelerators=accelerators,
        unread=unread,
    )


def build_listed_inputs(
    flavor: Flavor, server: Server, pci_aliases: Mapping[str, PciAlias]
) -> ServerInputs:
    """Return what decides on the request of a server, as far as a listing of servers shows it.

    A listing shows neither ports nor devices: what they request is not in the inputs.
    """
    unread: dict[str, str] = {}
    image_properties = server.image_properties
    volume_backed: bool | None = not server.image
    if server.image and server.volumes:
        volume_backed = None
        unread["volume_backed"] = "it has an image and volumes"
    if not server.image:
        image_properties = None
        unread["image_properties"] = "a listing does not show the properties of a volume"
    elif image_properties is None:
        unread["image_properties"] = _OLD_NOVA
    return ServerInputs(
        **vars(flavor),
        volume_backed=volume_backed,
        image_properties=image_properties,
        ports=(),
        pci_aliases=pci_aliases,
        unread=unread,
    )


def find_root_volume(server: Server, attachments: Sequence[Attachment] | None) -> str | None:
    """Return the volume that a server boots from; None if there is none, or it is unknown.

    attachments: None where they could not be read.
    """
    if not server.volumes:
        return None
    # Nova lists no volume twice, and the only volume of a server without an image is its root disk.
    if not server.image and len(server.volumes) == 1:
        return server.volumes[0]
    for attachment in attachments or ():
        if attachment.device and _is_same_device(attachment.device, server.root_device):
            return attachment.volume
    return None


def list_device_profiles(
    extra_specs: Mapping[str, str] | None, ports: Iterable[ServerPort]
) -> list[str]:
    """Return the names of the device profiles of Cyborg that a flavor and ports request."""
    names = {port.device_profile for port in ports if port.device_profile}
    if extra_specs and extra_specs.get(_PROFILE_SPEC):
        names.add(extra_specs[_PROFILE_SPEC])
    return sorted(names)


def describe_unread(answer: Answer[t.Any], service: str, what: str) -> str:
    """Return why an answer of a service says nothing, as a part of a sentence."""
    if not answer.request:
        return f"the service catalogue has no {service}, which would show {what}"
    if not answer.status:
        return f"{service} did not answer when asked for {what}"
    if answer.status == 200:
        return f"the answer of {service} does not show {what}"
    return f"{service} answered {answer.status} when asked for {what}"


def _find_profile_doubt(
    name: str, groups: Iterable[Mapping[str, str]], flavor: Flavor, subject: Evidence
) -> str:
    """Return why a profile may not be that with which the server was created; empty if it is.

    Cyborg makes one accelerator request for each device (cyborg/api/controllers/v2/arqs.py). Who
    has deleted the profile may have made another of the same name.
    """
    requests = subject.accelerators.value
    if requests is None:
        return ""
    named = [(flavor.extra_specs or {}).get(_PROFILE_SPEC)]
    for port in subject.server_ports.value or ():
        named.append(port.device_profile)
    made = sum(request.device_profile == name for request in requests)
    devices = 0
    try:
        for group in groups:
            # Each of these is two devices for Cyborg.
            is_double = group.get("trait:CUSTOM_FPGA_XILINX") == "required"
            devices += count_devices([group]) * (2 if is_double else 1) * named.count(name)
    except RefusedByNovaError:
        return f"device profile {name} has an invalid amount"
    if made == devices:
        return ""
    return f"Cyborg has {made} accelerator requests for it, and device profile {name} has {devices}"


def _decide_volume_backed(subject: Evidence, unread: dict[str, str]) -> bool | None:
    server = subject.shape.value
    if server is None:
        unread["volume_backed"] = describe_unread(subject.shape, "Nova", "its image")
        return None
    # Nova decides by the root disk, and by the image where it knows no root disk
    # (nova/compute/utils.py, is_volume_backed_instance).
    if not server.image:
        return True
    if not server.volumes:
        return False
    attachments = subject.attachments.value
    if attachments is None:
        unread["volume_backed"] = describe_unread(
            subject.attachments, "Nova", "where its volumes are attached"
        )
        return None
    if not server.root_device or not all(entry.device for entry in attachments):
        unread["volume_backed"] = "Nova does not show which of its disks it boots from"
        return None
    return find_root_volume(server, attachments) is not None


def _choose_image_properties(subject: Evidence, unread: dict[str, str]) -> Mapping[str, str] | None:
    server = subject.shape.value
    if server is None:
        unread["image_properties"] = describe_unread(subject.shape, "Nova", "its image")
        return None
    if server.image:
        if server.image_properties is None:
            unread["image_properties"] = _OLD_NOVA
        return server.image_properties
    reason = _find_volume_doubt(subject)
    if reason:
        unread["image_properties"] = reason
        return None
    volume = subject.root_volume.value
    if volume is None:
        return None
    return volume.image_properties


def _find_volume_doubt(subject: Evidence) -> str:
    """Return why the properties of the volume may not be those of the server; empty if they are.

    Nova keeps the properties that the volume had when the server was created.
    """
    actions, server = subject.actions.value, subject.shape.value
    if server is not None and find_root_volume(server, subject.attachments.value) is None:
        return "Nova does not show which of its volumes it boots from"
    if subject.root_volume.value is None:
        return describe_unread(
            subject.root_volume, "Cinder", "the image properties of the volume that it boots from"
        )
    if actions is None:
        return "its instance actions, which would show that a volume was swapped, are not known"
    if any(action.action == SWAPPING_ACTION for action in actions):
        return "one of its volumes was swapped, and Cinder shows the image of the new one"
    return ""


def _choose_ports(subject: Evidence, unread: dict[str, str]) -> tuple[ServerPort, ...] | None:
    """Return the ports of the server, None unless all that Nova has attached can be read."""
    attached, ports = subject.interfaces.value, subject.server_ports.value
    if ports is None:
        unread["ports"] = describe_unread(subject.server_ports, "Neutron", "its ports")
        return None
    if attached is None:
        unread["ports"] = describe_unread(subject.interfaces, "Nova", "its ports")
        return None
    # To some roles Neutron shows no ports of other projects, and does not say so.
    if set(attached) != {port.uuid for port in ports}:
        unread["ports"] = "not all of its ports could be read from Neutron"
        return None
    for port in ports:
        if not _is_allocated(port):
            unread["ports"] = (
                f"port {port.uuid} requests resources, and Neutron does not show where Nova has "
                "allocated them"
            )
            return None
    return ports


def _is_allocated(port: ServerPort) -> bool:
    """Return whether Neutron shows a provider for each group of resources of a port.

    Of a port that got its QoS policy later, Nova has allocated nothing.
    """
    if "" in port.providers:
        return True
    groups = [group.uuid for group in port.groups or () if group.resources]
    return set(groups) <= set(port.providers)


def _is_same_device(one: str, other: str | None) -> bool:
    return one.removeprefix("/dev/") == (other or "").removeprefix("/dev/")
