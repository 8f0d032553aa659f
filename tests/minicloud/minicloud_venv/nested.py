"""A driver whose host has devices, and therefore a tree of providers in Placement.

The providers have the names and inventories that libvirt gives them (nova/virt/libvirt/driver.py,
``update_provider_tree``). Nova itself makes those of PCI devices, from what the driver lists
(nova/compute/pci_placement_translator.py), and adds what ``provider.yaml`` says.
"""

from __future__ import annotations

import json
from typing import Any

from nova import objects
from nova.virt import fake

# Nova looks for drivers below nova.virt only.
NAME = "minicloud_nested"

SHARED_CPUS = range(64)
DEDICATED_CPUS = range(64, 128)
MEMORY_MB = 262144
LOCAL_GB = 4000

# What is below the root: the end of the provider's name, its resources and its traits.
CHILDREN = (
    ("pci_0000_84_00_0", {"VGPU": 32}, ()),
    ("pci_0000_85_00_0", {"VGPU": 32}, ()),
    ("amd_sev", {"MEM_ENCRYPTION_CONTEXT": 32}, ("HW_CPU_X86_AMD_SEV",)),
)
PERSISTENT_MEMORY = {"CUSTOM_PMEM_NAMESPACE_4GB": 16, "CUSTOM_PMEM_NAMESPACE_16GB": 8}
TRAITS = (
    "HW_CPU_HYPERTHREADING",
    "HW_CPU_X86_AVX2",
    "COMPUTE_SECURITY_TPM_2_0",
    "COMPUTE_SECURITY_TPM_CRB",
    "COMPUTE_SECURITY_TPM_TIS",
    "COMPUTE_SECURITY_TPM_SECRET_SECURITY_USER",
    "COMPUTE_SECURITY_UEFI_SECURE_BOOT",
)

# Accelerators are whole devices, network cards are split into virtual functions.
ACCELERATORS = (*(f"0000:81:0{number}.0" for number in range(6)), "0000:82:00.0", "0000:83:00.0")
NETWORK_CARDS = ("0000:88:00", "0000:89:00")
VIRTUAL_FUNCTIONS = range(1, 8)


class NestedTree(getattr(fake, "FakeDriverWithoutFakeNodes", fake.FakeDriver)):
    """A host with two GPUs, PCI devices, dedicated CPUs, persistent memory and AMD SEV."""

    vcpus = len(SHARED_CPUS)
    memory_mb = MEMORY_MB
    local_gb = LOCAL_GB
    has_disk = True
    capabilities = {**fake.FakeDriver.capabilities, "supports_pcpus": True, "supports_vtpm": True}

    def get_available_resource(self, nodename: str) -> dict[str, Any]:
        return {
            **super().get_available_resource(nodename),
            "numa_topology": _numa_topology()._to_json(),
            "pci_passthrough_devices": json.dumps(list_devices()),
        }

    def update_provider_tree(
        self, provider_tree: Any, nodename: str, allocations: Any = None
    ) -> None:
        super().update_provider_tree(provider_tree, nodename, allocations)
        inventory = dict(provider_tree.data(nodename).inventory)
        inventory["PCPU"] = whole(len(DEDICATED_CPUS))
        for name, total in PERSISTENT_MEMORY.items():
            inventory[name] = whole(total)
        if not self.has_disk:
            del inventory["DISK_GB"]
        provider_tree.update_inventory(nodename, inventory)
        provider_tree.add_traits(nodename, *TRAITS)
        for end, resources, traits in CHILDREN:
            child = f"{nodename}_{end}"
            if not provider_tree.exists(child):
                provider_tree.new_child(child, nodename)
            amounts = {name: whole(total) for name, total in resources.items()}
            provider_tree.update_inventory(child, amounts)
            provider_tree.add_traits(child, "OWNER_NOVA", *traits)


class PooledDisk(NestedTree):
    """The same without a disk of its own: another provider shares one with it.

    libvirt reports the disk twice then (LP 1784020); other drivers do not.
    """

    has_disk = False


def whole(total: int) -> dict[str, Any]:
    """Return the inventory of something that cannot be over-committed."""
    units = {"min_unit": 1, "max_unit": total, "step_size": 1}
    return {"total": total, "reserved": 0, "allocation_ratio": 1.0, **units}


def list_devices() -> list[dict[str, Any]]:
    """Return the PCI devices as a driver lists them for Nova."""
    devices = [_device(address, "type-PCI", "1b36", None) for address in ACCELERATORS]
    for card in NETWORK_CARDS:
        for function in VIRTUAL_FUNCTIONS:
            devices.append(_device(f"{card}.{function}", "type-VF", "1520", f"{card}.0"))
    return devices


def _device(address: str, kind: str, product: str, parent: str | None) -> dict[str, Any]:
    device = {
        "dev_id": f"pci_{address.replace(':', '_').replace('.', '_')}",
        "address": address,
        "product_id": product,
        "vendor_id": "8086",
        "status": "available",
        "dev_type": kind,
        "numa_node": 0,
        "label": f"label_8086_{product}",
    }
    return {**device, "parent_addr": parent} if parent else device


def _numa_topology() -> Any:
    """Return one cell with all CPUs, without which Nova pins none."""
    cell = objects.NUMACell(
        id=0,
        socket=0,
        cpuset=set(SHARED_CPUS),
        pcpuset=set(DEDICATED_CPUS),
        memory=MEMORY_MB,
        cpu_usage=0,
        memory_usage=0,
        pinned_cpus=set(),
        siblings=_hyperthreads(),
        mempages=[objects.NUMAPagesTopology(size_kb=4, total=MEMORY_MB * 256, used=0, reserved=0)],
        network_metadata=objects.NetworkMetadata(physnets=set(), tunneled=False),
    )
    return objects.NUMATopology(cells=[cell])


def _hyperthreads() -> list[set[int]]:
    """Return the CPUs of each core."""
    first_threads = [*SHARED_CPUS, *DEDICATED_CPUS][::2]
    return [{thread, thread + 1} for thread in first_threads]
