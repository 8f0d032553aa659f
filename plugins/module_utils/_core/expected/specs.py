# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Extra specs and image properties as Nova reads them, and the request groups that they become.

Pure.
"""

from __future__ import annotations

import dataclasses as d
import re
from collections.abc import Container, Iterable, Mapping

from ..models.other_services import AmountRule, RequestGroup
from ..models.placement import STANDARD_CLASSES

_GROUP_SPEC = re.compile("(resources|trait)([A-Za-z0-9_-]{0,64}):(.*)", re.DOTALL)
_TRUE_TEXTS = frozenset({"1", "t", "true", "on", "y", "yes"})
# The image properties that decide on the request and have only these values; Nova refuses any other
# (nova/objects/image_meta.py).
_IMAGE_VALUES = {
    "hw_cpu_policy": ("dedicated", "shared", "mixed"),
    "hw_cpu_thread_policy": ("prefer", "isolate", "require"),
    "hw_firmware_type": ("uefi", "bios"),
    "hw_maxphysaddr_mode": ("passthrough", "emulate"),
    "hw_mem_encryption_model": ("amd-sev", "amd-sev-es", "amd-sev-snp", "intel-tdx"),
    "hw_pci_numa_affinity_policy": ("required", "legacy", "preferred", "socket"),
    "hw_tpm_model": ("tpm-tis", "tpm-crb"),
    "hw_tpm_version": ("1.2", "2.0"),
    "os_secure_boot": ("required", "disabled", "optional"),
}


@d.dataclass(frozen=True)
class GroupSpec:
    """An extra spec that is part of a request group, such as `resources1:VGPU`.

    kind: `resources` or `trait`. group: its suffix, or empty. name: of the class or the trait.
    """

    kind: str
    group: str
    name: str


def parse_group_spec(key: str) -> GroupSpec | None:
    """Return what of a request group an extra spec is; None for any other extra spec.

    The form is that of nova/scheduler/utils.py, ResourceRequest.XS_KEYPAT.
    """
    match = _GROUP_SPEC.fullmatch(key)
    return GroupSpec(*match.groups()) if match else None


def read_boolean(value: str) -> bool:
    """Return whether a text says yes, as oslo.utils reads it."""
    return value.strip().lower() in _TRUE_TEXTS


def read_integer(text: str | int) -> int | None:
    """Return the whole number that a text is; None if it is none."""
    try:
        return int(text)
    except ValueError:
        return None


def check_image_values(image: Mapping[str, str]) -> None:
    """Raise RefusedByNovaError if Nova accepts no such value of a property."""
    for name, values in _IMAGE_VALUES.items():
        if name in image:
            check_value(f"image property {name}", image[name], values)


def check_value(name: str, value: str, values: Container[str]) -> None:
    """Raise RefusedByNovaError if it is none of the values."""
    if value not in values:
        raise RefusedByNovaError(f"{name} has a value that Nova does not accept")


def choose_value(
    specs: Mapping[str, str], image: Mapping[str, str], prefix: str, name: str
) -> str | None:
    """Return what the flavor says, else what the image says; None if neither does.

    The names are such as `hw:tpm_model` and `hw_tpm_model`, where `hw` is the prefix.

    Raises RefusedByNovaError if they differ.
    """
    flavor_value = specs.get(f"{prefix}:{name}")
    image_value = image.get(f"{prefix}_{name}")
    if flavor_value and image_value and flavor_value != image_value:
        raise RefusedByNovaError(f"flavor and image differ in {prefix}:{name}")
    return flavor_value or image_value


# The group without a suffix.
MAIN_GROUP = ""


class RefusedByNovaError(Exception):
    """Nova would have refused to boot such a server. The text says why, as a part of a sentence."""


class Group:
    """One request group while it is collected."""

    def __init__(self) -> None:
        self.amounts: dict[str, int] = {}
        self.sources: dict[str, str] = {}
        self.required: set[str] = set()
        self.forbidden: set[str] = set()
        self.unknown_classes: set[str] = set()
        self.provider: str | None = None
        self.pci = False

    def add_resource(self, cls: str, amount: str | int, source: str) -> None:
        """Request `amount` of a class, in place of any earlier amount of it.

        Nova ignores classes that it does not know and amounts that are not whole numbers
        (nova/objects/request_spec.py, RequestGroup.add_resource).
        """
        if not cls.startswith("CUSTOM_") and cls not in STANDARD_CLASSES:
            # A newer Nova may know it, if it is the name of a class at all.
            if re.fullmatch("[A-Z0-9_]+", cls):
                self.unknown_classes.add(cls)
            return
        number = read_integer(amount)
        if number is not None and number >= 0:
            self.amounts[cls] = number
            self.sources[cls] = source

    def add_spec(self, spec: GroupSpec, value: str, source: str) -> None:
        """Request an amount or a trait, as an extra spec or a device profile says."""
        if spec.kind == "resources":
            self.add_resource(spec.name, value, source)
        else:
            self.add_trait(spec.name, value)

    def add_trait(self, trait: str, value: str) -> None:
        """Require or forbid a trait; Nova ignores any other value."""
        if value == "required":
            self.required.add(trait)
        elif value == "forbidden":
            self.forbidden.add(trait)

    def strip_zeros(self) -> None:
        """Remove the amounts of zero."""
        self.amounts = {cls: amount for cls, amount in self.amounts.items() if amount}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is requested; an amount of zero is something."""
        return not (self.amounts or self.required or self.forbidden)


class GroupBuilder:
    """Collects the groups of one resource request (nova/scheduler/utils.py, ResourceRequest)."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self.isolate = False

    def get_group(self, name: str) -> Group:
        """Return a group; it is made if it is not there."""
        return self._groups.setdefault(name, Group())

    def add_groups(self, groups: Iterable[tuple[str, Group]], without_zeros: bool) -> None:
        """Add groups of ports or devices.

        Raises RefusedByNovaError for an empty group and for a name that is taken.
        """
        for name, group in groups:
            if without_zeros:
                group.strip_zeros()
            if group.is_empty:
                raise RefusedByNovaError(f"request group {name} requests nothing")
            if name in self._groups:
                raise RefusedByNovaError(f"two request groups have the name {name}")
            self._groups[name] = group

    def has_class(self, *classes: str) -> bool:
        """Return whether any group has an amount of one of the classes, even of zero."""
        return any(not group.amounts.keys().isdisjoint(classes) for group in self._groups.values())

    def list_unknown_classes(self) -> frozenset[str]:
        """Return the names of classes that were ignored because they are unknown."""
        return frozenset().union(*(group.unknown_classes for group in self._groups.values()))

    def finish_groups(self) -> dict[str, RequestGroup]:
        """Return the groups by name, without amounts of zero and without empty groups."""
        finished = {}
        for name, group in self._groups.items():
            group.strip_zeros()
            if group.is_empty:
                continue
            finished[name] = RequestGroup(
                name=name,
                resources=dict(group.amounts),
                required=frozenset(group.required),
                forbidden=frozenset(group.forbidden),
                provider=group.provider,
                pci=group.pci,
            )
        return finished

    def finish_rules(self) -> tuple[AmountRule, ...]:
        """Return where each amount of the finished groups comes from."""
        return tuple(
            AmountRule(name, cls, amount, group.sources[cls])
            for name, group in self._groups.items()
            for cls, amount in group.amounts.items()
        )
