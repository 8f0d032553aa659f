# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The XML of a domain: what libvirt, Nova and the host say of it.

This runs on hypervisors, with any Python from 3.9 on.
"""

from __future__ import annotations

import dataclasses as d
import os
import re
import typing as t
import xml.etree.ElementTree as ET

from ..._common.errors import HostError
from ..._common.text import normalize_uuid

SHUT_OFF = "shut off"
MAX_XML_BYTES = 10 * 1024 * 1024
# The end of the namespace is a version, which differs between releases of Nova.
_NOVA_METADATA_TAG = re.compile(r"\{(http://openstack\.org/xmlns/libvirt/nova/[0-9.]+)\}instance")

SYSFS = "/sys"

# Types that use no device of the host by themselves. The interfaces `direct`, `network` and `vdpa`
# may.
_VIRTUAL = {
    "interface": ("bridge", "ethernet", "user", "vhostuser"),
    "disk": ("block", "dir", "file", "network", "volume"),
}
# With it, a domain can have devices that its other elements do not show.
_QEMU_COMMAND_LINE = "{http://libvirt.org/schemas/domain/qemu/1.0}commandline"
_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ADDRESS_PARTS = ("domain", "bus", "slot", "function")


@d.dataclass(frozen=True)
class Domain:
    """A domain as libvirt describes it.

    nova: its metadata of Nova; None for a domain without them, which does not belong to Nova.
    devices: the devices of the host that it uses, by the fields of `hypervisor_guest_info`; of a
        domain that is shut off, those that it gets when it starts.
    """

    uuid: str
    name: str
    state: str
    vcpus: int
    memory_mb: int
    persistent: bool
    managed_save: bool
    snapshots: int
    nvram: str | None
    firmware: bool
    tpm: bool
    nova: t.Mapping[str, str | None] | None
    disks: tuple[str, ...]
    devices: t.Mapping[str, list[t.Any]]

    def as_dict(self) -> dict[str, t.Any]:
        """Return the domain as the modules return it."""
        fields = {**d.asdict(self), "disks": list(self.disks)}
        del fields["firmware"], fields["devices"]
        return {**fields, **self.devices}

    def __str__(self) -> str:
        return f"domain {self.name!r} ({self.uuid})"


def parse_domain(
    xml: bytes, *, state: str, persistent: bool, managed_save: bool = False, snapshots: int = 0
) -> Domain:
    """Return the domain that `xml` describes. Raises HostError when it does not describe one."""
    root = _parse_xml(xml)
    uuid = normalize_uuid(root.findtext("uuid", ""))
    if root.tag != "domain" or uuid is None:
        raise HostError("The XML does not describe a domain with a UUID.")
    return Domain(
        uuid=uuid,
        name=root.findtext("name", ""),
        state=state,
        vcpus=_parse_number(root.findtext("vcpu")),
        memory_mb=_parse_number(root.findtext("memory")) // 1024,
        persistent=persistent,
        managed_save=managed_save,
        snapshots=snapshots,
        nvram=_parse_nvram_path(root),
        firmware=_has_firmware(root),
        tpm=_has_emulated_tpm(root),
        nova=_parse_nova_metadata(root),
        disks=_parse_disk_paths(root),
        devices=read_host_devices(root),
    )


def _parse_xml(xml: bytes) -> ET.Element:
    # libvirt writes no document type, with which a few lines could grow to gigabytes.
    if len(xml) > MAX_XML_BYTES or b"<!DOCTYPE" in xml:
        raise HostError(
            f"The XML of a domain has {len(xml)} bytes or a document type: "
            "libvirt does not write such XML."
        )
    try:
        return ET.fromstring(xml)
    except ET.ParseError as error:
        raise HostError(f"The XML of a domain cannot be read: {error}.") from error


def _parse_nvram_path(root: ET.Element) -> str | None:
    # The path is either the text of the element, or an attribute of the source in it.
    source = root.find("os/nvram/source")
    if source is not None:
        return source.get("file") or None
    return root.findtext("os/nvram", "").strip() or None


def _has_firmware(root: ET.Element) -> bool:
    """Return whether the domain has firmware with variables, for which libvirt needs a flag."""
    return root.find("os/nvram") is not None or root.find("os[@firmware]") is not None


def _has_emulated_tpm(root: ET.Element) -> bool:
    return root.find("devices/tpm/backend[@type='emulator']") is not None


def _parse_disk_paths(root: ET.Element) -> tuple[str, ...]:
    """Return the files and devices of the disks of a domain, and of what they are layers of."""
    sources = root.findall("devices/disk//source")
    # The disk of a network, for example, has neither.
    return tuple(filter(None, (source.get("file") or source.get("dev") for source in sources)))


def _parse_number(text: str | None) -> int:
    return int(text) if text and text.strip().isdigit() else 0


def _parse_nova_metadata(root: ET.Element) -> dict[str, str | None] | None:
    """Return what Nova wrote into the metadata of a domain; None when it wrote nothing."""
    for element in root.findall("metadata/*"):
        match = _NOVA_METADATA_TAG.fullmatch(element.tag)
        if match is None:
            continue
        space = f"{{{match.group(1)}}}"
        created = element.findtext(f"{space}creationTime")
        return {
            "name": element.findtext(f"{space}name"),
            "flavor": _get_attribute(element.find(f"{space}flavor"), "name"),
            "project": _get_attribute(element.find(f"{space}owner/{space}project"), "uuid"),
            "user": _get_attribute(element.find(f"{space}owner/{space}user"), "uuid"),
            "created_at": f"{created.replace(' ', 'T')}Z" if created else None,
        }
    return None


def _get_attribute(element: ET.Element | None, name: str) -> str | None:
    return None if element is None else element.get(name)


def read_host_devices(domain: ET.Element, sysfs: str = SYSFS) -> dict[str, list[t.Any]]:
    """Return the devices that the XML of a domain names, and what the host shows of them.

    What is not certain to be no device of the host counts as one.
    """
    devices: dict[str, list[t.Any]] = {"hostdevs": [], "mdevs": [], "other_devices": []}
    for element in _list_device_elements(domain):
        field = "mdevs" if element.get("type") == "mdev" else "hostdevs"
        device = _identify(element, sysfs)
        if device is None:
            unknown = f"{element.tag} {element.get('type') or 'without a type'}"
            devices["other_devices"].append(unknown)
        else:
            devices[field].append(device)
    if domain.find(_QEMU_COMMAND_LINE) is not None:
        devices["other_devices"].append("arguments for QEMU")
    return devices


def _list_device_elements(domain: ET.Element) -> t.Iterator[ET.Element]:
    """Yield the elements that are or may be devices of the host."""
    yield from domain.findall("devices/hostdev")
    for tag, virtual in _VIRTUAL.items():
        for element in domain.findall(f"devices/{tag}"):
            if element.get("type") not in virtual:
                yield element


def _identify(element: ET.Element, sysfs: str) -> dict[str, t.Any] | None:
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


def _read_pci_device(element: ET.Element, sysfs: str) -> dict[str, t.Any] | None:
    try:
        numbers = [int(element.get(name, ""), 0) for name in _ADDRESS_PARTS]
    except ValueError:
        return None
    address = "{:04x}:{:02x}:{:02x}.{:x}".format(*numbers)
    if not _PCI_ADDRESS.fullmatch(address):
        return None
    return {
        "address": address,
        "present": os.path.isdir(_get_pci_folder(address, sysfs)),
        "physical_function": _read_physical_function(address, sysfs),
    }


def _read_mediated_device(element: ET.Element, sysfs: str) -> dict[str, t.Any] | None:
    uuid = normalize_uuid(element.get("uuid", ""))
    if uuid is None:
        return None
    folder = os.path.join(sysfs, "bus", "mdev", "devices", uuid)
    # The folder is a link into that of the device which it is a part of.
    parent = os.path.basename(os.path.dirname(os.path.realpath(folder)))
    if not os.path.isdir(folder) or not _PCI_ADDRESS.fullmatch(parent):
        return {"uuid": uuid, "parent": None, "physical_function": None}
    function = _read_physical_function(parent, sysfs)
    return {"uuid": uuid, "parent": parent, "physical_function": function}


def _read_physical_function(address: str, sysfs: str) -> str | None:
    link = os.path.join(_get_pci_folder(address, sysfs), "physfn")
    if not os.path.islink(link):
        return None
    return os.path.basename(os.path.realpath(link))


def _get_pci_folder(address: str, sysfs: str) -> str:
    return os.path.join(sysfs, "bus", "pci", "devices", address)
