"""Which devices of the host a domain uses: anything that could be one must be seen.

And which files it uses: a directory with one of them stays.
"""

from __future__ import annotations

import typing as t
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from .......plugins.module_utils._hypervisors.on_host.domain_xml import (
    parse_domain,
    read_host_devices,
)

PHYSICAL, VIRTUAL, GPU = "0000:84:00.0", "0000:84:10.1", "0000:3b:00.0"
MDEV = "1c1cbd32-1b8a-4a0e-8e5a-0d3c8a1f7e55"
ADDRESS = "domain='0x0000' bus='0x84' slot='0x10' function='0x1'"


@pytest.fixture(name="sysfs")
def _sysfs(tmp_path: Path) -> str:
    """A host with a physical and a virtual function, and a GPU with a mediated device."""
    devices = tmp_path / "devices" / "pci0000:3a"
    listed = tmp_path / "bus" / "pci" / "devices"
    mediated = tmp_path / "bus" / "mdev" / "devices"
    for folder in (listed, mediated):
        folder.mkdir(parents=True)
    for address in (PHYSICAL, VIRTUAL, GPU):
        (devices / address).mkdir(parents=True)
        (listed / address).symlink_to(devices / address)
    (devices / VIRTUAL / "physfn").symlink_to(devices / PHYSICAL)
    (devices / GPU / MDEV).mkdir()
    (mediated / MDEV).symlink_to(devices / GPU / MDEV)
    return str(tmp_path)


def read(inside: str, sysfs: str, after: str = "") -> dict[str, list[t.Any]]:
    """Return the fields that are not empty."""
    devices = read_host_devices(
        ET.fromstring(f"<domain><devices>{inside}</devices>{after}</domain>"), sysfs
    )
    assert list(devices) == ["hostdevs", "mdevs", "other_devices"]
    return {name: found for name, found in devices.items() if found}


def pci(address: str, present: bool, function: str | None) -> dict[str, t.Any]:
    device = {"address": address, "present": present, "physical_function": function}
    return {"hostdevs": [device]}


def mediated(uuid: str, parent: str | None, function: str | None) -> dict[str, t.Any]:
    return {"mdevs": [{"uuid": uuid, "parent": parent, "physical_function": function}]}


OF_PCI = {
    "a device": f"<hostdev mode='subsystem' type='pci'><source><address {ADDRESS}/></source>"
    "</hostdev>",
    "an interface": "<interface type='hostdev'><mac address='fa:16:3e:00:00:01'/><source>"
    f"<address type='pci' {ADDRESS}/></source></interface>",
    "a disk": f"<disk type='nvme'><source type='pci' namespace='1'><address {ADDRESS}/></source>"
    "</disk>",
    "in decimal": "<hostdev mode='subsystem' type='pci'><source>"
    "<address domain='0' bus='132' slot='16' function='1'/></source></hostdev>",
}


@pytest.mark.parametrize("xml", OF_PCI.values(), ids=OF_PCI)
def test_pci_device_is_named_with_its_physical_function(xml: str, sysfs: str) -> None:
    assert read(xml, sysfs) == pci(VIRTUAL, True, PHYSICAL)


def test_physical_device_has_no_physical_function(sysfs: str) -> None:
    xml = OF_PCI["a device"].replace("slot='0x10' function='0x1'", "slot='0x00' function='0x0'")
    assert read(xml, sysfs) == pci(PHYSICAL, True, None)


def test_device_that_the_host_does_not_have_is_not_present(sysfs: str) -> None:
    xml = OF_PCI["a device"].replace("bus='0x84'", "bus='0x85'")
    assert read(xml, sysfs) == pci("0000:85:10.1", False, None)


def mdev(uuid: str) -> str:
    return (
        "<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source>"
        f"<address uuid='{uuid}'/></source></hostdev>"
    )


def test_mediated_device_is_named_with_its_parent(sysfs: str) -> None:
    assert read(mdev(MDEV), sysfs) == mediated(MDEV, GPU, None)


def test_parent_of_a_mediated_device_may_be_a_virtual_function(sysfs: str, tmp_path: Path) -> None:
    other = MDEV.replace("1c1c", "2d2d")
    folder = tmp_path / "devices" / "pci0000:3a" / VIRTUAL / other
    folder.mkdir()
    (tmp_path / "bus" / "mdev" / "devices" / other).symlink_to(folder)
    assert read(mdev(other), sysfs) == mediated(other, VIRTUAL, PHYSICAL)


def test_mediated_device_that_does_not_exist_yet_has_no_parent(sysfs: str) -> None:
    gone = MDEV.replace("1c1c", "2d2d")
    assert read(mdev(gone), sysfs) == mediated(gone, None, None)


