"""Random servers, each as Nova sees it and as we read it.

Most are such as Nova accepts. Some have values that it refuses or ignores, and of some a part
cannot be read.
"""

import dataclasses as d
import random
import typing as t
from collections.abc import Iterator, Sequence

from ...plugins.module_utils._core.models.other_services import (
    AcceleratorRequest,
    PciAlias,
    PortGroup,
    ServerInputs,
    ServerPort,
)

_NETWORK = "00000000-0000-4000-8000-000000000001"

_CLASSES = (
    "VCPU",
    "PCPU",
    "MEMORY_MB",
    "DISK_GB",
    "VGPU",
    "CUSTOM_GOLD",
    "CUSTOM_BAREMETAL",
    "MEM_ENCRYPTION_CONTEXT",
    "CUSTOM_PMEM_NAMESPACE_SMALL",
    "PCI_DEVICE",
    "NEW_CLASS",
)
_AMOUNTS = ("0", "0", "1", "1", "1", "2", "4", "8", "64", " 3 ", "+2", "-1", "many", "")
_SUFFIXES = ("", "", "", "1", "2", "_GPU", "-x", "01", "no such", "a" * 65)
_TRAITS = ("HW_CPU_X86_AVX2", "CUSTOM_FAST", "COMPUTE_NODE")
_HYPERTHREADING = "trait:HW_CPU_HYPERTHREADING"

