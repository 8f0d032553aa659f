# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What decides on the resource request of a server, from the answers about it. Pure.

An answer that is missing leaves its part unread, with the reason; what that could change is a
`MissingInput`.
"""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..models.nova import SWAPPING_ACTION, Flavor, Server
from ..models.other_services import (
    Attachment,
    DeviceProfile,
    MissingInput,
    PciAlias,
    ServerInputs,
    ServerPort,
)
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


_Value = t.TypeVar("_Value")


class _UnreadError(Exception):
    """A part of the inputs is unknown. The text says why, as a part of a sentence."""


def build_inputs(
    flavor: Flavor, subject: Evidence, pci_aliases: Mapping[str, PciAlias]
) -> ServerInputs:
    """Return what decides on the request of a server, from the direct lookups about it.

    flavor: the server's own.
    """
    unread: dict[str, str] = {}
    if flavor.extra_specs is None:
        unread["extra_specs"] = "Nova does not show the extra specs of its flavor"
    profiles = {}
    for answer in subject.device_profiles:
        try:
            profile = _require(answer, "Cyborg", "a device profile")
            _check_profile(profile, flavor, subject)
            profiles[profile.name] = profile.groups
        except _UnreadError as error:
            unread["device_profiles"] = str(error)
    accelerators = subject.accelerators.value
    if accelerators is None and subject.device_profiles:
        unread["accelerators"] = describe_unread(
            subject.accelerators, "Cyborg", "its accelerator requests"
        )
    return ServerInputs(
        **vars(flavor),
        volume_backed=_read("volume_backed", _decide_volume_backed, subject, unread),
        image_properties=_read("image_properties", _choose_image_properties, subject, unread),
        ports=_read("ports", _choose_ports, subject, unread),
        pci_aliases=pci_aliases,
        device_profiles=profiles,
        accelerators=accelerators,
        unread=unread,
    )


def _read(
    part: str, choose: Callable[[Evidence], _Value], subject: Evidence, unread: dict[str, str]
) -> _Value | None:
    """Return a part of the inputs; None if it is unknown, with the reason in `unread`."""
    try:
        return choose(subject)
    except _UnreadError as error:
        unread[part] = str(error)
        return None


def _require(answer: Answer[_Value], service: str, what: str) -> _Value:
    if answer.value is None:
        raise _UnreadError(describe_unread(answer, service, what))
    return answer.value


def build_listed_inputs(
    flavor: Flavor, server: Server, pci_aliases: Mapping[str, PciAlias]
) -> ServerInputs:
    """Return what decides on the request of a server, as far as a listing of servers shows it.

    A listing shows neither ports nor devices: what they request is not in the inputs.
    """
    unread: dict[str, str] = {}
    is_unclear = bool(server.image) == bool(server.volumes)
    if is_unclear:
        unread["volume_backed"] = "it has an image and volumes, or neither"
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

    The only volume of a server without an image may be one of data, beside a blank local root disk.

    attachments: None where they could not be read.
    """
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


def _check_profile(profile: DeviceProfile, flavor: Flavor, subject: Evidence) -> None:
    """Raise _UnreadError if a profile may not be that with which the server was created.

    Cyborg makes one accelerator request for each device (cyborg/api/controllers/v2/arqs.py). Who
    has deleted the profile may have made another of the same name.
    """
    requests, name = subject.accelerators.value, profile.name
    if requests is None:
        return
    ports = subject.server_ports.value or ()
    of_flavor = (flavor.extra_specs or {}).get(DEVICE_PROFILE_SPEC)
    uses = [of_flavor, *(port.device_profile for port in ports)].count(name)
    made = sum(request.device_profile == name for request in requests)
    devices = 0
    try:
        for group in profile.groups:
            # Each of these is two devices for Cyborg.
            is_double = group.get("trait:CUSTOM_FPGA_XILINX") == "required"
            devices += count_devices([group]) * (2 if is_double else 1) * uses
    except RefusedByNovaError:
        raise _UnreadError(f"device profile {name} has an invalid amount") from None
    if made != devices:
        raise _UnreadError(
            f"Cyborg has {made} accelerator requests for it, and device profile {name} has "
            f"{devices}"
        )


def _decide_volume_backed(subject: Evidence) -> bool:
    server = _require(subject.shape, "Nova", "its image")
    # Nova decides by the root disk, and by the image where it knows no root disk
    # (nova/compute/utils.py, is_volume_backed_instance).
    if not server.volumes:
        if server.image:
            return False
        # Its root disk may be a blank one of its host, which Nova shows to nobody.
        raise _UnreadError("it has neither an image nor a volume that it could boot from")
    attachments = _require(subject.attachments, "Nova", "where its volumes are attached")
    if not server.root_device or not all(entry.device for entry in attachments):
        raise _UnreadError("Nova does not show which of its disks it boots from")
    is_volume = find_root_volume(server, attachments) is not None
    if not is_volume and not server.image:
        raise _UnreadError("it has no image, and none of its volumes is its root disk")
    return is_volume


def _choose_image_properties(subject: Evidence) -> Mapping[str, str]:
    """Return the properties of the image, or of the volume that the server boots from.

    Nova keeps the properties that the volume had when the server was created.
    """
    server = _require(subject.shape, "Nova", "its image")
    if server.image:
        if server.image_properties is None:
            raise _UnreadError(_OLD_NOVA)
        return server.image_properties
    if find_root_volume(server, subject.attachments.value) is None:
        raise _UnreadError("Nova does not show which of its volumes it boots from")
    what = "the image properties of the volume that it boots from"
    volume = _require(subject.root_volume, "Cinder", what)
    actions = subject.actions.value
    if actions is None:
        raise _UnreadError(
            "its instance actions, which would show that a volume was swapped, are not known"
        )
    if any(action.action == SWAPPING_ACTION for action in actions):
        raise _UnreadError(
            "one of its volumes was swapped, and Cinder shows the image of the new one"
        )
    return volume.image_properties


def _choose_ports(subject: Evidence) -> tuple[ServerPort, ...]:
    """Return the ports of the server, if all that Nova has attached can be read."""
    ports = _require(subject.server_ports, "Neutron", "its ports")
    attached = _require(subject.interfaces, "Nova", "its ports")
    # To some roles Neutron shows no ports of other projects, and does not say so.
    if set(attached) != {port.uuid for port in ports}:
        raise _UnreadError("not all of its ports could be read from Neutron")
    for port in ports:
        if not _is_allocated(port):
            raise _UnreadError(
                f"port {port.uuid} requests resources, and Neutron does not show where Nova has "
                "allocated them"
            )
    return ports


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