NO_DEVICES = {
    "nothing": "",
    "the disks and interfaces of Nova": (
        "<disk type='file'><source file='/disk'/></disk>"
        "<disk type='network'><source protocol='rbd' name='a/b'/></disk>"
        "<interface type='bridge'><source bridge='br-int'/></interface>"
        "<interface type='ethernet'><target dev='tap1'/></interface>"
        "<interface type='vhostuser'><source type='unix' path='/run/a'/></interface>"
        # The address of what the guest sees.
        f"<controller type='pci'><address type='pci' {ADDRESS}/></controller>"
    ),
}


@pytest.mark.parametrize("xml", NO_DEVICES.values(), ids=NO_DEVICES)
def test_what_is_virtual_is_no_device_of_the_host(xml: str, sysfs: str) -> None:
    assert read(xml, sysfs) == {}


OTHERS = {
    "macvtap": (
        "<interface type='direct'><source dev='enp4s0v1' mode='passthrough'/></interface>",
        "interface direct",
    ),
    "a network that may be a pool of devices": (
        "<interface type='network'><source network='vfs'/></interface>",
        "interface network",
    ),
    "vDPA": (
        "<interface type='vdpa'><source dev='/dev/vhost-vdpa-0'/></interface>",
        "interface vdpa",
    ),
    "USB": (
        "<hostdev mode='subsystem' type='usb'><source><address bus='1' device='2'/></source>"
        "</hostdev>",
        "hostdev usb",
    ),
    "an interface of a USB device": (
        "<interface type='hostdev'><source><address type='usb' bus='1' device='2'/></source>"
        "</interface>",
        "interface hostdev",
    ),
    "a device without an address": ("<hostdev type='pci'><source/></hostdev>", "hostdev pci"),
    "an address that is not one": (
        "<hostdev type='pci'><source><address domain='0' bus='-1' slot='x' function='1'/></source>"
        "</hostdev>",
        "hostdev pci",
    ),
    "an address that no device has": (
        "<hostdev type='pci'><source><address domain='0' bus='-1' slot='1' function='9'/></source>"
        "</hostdev>",
        "hostdev pci",
    ),
    "a mediated device without a uuid": (mdev("none"), "hostdev mdev"),
    "an interface without a type": ("<interface/>", "interface without a type"),
    "a disk of a device": (
        "<disk type='vhostvdpa'><source dev='/dev/v'/></disk>",
        "disk vhostvdpa",
    ),
}


@pytest.mark.parametrize(("xml", "other"), OTHERS.values(), ids=OTHERS)
def test_what_cannot_be_identified_is_not_forgotten(xml: str, other: str, sysfs: str) -> None:
    assert read(xml, sysfs) == {"other_devices": [other]}


def test_arguments_for_qemu_may_be_devices(sysfs: str) -> None:
    arguments = (
        "<q:commandline xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'>"
        "<q:arg value='-device'/></q:commandline>"
    )
    assert read("", sysfs, arguments) == {"other_devices": ["arguments for QEMU"]}


def test_devices_of_each_kind_are_together(sysfs: str) -> None:
    devices = read(OF_PCI["a device"] + mdev(MDEV) + "<interface type='vdpa'/>", sysfs)
    others = {"other_devices": ["interface vdpa"]}
    assert devices == pci(VIRTUAL, True, PHYSICAL) | mediated(MDEV, GPU, None) | others


DISK = "/var/lib/nova/instances/6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c12/disk"


@pytest.mark.parametrize(
    ("xml", "disks"),
    [
        (f"<disk type='file'><source file='{DISK}'/></disk>", (DISK,)),
        ("<disk type='block'><source dev='/dev/sdb'/></disk>", ("/dev/sdb",)),
        ("<disk type='network'><source protocol='rbd' name='vms/x'/></disk>", ()),
        (
            "<disk type='file'><source file='/srv/copy.qcow2'/>"
            f"<backingStore type='file'><source file='{DISK}'/>"
            "<backingStore type='file'><source file='/srv/base'/></backingStore>"
            "</backingStore></disk>",
            ("/srv/copy.qcow2", DISK, "/srv/base"),
        ),
    ],
    ids=["a file", "a device", "of a network", "layers"],
)
def test_disks_and_what_they_are_layers_of(xml: str, disks: tuple[str, ...]) -> None:
    domain = (
        "<domain type='kvm'><name>instance-00000001</name>"
        "<uuid>6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c12</uuid>"
        f"<devices>{xml}</devices></domain>"
    )

    assert parse_domain(domain.encode(), state="shut off", persistent=True).disks == disks