# Values of extra specs; those of the image have the same names with an underscore. Nova refuses
# the strange ones, or ignores them.
_POLICIES: dict[str, Sequence[str]] = {
    "hw:mem_encryption": ("true", "True", "1", "false"),
    "hw:mem_encryption_model": ("amd-sev", "amd-sev-es", "amd-sev-snp", "intel-tdx"),
    "hw:tpm_version": ("1.2", "2.0", "2.0"),
    "hw:tpm_model": ("tpm-tis", "tpm-tis", "tpm-crb"),
    "hw:maxphysaddr_mode": ("passthrough", "emulate"),
    "hw:pci_numa_affinity_policy": ("required", "legacy", "preferred", "socket"),
    "os:secure_boot": ("required", "disabled", "optional"),
}
_CPU_POLICIES: dict[str, Sequence[str]] = {
    "hw:cpu_policy": ("dedicated", "shared", "mixed"),
    "hw:cpu_thread_policy": ("prefer", "isolate", "require"),
    "hw:cpu_realtime_mask": ("0", "^0", "^0-1", "1-2", "0-1,^1", "1 - 2"),
}
_FLAVOR_CPU_POLICIES: dict[str, Sequence[str]] = {
    "hw:cpu_dedicated_mask": ("0", "^0", "0-1", "1-2,^2", "0 - 1", ",,1"),
    "hw:cpu_realtime": ("yes", "true", "no"),
    "hw:emulator_threads_policy": ("share", "isolate"),
}
_STRANGE = ("", "none", "DEDICATED", "maybe", "x", "^x", "2-1", "9-12", "tpm-crb", " true ")
_FLAVOR_POLICIES: dict[str, Sequence[str]] = {
    "hw:pmem": ("small", "small,small", "6GB, small", "a--b,A.B", " ,", "größe"),
    "group_policy": ("none", "isolate", "isolate", "ISOLATE"),
    "hw_rng:allowed": ("true",),
    "resources": ("1",),
    "resources:": ("1",),
    "quota:vif_inbound_average": ("10",),
}
_IMAGE_PROPERTIES: dict[str, Sequence[str]] = {
    "hw_firmware_type": ("uefi", "uefi", "bios"),
    "hw_firmware_stateless": ("true", "false"),
    "hw_machine_type": ("q35", "pc-q35-2.11", "pc"),
    "hw_video_model": ("none", "virtio"),
    "hw_disk_bus": ("virtio",),
    "os_distro": ("debian",),
    "trait:CUSTOM_IMAGE": ("required", "forbidden"),
}
# Extra specs of CPUs that go together.
_CPU_SHAPES: Sequence[dict[str, str]] = (
    {"hw:cpu_policy": "shared"},
    {"hw:cpu_policy": "dedicated"},
    {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "isolate"},
    {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"},
    {"hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "isolate"},
    {"hw:cpu_policy": "dedicated", "hw:cpu_realtime": "yes", "hw:cpu_realtime_mask": "^0"},
    {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "^0"},
    {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0", "hw:cpu_thread_policy": "prefer"},
    {"hw:cpu_policy": "mixed", "hw:cpu_realtime": "1", "hw:cpu_realtime_mask": "1"},
    {
        "hw:cpu_policy": "mixed",
        "hw:cpu_dedicated_mask": "0",
        "hw:emulator_threads_policy": "isolate",
    },
)
_HIDDEN = ("image_properties", "ports", "volume_backed", "extra_specs")


@d.dataclass(frozen=True)
class RequestWorld:
    """One server.

    nova: what Nova knows, as tests/minicloud/minicloud_venv/resource_requests.py takes it. inputs:
        what we read. hidden: the name of the part that cannot be read, if any.
    """

    nova: dict[str, t.Any]
    inputs: ServerInputs
    hidden: str


def list_request_worlds(count: int, seed: int) -> Iterator[RequestWorld]:
    """Yield `count` random servers, always the same for a seed."""
    for number in range(count):
        yield _Dice(f"{seed}/{number}").roll_world()


class _Dice:
    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        # Most worlds have few specialties, so that most of them are valid.
        self.rate = self.random.choice((0.03, 0.1, 0.25))

    def happens(self, probability: float) -> bool:
        return self.random.random() < probability

    def make_uuid(self) -> str:
        return f"00000000-0000-4000-8000-{self.random.randrange(16**12):012x}"

    def roll_world(self) -> RequestWorld:
        vcpus = self.random.choice((1, 2, 3, 4, 8))
        profiles = {name: self.roll_profile() for name in ("fpga", "gpu") if self.happens(0.5)}
        aliases = self.roll_aliases()
        specs = self.roll_specs(vcpus, list(profiles), [alias["name"] for alias in aliases])
        image = self.roll_image(specs)
        extended = self.happens(0.7)
        ports = [self.roll_port(extended, list(profiles)) for _number in range(self.roll_few(3))]
        flavor = {
            "vcpus": vcpus,
            "memory_mb": self.random.choice((64, 512, 4096)),
            "root_gb": self.random.choice((0, 1, 20)),
            "ephemeral_gb": self.random.choice((0, 0, 0, 5)),
            "swap": self.random.choice((0, 0, 0, 1, 1024, 1025)),
            "extra_specs": specs,
        }
        nova = {
            "flavor": flavor,
            "image_properties": image,
            "ports": ports,
            "extended": extended,
            "device_profiles": profiles,
            "aliases": aliases,
            "volume_backed": self.happens(0.3),
        }
        inputs = _build_inputs(nova)
        hidden = self.random.choice(_HIDDEN) if self.happens(0.1) else ""
        if hidden:
            inputs = d.replace(inputs, **{hidden: None, "unread": {hidden: "it is hidden"}})
        return RequestWorld(nova, inputs, hidden)

    def roll_few(self, most: int) -> int:
        number = 0
        while number < most and self.happens(self.rate * 2):
            number += 1
        return number

    def roll_specs(self, vcpus: int, profiles: list[str], aliases: list[str]) -> dict[str, str]:
        specs: dict[str, str] = {}
        for name, values in {**_POLICIES, **_FLAVOR_POLICIES}.items():
            if self.happens(self.rate / 2):
                specs[name] = self.roll_value(values)
        specs |= self.roll_cpu_specs()
        # Cells request nothing of Placement, so we do not check what Nova refuses of them.
        if self.happens(self.rate / 2):
            specs["hw:numa_nodes"] = "1"
        for _number in range(self.roll_few(4)):
            suffix = self.random.choice(_SUFFIXES)
            name = f"resources{suffix}:{self.random.choice(_CLASSES)}"
            specs[name] = self.random.choice(_AMOUNTS)
        for _number in range(self.roll_few(2)):
            suffix = self.random.choice(_SUFFIXES)
            value = self.random.choice(("required", "required", "forbidden", "preferred"))
            specs[f"trait{suffix}:{self.random.choice(_TRAITS)}"] = value
        if self.happens(self.rate / 2):
            specs |= {
                "resources:CUSTOM_BAREMETAL": "1",
                "resources:VCPU": "0",
                "resources:MEMORY_MB": "0",
                "resources:DISK_GB": "0",
            }
        if self.happens(self.rate / 2) and "hw:cpu_policy" not in specs:
            specs["resources:PCPU"] = str(vcpus)
        if profiles and self.happens(self.rate * 2):
            specs["accel:device_profile"] = self.random.choice(profiles)
            if self.happens(0.03):
                specs["accel:device_profile"] = "absent"
        if aliases and self.happens(0.5):
            specs["pci_passthrough:alias"] = self.roll_alias_request(aliases)
        items = list(specs.items())
        self.random.shuffle(items)
        return dict(items)

    def roll_value(self, values: Sequence[str]) -> str:
        return self.random.choice(_STRANGE if self.happens(0.05) else values)

    def roll_cpu_specs(self) -> dict[str, str]:
        specs: dict[str, str] = {}
        if self.happens(0.05):
            for name, values in {**_CPU_POLICIES, **_FLAVOR_CPU_POLICIES}.items():
                if self.happens(0.4):
                    specs[name] = self.roll_value(values)
        elif self.happens(0.4):
            specs |= self.random.choice(_CPU_SHAPES)
        if self.happens(0.15 if specs.get("hw:cpu_policy") == "dedicated" else 0.01):
            specs[_HYPERTHREADING] = self.random.choice(("required", "forbidden", "x"))
            if self.happens(0.8):
                specs.pop("hw:cpu_thread_policy", None)
        return specs

    def roll_alias_request(self, aliases: list[str]) -> str:
        if self.happens(0.05):
            return self.random.choice(("", "a", "a:b", "a:1:2", "absent:1", "a:1,"))
        parts = []
        for _number in range(self.random.choice((1, 1, 2))):
            count = self.random.choice((1, 1, 1, 2, 3, 0))
            parts.append(f"{self.random.choice(aliases)}:{count}")
        return self.random.choice((",", ", ")).join(parts)

    def roll_image(self, specs: dict[str, str]) -> dict[str, str]:
        image: dict[str, str] = {}
        for name, values in _POLICIES.items():
            if name in specs:
                if self.happens(0.2):
                    image[name.replace(":", "_")] = specs[name]
            elif self.happens(self.rate / 3):
                image[name.replace(":", "_")] = self.roll_value(values)
        # CPU policies of an image are seldom accepted unless there are dedicated CPUs.
        rate = 0.2 if specs.get("hw:cpu_policy") in ("dedicated", "mixed") else self.rate / 10
        for name, values in _CPU_POLICIES.items():
            if self.happens(rate):
                image[name.replace(":", "_")] = specs.get(name) or self.roll_value(values)
        if self.happens(self.rate / 2) and "hw:cpu_policy" not in specs:
            image["hw_cpu_policy"] = "dedicated"
        if self.happens(0.1 if specs.get("hw:cpu_policy") == "dedicated" else 0.01):
            image[_HYPERTHREADING] = "required"
        for name, values in _IMAGE_PROPERTIES.items():
            if self.happens(self.rate):
                image[name] = self.random.choice(values)
        encrypted = "hw:mem_encryption" in specs or "hw_mem_encryption" in image
        if encrypted and self.happens(0.8):
            image["hw_firmware_type"] = "uefi"
            image["hw_firmware_stateless"] = "true"
            image["hw_video_model"] = "none"
        return image

    def roll_profile(self) -> list[dict[str, str]]:
        groups = []
        for _number in range(self.random.choice((1, 1, 1, 2))):
            group = {"accel:bitstream_id": "x"}
            if self.happens(0.99):
                cls = self.random.choice(
                    ("FPGA", "FPGA", "PGPU", "PGPU", "CUSTOM_DEVICE", "CUSTOM_DEVICE", "NEW_CLASS")
                )
                group[f"resources:{cls}"] = self.random.choice(("1",) * 8 + ("2", "0", "x"))
            if self.happens(0.5):
                group["trait:CUSTOM_FUNCTION"] = self.random.choice(("required", "forbidden", "x"))
            groups.append(group)
        return groups

    def roll_aliases(self) -> list[dict[str, str]]:
        aliases = []
        for name in ("a", "b c", "d"):
            if not self.happens(self.rate * 2):
                continue
            alias = {"name": name, "vendor_id": "8086", "product_id": "154d"}
            if self.happens(0.3):
                alias["resource_class"] = "CUSTOM_NIC"
            if self.happens(0.3):
                alias["traits"] = "CUSTOM_BLUE,HW_NIC_SRIOV"
            aliases.append(alias)
        return aliases

    def roll_port(self, extended: bool, profiles: list[str]) -> dict[str, t.Any]:
        port: dict[str, t.Any] = {
            "id": self.make_uuid(),
            "network_id": _NETWORK,
            "binding:vnic_type": self.random.choice(("normal", "normal", "direct", "macvtap")),
        }
        if self.happens(0.2 if profiles else 0.01):
            port["binding:vnic_type"] = "accelerator-direct"
        if profiles and self.happens(0.9):
            port["device_profile"] = self.random.choice(profiles)
        if self.happens(0.4):
            port["resource_request"] = None
        elif extended:
            port["resource_request"] = self.roll_groups()
        else:
            port["resource_request"] = self.roll_port_group()
        return port

    def roll_groups(self) -> dict[str, t.Any]:
        groups = []
        for _number in range(self.random.choice((0, 1, 1, 2))):
            groups.append({"id": self.make_uuid(), **self.roll_port_group()})
        request: dict[str, t.Any] = {"request_groups": groups}
        if groups:
            request["same_subtree"] = [group["id"] for group in groups]
        return request

    def roll_port_group(self) -> dict[str, t.Any]:
        group: dict[str, t.Any] = {
            "resources": {
                f"NET_BW_{direction}_KILOBIT_PER_SEC": self.random.choice((0, 100, 1000))
                for direction in self.random.choice((("EGR",), ("EGR", "IGR")))
            }
        }
        if self.happens(0.8):
            group["required"] = ["CUSTOM_PHYSNET_A", "CUSTOM_VNIC_TYPE_NORMAL"]
        return group


def _build_inputs(nova: dict[str, t.Any]) -> ServerInputs:
    flavor = nova["flavor"]
    aliases = {}
    for alias in nova["aliases"]:
        cls = alias.get("resource_class", "CUSTOM_PCI_8086_154D")
        traits = frozenset(filter(None, alias.get("traits", "").split(",")))
        aliases[alias["name"]] = PciAlias(alias["name"], cls, traits)
    return ServerInputs(
        vcpus=flavor["vcpus"],
        ram=flavor["memory_mb"],
        disk=flavor["root_gb"],
        ephemeral=flavor["ephemeral_gb"],
        swap=flavor["swap"],
        extra_specs=flavor["extra_specs"],
        volume_backed=nova["volume_backed"],
        image_properties=nova["image_properties"],
        ports=tuple(_build_port(port) for port in nova["ports"]),
        pci_aliases=aliases,
        device_profiles={name: tuple(groups) for name, groups in nova["device_profiles"].items()},
        accelerators=_build_accelerators(nova["device_profiles"]),
    )


def _build_accelerators(profiles: dict[str, t.Any]) -> tuple[AcceleratorRequest, ...]:
    return tuple(AcceleratorRequest("any", name, 0, None) for name in profiles)


def _build_port(port: dict[str, t.Any]) -> ServerPort:
    request = port["resource_request"] or {}
    described = request.get("request_groups")
    if described is None:
        described = [{"id": port["id"], **request}] if request else []
    groups = tuple(
        PortGroup(group["id"], group["resources"], frozenset(group.get("required", ())))
        for group in described
    )
    return ServerPort(
        uuid=port["id"],
        vnic_type=port["binding:vnic_type"],
        groups=groups,
        same_subtree=tuple(request.get("same_subtree", ())),
        device_profile=port.get("device_profile"),
    )
