# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Extra specs of flavors and properties of images, read as Nova reads them. Pure."""

from __future__ import annotations

import dataclasses as d
import string
from collections.abc import Mapping

from .groups import RefusedByNovaError

_SUFFIX_CHARACTERS = frozenset(string.ascii_letters + string.digits + "_-")
_LONGEST_SUFFIX = 64
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
    start, colon, name = key.partition(":")
    if not colon:
        return None
    for kind in ("resources", "trait"):
        if not start.startswith(kind):
            continue
        suffix = start.removeprefix(kind)
        if len(suffix) <= _LONGEST_SUFFIX and _SUFFIX_CHARACTERS.issuperset(suffix):
            return GroupSpec(kind, suffix, name)
    return None


def read_boolean(value: str) -> bool:
    """Return whether a text says yes, as oslo.utils reads it."""
    return value.strip().lower() in _TRUE_TEXTS


def check_image_values(image: Mapping[str, str]) -> None:
    """Raise RefusedByNovaError if Nova accepts no such value of a property."""
    for name, values in _IMAGE_VALUES.items():
        if name in image and image[name] not in values:
            raise RefusedByNovaError(f"image property {name} has a value that Nova does not accept")


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
