# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What decides on the resource request of a server, from the answers about it. Pure.

An answer that is missing leaves its part unread, with the reason; what that could change is a
`MissingInput`.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..models.nova import SWAPPING_ACTION, Flavor, Server
from ..models.resource_request import Attachment, MissingInput, PciAlias, ServerInputs, ServerPort
from ..models.snapshot import Answer, Evidence
from .devices import MEMORY_ENCRYPTION, count_devices, parse_pci_request
from .specs import RefusedByNovaError

PCI_ALIAS_SPEC = "pci_passthrough:alias"
# The extra spec that names a device profile of Cyborg.
DEVICE_PROFILE_SPEC = "accel:device_profile"
# nova/network/model.py, VNIC_TYPES_ACCELERATOR
_ACCELERATOR_TYPES = ("accelerator-direct", "accelerator-direct-physical")
# The types of ports without a PCI device.
_VIRTUAL_TYPES = ("normal", "baremetal", "smart-nic")

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
    is_unclear = bool(server.image and server.volumes)
    if is_unclear:
        unread["volume_backed"] = "it has an image and volumes"
    if not server.image:
        unread["image_properties"] = "a listing does not show the properties of a volume"
    elif server.image_properties is None:
        unread["image_properties"] = _OLD_NOVA
    return ServerInputs(
        **vars(flavor),
        volume_backed=None if is_unclear else not server.image,
        image_properties=server.image_properties if server.image else None,
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
    root = (server.root_device or "").removeprefix("/dev/")
    for attachment in attachments or ():
        if attachment.device and attachment.device.removeprefix("/dev/") == root:
            return attachment.volume
    return None


def list_device_profiles(
    extra_specs: Mapping[str, str] | None, ports: Iterable[ServerPort]
) -> list[str]:
    """Return the names of the device profiles of Cyborg that a flavor and ports request."""
    names = {(extra_specs or {}).get(DEVICE_PROFILE_SPEC), *(port.device_profile for port in ports)}
    return sorted(filter(None, names))


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
    ports = subject.server_ports.value or ()
    of_flavor = (flavor.extra_specs or {}).get(DEVICE_PROFILE_SPEC)
    uses = [of_flavor, *(port.device_profile for port in ports)].count(name)
    made = sum(request.device_profile == name for request in requests)
    devices = 0
    try:
        for group in groups:
            # Each of these is two devices for Cyborg.
            is_double = group.get("trait:CUSTOM_FPGA_XILINX") == "required"
            devices += count_devices([group]) * (2 if is_double else 1) * uses
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
    volume = subject.root_volume.value
    return None if reason or volume is None else volume.image_properties


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
    unallocated = next((port.uuid for port in ports if not _is_allocated(port)), None)
    if unallocated is None:
        return ports
    unread["ports"] = (
        f"port {unallocated} requests resources, and Neutron does not show where Nova has "
        "allocated them"
    )
    return None


def _is_allocated(port: ServerPort) -> bool:
    """Return whether Neutron shows a provider for each group of resources of a port.

    Of a port that got its QoS policy later, Nova has allocated nothing.
    """
    groups = {group.uuid for group in port.groups or () if group.resources}
    return "" in port.providers or groups <= port.providers.keys()


def list_missing_inputs(inputs: ServerInputs) -> tuple[MissingInput, ...]:
    """Return each part of the inputs that is unknown and can decide on the request."""
    if inputs.extra_specs is None:
        reason = inputs.unread.get(
            "extra_specs", "Nova does not show the extra specs of its flavor"
        )
        return (MissingInput("flavor", reason),)
    return (
        *_list_missing_image(inputs, inputs.extra_specs),
        *_list_missing_volume(inputs, inputs.extra_specs),
        *_list_missing_devices(inputs, inputs.extra_specs),
        *_list_missing_ports(inputs),
        *_list_missing_accelerators(inputs, inputs.extra_specs),
    )


def list_image_classes(specs: Mapping[str, str]) -> frozenset[str]:
    """Return the classes of which the image of a server can decide on the amount.

    specs: the extra specs of its flavor, which overrule the image.
    """
    classes: set[str] = set()
    # The policy of an image counts only if the flavor has none; its mask of realtime CPUs counts
    # wherever some CPUs are realtime.
    policy = specs.get("hw:cpu_policy")
    if not policy or (policy == "mixed" and "hw:cpu_realtime" in specs):
        classes |= {"VCPU", "PCPU"}
    if not specs.get("hw:mem_encryption"):
        classes.add(MEMORY_ENCRYPTION)
    return frozenset(classes)


def _list_missing_image(inputs: ServerInputs, specs: Mapping[str, str]) -> Iterator[MissingInput]:
    if inputs.image_properties is not None:
        return
    # Without classes, only traits are unknown.
    reason = inputs.unread.get("image_properties", "the properties of its image could not be read")
    yield MissingInput("image", reason, classes=list_image_classes(specs))


def _list_missing_volume(inputs: ServerInputs, specs: Mapping[str, str]) -> Iterator[MissingInput]:
    if inputs.volume_backed is not None or not inputs.disk or "resources:DISK_GB" in specs:
        return
    reason = inputs.unread.get(
        "volume_backed", "it could not be read whether its root disk is a volume"
    )
    yield MissingInput("volume", reason, classes=frozenset({"DISK_GB"}))


def _list_missing_devices(inputs: ServerInputs, specs: Mapping[str, str]) -> Iterator[MissingInput]:
    try:
        requests = parse_pci_request(specs.get(PCI_ALIAS_SPEC, ""))
    except RefusedByNovaError:
        # Either there is no such extra spec, or the request is refused as a whole.
        requests = []
    for name, count in dict(requests).items():
        if count > 0 and name not in inputs.pci_aliases:
            reason = f"the PCI alias {name} is only in the configuration of Nova"
            yield MissingInput("pci_alias", reason)
    profile = specs.get(DEVICE_PROFILE_SPEC)
    if profile:
        yield from _list_missing_profile(profile, inputs)


def _list_missing_accelerators(
    inputs: ServerInputs, specs: Mapping[str, str]
) -> Iterator[MissingInput]:
    if inputs.accelerators is None and list_device_profiles(specs, inputs.ports or ()):
        reason = inputs.unread.get("accelerators", "Cyborg does not show which devices it has")
        yield MissingInput("accelerators", reason)


def _list_missing_ports(inputs: ServerInputs) -> Iterator[MissingInput]:
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
        profile = find_profile(port)
        if profile:
            yield from _list_missing_profile(profile, inputs)


def _list_missing_profile(profile: str, inputs: ServerInputs) -> Iterator[MissingInput]:
    if profile not in inputs.device_profiles:
        unknown = f"device profile {profile} could not be read"
        yield MissingInput("device_profile", inputs.unread.get("device_profiles", unknown))


def find_profile(port: ServerPort) -> str | None:
    """Return the device profile of a port that Nova requests, None without one."""
    # Nova ignores the device profile of any other port.
    return port.device_profile if port.vnic_type in _ACCELERATOR_TYPES else None
