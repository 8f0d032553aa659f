"""Servers of every shape: what a flavor, an image, a volume and ports can ask Placement for."""

import dataclasses as d
from collections.abc import Mapping

# The host with devices, and the one whose disk is a pool that it shares with others.
NESTED, POOLED = "nested-1", "pooled-1"

# The names of damages (`damages.py`) after which a server has lost what it had of a child provider.
LOST = ("child lost", "all lost", "moved")

UEFI = {"hw_firmware_type": "uefi", "hw_machine_type": "q35"}


@d.dataclass(frozen=True)
class Shape:
    """A flavor, and what else decides on the allocations of its servers.

    disk, ephemeral: in GB. swap: in MB. volume: the image properties of the volume that the server
    boots from; None for a server that boots from an image. bandwidth: in kbit/s, of each port.
    packets: in thousands a second, of each port as well.

    profile: the request groups of its Cyborg device profile.
    uncertain: the damages after which several allocations would be as right, so that nothing but
    Placement knew which it was.
    """

    name: str
    vcpus: int = 2
    ram: int = 256
    disk: int = 1
    ephemeral: int = 0
    swap: int = 0
    extra_specs: Mapping[str, str] = d.field(default_factory=dict)
    image: Mapping[str, str] = d.field(default_factory=dict)
    volume: Mapping[str, str] | None = None
    host: str = NESTED
    bandwidth: tuple[int, ...] = ()
    packets: int = 0
    profile: tuple[Mapping[str, str], ...] = ()
    uncertain: tuple[str, ...] = ()


def ask(**extra_specs: str) -> dict[str, str]:
    """Return extra specs whose names have `__` for a colon."""
    return {name.replace("__", ":"): value for name, value in extra_specs.items()}


TWO_GPUS = ask(resources1__VGPU="1", resources2__VGPU="2")

# Flavors and images alone.
PLAIN = (
    Shape("plain"),
    Shape("swap", swap=512),
    Shape("ephemeral", ephemeral=3),
    Shape("swap and ephemeral", swap=1500, ephemeral=2),
    Shape("no disk", disk=0),
    Shape("less VCPU", extra_specs=ask(resources__VCPU="1")),
    Shape("more memory", extra_specs=ask(resources__MEMORY_MB="300")),
    Shape(
        "only a custom class",
        extra_specs=ask(
            resources__VCPU="0",
            resources__MEMORY_MB="0",
            resources__DISK_GB="0",
            resources__CUSTOM_LICENSE="1",
        ),
    ),
    Shape("custom class", extra_specs=ask(resources__CUSTOM_LICENSE="2")),
    Shape(
        "two groups on one provider",
        extra_specs={
            **ask(resources1__CUSTOM_LICENSE="1", resources2__CUSTOM_LICENSE="2"),
            "group_policy": "none",
        },
    ),
    Shape("trait of the host", extra_specs=ask(trait__HW_CPU_X86_AVX2="required")),
    Shape("trait of the image", image={"trait:HW_CPU_X86_AVX2": "required"}),
    Shape("secure boot", image={**UEFI, "os_secure_boot": "required"}),
    Shape("vTPM", extra_specs=ask(hw__tpm_version="2.0", hw__tpm_model="tpm-crb")),
    Shape("vTPM of the image", image={"hw_tpm_version": "2.0"}),
)

PROCESSORS = (
    Shape("dedicated", extra_specs=ask(hw__cpu_policy="dedicated")),
    Shape(
        "dedicated with threads",
        extra_specs=ask(hw__cpu_policy="dedicated", hw__emulator_threads_policy="isolate"),
    ),
    Shape("mixed", vcpus=4, extra_specs=ask(hw__cpu_policy="mixed", hw__cpu_dedicated_mask="0-1")),
    Shape("dedicated by the image", image={"hw_cpu_policy": "dedicated"}),
    Shape(
        "hyperthreads",
        extra_specs=ask(resources__PCPU="2", trait__HW_CPU_HYPERTHREADING="required"),
    ),
)

