# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The resource classes of devices that the definition of a guest shows. Pure."""

from __future__ import annotations

from ..models.placement import Resources

_DEVICE_CLASSES = frozenset({"FPGA", "PCI_DEVICE", "PGPU", "SRIOV_NET_VF", "VGPU"})

# Nova names the class of a PCI device after its vendor and product, or as the operator wants it.
_OWN_CLASS_PREFIX = "CUSTOM_"


def has_only_devices(amounts: Resources) -> bool:
    """Return whether all of these resources are devices that the definition of a guest shows."""
    return all(cls in _DEVICE_CLASSES or cls.startswith(_OWN_CLASS_PREFIX) for cls in amounts)
