# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of the inputs of a server is missing, and what it could change. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..models.resource_request import MissingInput, ServerInputs
from .devices import parse_pci_request
from .groups import RefusedByNovaError
from .guest_features import MEMORY_ENCRYPTION
from .ports import list_missing_ports, list_missing_profile


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
        *list_missing_ports(inputs),
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
    if inputs.volume_backed is not None or not inputs.disk:
        return
    if "resources:DISK_GB" in specs:
        return
    reason = inputs.unread.get(
        "volume_backed", "it could not be read whether its root disk is a volume"
    )
    yield MissingInput("volume", reason, classes=frozenset({"DISK_GB"}))


def _list_missing_devices(inputs: ServerInputs, specs: Mapping[str, str]) -> Iterator[MissingInput]:
    try:
        requests = parse_pci_request(specs.get("pci_passthrough:alias", ""))
    except RefusedByNovaError:
        # Either there is no such extra spec, or the request is refused as a whole.
        requests = []
    for name, count in dict(requests).items():
        if count > 0 and name not in inputs.pci_aliases:
            reason = f"the PCI alias {name} is only in the configuration of Nova"
            yield MissingInput("pci_alias", reason)
    profile = specs.get("accel:device_profile")
    if profile:
        yield from list_missing_profile(profile, inputs.device_profiles, inputs.unread)


def _list_missing_accelerators(
    inputs: ServerInputs, specs: Mapping[str, str]
) -> Iterator[MissingInput]:
    if inputs.accelerators is not None:
        return
    has_profile = bool(specs.get("accel:device_profile"))
    for port in inputs.ports or ():
        has_profile = has_profile or bool(port.device_profile)
    if has_profile:
        reason = inputs.unread.get("accelerators", "Cyborg does not show which devices it has")
        yield MissingInput("accelerators", reason)