DEVICES = (
    Shape("memory encryption", extra_specs=ask(hw__mem_encryption="true"), image=UEFI),
    Shape("memory encryption of the image", image={**UEFI, "hw_mem_encryption": "true"}),
    Shape("persistent memory", extra_specs=ask(hw__pmem="4GB,4GB")),
    Shape("two persistent memories", extra_specs=ask(hw__pmem="4GB,16GB")),
    Shape("vGPU", extra_specs=ask(resources__VGPU="1"), uncertain=LOST),
    Shape(
        "vGPU with a trait",
        extra_specs=ask(resources1__VGPU="1", trait1__CUSTOM_GPU_FAST="required"),
    ),
    Shape(
        "vGPU without a trait",
        extra_specs=ask(resources1__VGPU="1", trait1__CUSTOM_GPU_FAST="forbidden"),
    ),
    Shape(
        "two vGPUs apart",
        extra_specs={**ask(resources1__VGPU="1", resources2__VGPU="1"), "group_policy": "isolate"},
    ),
    Shape(
        "unequal vGPUs apart",
        extra_specs={**TWO_GPUS, "group_policy": "isolate"},
        uncertain=("all lost", "moved"),
    ),
    Shape("two vGPUs anywhere", extra_specs={**TWO_GPUS, "group_policy": "none"}, uncertain=LOST),
    Shape("the only PCI device", extra_specs=ask(pci_passthrough__alias="key-store:1")),
    Shape("PCI device", extra_specs=ask(pci_passthrough__alias="accelerator:1"), uncertain=LOST),
    Shape(
        "two PCI devices", extra_specs=ask(pci_passthrough__alias="accelerator:2"), uncertain=LOST
    ),
    Shape("virtual function", extra_specs=ask(pci_passthrough__alias="function:1"), uncertain=LOST),
    Shape(
        "virtual function and device",
        extra_specs=ask(pci_passthrough__alias="function:1,accelerator:1"),
        uncertain=LOST,
    ),
)

POOL = (
    Shape("pool", host=POOLED, disk=5),
    Shape("pool with swap and ephemeral", host=POOLED, disk=5, swap=100, ephemeral=2),
    Shape("pool without disk", host=POOLED, disk=0),
    Shape(
        "pool and vGPU",
        host=POOLED,
        extra_specs=ask(resources1__VGPU="1", trait1__CUSTOM_GPU_FAST="required"),
    ),
)

# The host has dedicated CPUs and memory encryption, for which the properties of a volume may have
# asked when its server was created: only what the server still has tells.
OF_VOLUME = ("all lost", "moved")

VOLUMES = (
    Shape("volume", volume={}, uncertain=OF_VOLUME),
    Shape("volume with swap", volume={}, swap=512, ephemeral=1, uncertain=OF_VOLUME),
    # How many of its CPUs are dedicated may also come from properties that the volume had then.
    Shape(
        "volume with dedicated",
        volume={"hw_cpu_policy": "dedicated"},
        uncertain=(*OF_VOLUME, "less", "more"),
    ),
    Shape(
        "volume with memory encryption",
        volume={**UEFI, "hw_mem_encryption": "true"},
        uncertain=LOST,
    ),
    Shape("volume on the pool", volume={}, host=POOLED, uncertain=OF_VOLUME),
)

PORTS = (
    Shape("bandwidth", bandwidth=(1000,)),
    Shape("two ports with bandwidth", bandwidth=(1000, 2000)),
    Shape("bandwidth and packets", bandwidth=(1000,), packets=5),
    Shape(
        "bandwidth and vGPU",
        bandwidth=(1000,),
        extra_specs=ask(resources1__VGPU="1", trait1__CUSTOM_GPU_FAST="required"),
    ),
)

FPGA = {"resources:FPGA": "1", "trait:CUSTOM_FAKE_DEVICE": "required"}
PROFILES = (Shape("accelerator", profile=(FPGA,)), Shape("two accelerators", profile=(FPGA, FPGA)))

SHAPES = (*PLAIN, *PROCESSORS, *DEVICES, *POOL, *VOLUMES, *PORTS, *PROFILES)
