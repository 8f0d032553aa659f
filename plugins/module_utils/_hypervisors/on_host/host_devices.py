# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The devices of the host that a domain uses: PCI devices and mediated devices.

This runs on hypervisors, with any Python from 3.9 on.
"""

from __future__ import annotations

import dataclasses as d
import os
import re
import typing as t

from ..._common.uuids import normalize_uuid

if t.TYPE_CHECKING:  # pragma: no cover
    import xml.etree.ElementTree as ET

SYSFS = "/sys"

# Interfaces that use no device of the host by themselves. `direct`, `network` and `vdpa` may.
_VIRTUAL_INTERFACES = frozenset({"bridge", "ethernet", "user", "vhostuser"})
_VIRTUAL_DISKS = frozenset({"block", "dir", "file", "network", "volume"})
# With it, a domain can have devices that its other elements do not show.
_QEMU_COMMAND_LINE = "{http://libvirt.org/schemas/domain/qemu/1.0}commandline"
_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ADDRESS_PARTS = (("domain", 4), ("bus", 2), ("slot", 2), ("function", 1))


@d.dataclass(frozen=True)
class PciDevice:
    """A PCI device of the host that a domain uses.

    address: as in `0000:84:00.1`.
    present: whether the host has such a device now.
    physical_function: the address of its physical function; None for a device that is not a virtual
        function, and for one that is not present.
    """

    address: str
    present: bool
    physical_function: str | None


@d.dataclass(frozen=True)
class MediatedDevice:
    """A mediated device that a domain uses, such as a virtual GPU.

    parent: the address of the PCI device that it is a part of; None where the host does not show
        that, as after it was started again and before the guest was.
    physical_function: that of the parent, if it is a virtual function.
    """

    uuid: str
    parent: str | None
    physical_function: str | None


@d.dataclass(frozen=True)
class HostDevices:
    """All devices of the host that a domain uses.

    others: what may be such a device and cannot be identified, as the XML calls it.
    """

    pci: tuple[PciDevice, ...] = ()
    mediated: tuple[MediatedDevice, ...] = ()
    others: tuple[str, ...] = ()

    def as_fields(self) -> dict[str, t.Any]:
        """Return them as `hypervisor_guest_info` does."""
        return {
            "hostdevs": [d.asdict(device) for device in self.pci],
            "mdevs": [d.asdict(device) for device in self.mediated],
            "other_devices": list(self.others),
        }


def read_host_devices(domain: ET.Element, sysfs: str = SYSFS) -> HostDevices:
    """Return the devices that the XML of a domain names, and what the host shows of them.

    What is not certain to be no device of the host counts as one.
    """
    pci: list[PciDevice] = []
    mediated: list[MediatedDevice] = []
    others: list[str] = []
    for element in _list_device_elements(domain):
        device = _identify(element, sysfs)
        if isinstance(device, PciDevice):
            pci.append(device)
        elif isinstance(device, MediatedDevice):
            mediated.append(device)
        else:
            others.append(f"{element.tag} {element.get('type') or 'without a type'}")
    if domain.find(_QEMU_COMMAND_LINE) is not None:
        others.append("arguments for QEMU")
    return HostDevices(tuple(pci), tuple(mediated), tuple(others))


def _list_device_elements(domain: ET.Element) -> t.Iterator[ET.Element]:
    """Yield the elements that are or may be devices of the host."""
    yield from domain.findall("devices/hostdev")
    for interface in domain.findall("devices/interface"):
        if interface.get("type") not in _VIRTUAL_INTERFACES:
            yield interface
    for disk in domain.findall("devices/disk"):
        if disk.get("type") not in _VIRTUAL_DISKS:
            yield disk


def _identify(element: ET.Element, sysfs: str) -> PciDevice | MediatedDevice | None:
    """Return the device of an element; None where its XML does not identify it."""
    address = element.find("source/address")
    if address is None:
        return None
    if element.tag == "hostdev" and element.get("type") == "mdev":
        return _read_mediated_device(address, sysfs)
    is_pci = {"hostdev": "pci", "interface": "hostdev", "disk": "nvme"}
    if element.get("type") != is_pci[element.tag]:
        return None
    # The address of an interface says its type, because it may be that of a USB device.
    if address.get("type", "pci") != "pci":
        return None
    return _read_pci_device(address, sysfs)


def _read_pci_device(address: ET.Element, sysfs: str) -> PciDevice | None:
    numbers = []
    for name, width in _ADDRESS_PARTS:
        try:
            numbers.append(f"{int(address.get(name, ''), 0):0{width}x}")
        except ValueError:
            return None
    text = f"{numbers[0]}:{numbers[1]}:{numbers[2]}.{numbers[3]}"
    if not _PCI_ADDRESS.fullmatch(text):
        return None
    present = os.path.isdir(_get_pci_folder(text, sysfs))
    return PciDevice(text, present, _read_physical_function(text, sysfs))


def _read_mediated_device(address: ET.Element, sysfs: str) -> MediatedDevice | None:
    uuid = normalize_uuid(address.get("uuid", ""))
    if uuid is None:
        return None
    folder = os.path.join(sysfs, "bus", "mdev", "devices", uuid)
    if not os.path.isdir(folder):
        return MediatedDevice(uuid, None, None)
    # The folder is a link into that of the device which it is a part of.
    parent = os.path.basename(os.path.dirname(os.path.realpath(folder)))
    if not _PCI_ADDRESS.fullmatch(parent):
        return MediatedDevice(uuid, None, None)
    return MediatedDevice(uuid, parent, _read_physical_function(parent, sysfs))


def _read_physical_function(address: str, sysfs: str) -> str | None:
    link = os.path.join(_get_pci_folder(address, sysfs), "physfn")
    if not os.path.islink(link):
        return None
    return os.path.basename(os.path.realpath(link))


def _get_pci_folder(address: str, sysfs: str) -> str:
    return os.path.join(sysfs, "bus", "pci", "devices", address)
