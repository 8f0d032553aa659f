"""What Nova requests for a server, case by case."""

import typing as t

import pytest

from .......plugins.module_utils._core.expected.request import build_requests
from .......plugins.module_utils._core.models.other_services import (
    AcceleratorRequest,
    AmountRule,
    PciAlias,
    ResourceRequest,
    ServerInputs,
)
from ...shapes_of_requests import PLAIN_AMOUNTS, make_inputs, make_port, name_cases

BANDWIDTH = "NET_BW_EGR_KILOBIT_PER_SEC"
PACKETS = "NET_PACKET_RATE_KILOPACKET_PER_SEC"
BAREMETAL = {
    "resources:CUSTOM_GOLD": "1",
    "resources:VCPU": "0",
    "resources:MEMORY_MB": "0",
    "resources:DISK_GB": "0",
}
PLAIN = {"": PLAIN_AMOUNTS}
NO_DISK = {"VCPU": 4, "MEMORY_MB": 1024}
DEDICATED = {"hw:cpu_policy": "dedicated"}
DEDICATED_IMAGE = {"hw_cpu_policy": "dedicated"}
MIXED = {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0"}
ISOLATED = {"hw:emulator_threads_policy": "isolate"}
ENCRYPTED = {"hw:mem_encryption": "true"}


def list_amounts(request: ResourceRequest) -> dict[str, dict[str, int]]:
    return {name: dict(group.resources) for name, group in request.groups.items()}


def build_one(inputs: ServerInputs) -> ResourceRequest:
    requests = build_requests(inputs)
    assert [request.missing for request in requests] == [()] * len(requests)
    return requests[0]


@pytest.mark.parametrize(
    ("changes", "amounts"),
    name_cases(
        {
            "plain": ({}, PLAIN_AMOUNTS),
            "from-a-volume": ({"volume_backed": True}, NO_DISK),
            "swap-is-rounded-up": ({"swap": 1}, {**PLAIN_AMOUNTS, "DISK_GB": 21}),
            "swap-of-one-gib": ({"swap": 1024}, {**PLAIN_AMOUNTS, "DISK_GB": 21}),
            "ephemeral": ({"ephemeral": 5}, {**PLAIN_AMOUNTS, "DISK_GB": 25}),
            "a-volume-replaces-only-the-root-disk": (
                {"volume_backed": True, "ephemeral": 5, "swap": 2048},
                {**PLAIN_AMOUNTS, "DISK_GB": 7},
            ),
            "no-disk-at-all": ({"disk": 0}, NO_DISK),
            "no-root-disk": ({"disk": 0, "volume_backed": None}, NO_DISK),
        }
    ),
)
def test_amounts_of_the_flavor(changes: dict[str, t.Any], amounts: dict[str, int]) -> None:
    assert list_amounts(build_one(make_inputs(**changes))) == {"": amounts}


@pytest.mark.parametrize(
    ("specs", "groups"),
    name_cases(
        {
            "override-an-amount": ({"resources:VCPU": "2"}, {"": {**PLAIN_AMOUNTS, "VCPU": 2}}),
            "override-by-zero": ({"resources:DISK_GB": "0"}, {"": NO_DISK}),
            "baremetal": (BAREMETAL, {"": {"CUSTOM_GOLD": 1}}),
            "numbered-group": ({"resources1:VGPU": "1"}, {"": PLAIN_AMOUNTS, "1": {"VGPU": 1}}),
            "group-with-a-word": (
                {"resources_GPU:VGPU": "1"},
                {"": PLAIN_AMOUNTS, "_GPU": {"VGPU": 1}},
            ),
            "a-class-in-any-group-replaces-the-flavor": (
                {"resources1:VCPU": "4"},
                {"": {"MEMORY_MB": 1024, "DISK_GB": 20}, "1": {"VCPU": 4}},
            ),
            "zero-in-any-group-replaces-the-flavor": (
                {"resources1:VCPU": "0"},
                {"": {"MEMORY_MB": 1024, "DISK_GB": 20}},
            ),
            "zero-requests-nothing": ({"resources:VGPU": "0"}, PLAIN),
            "below-zero-is-ignored": ({"resources:VGPU": "-1"}, PLAIN),
            "a-word-is-ignored": ({"resources:VGPU": "two"}, PLAIN),
            "a-suffix-with-a-space": ({"resources no:VGPU": "1"}, PLAIN),
            "a-long-suffix": ({f"resources{'a' * 65}:VGPU": "1"}, PLAIN),
            "without-a-class": ({"resources": "1"}, PLAIN),
            "persistent-memory": (
                {"hw:pmem": "6GB, small,small"},
                {
                    "": {
                        **PLAIN_AMOUNTS,
                        "CUSTOM_PMEM_NAMESPACE_6GB": 1,
                        "CUSTOM_PMEM_NAMESPACE_SMALL": 2,
                    }
                },
            ),
            "traits-have-no-amounts": (
                {"hw:tpm_version": "2.0", "os:secure_boot": "required", "hw:numa_nodes": "2"},
                PLAIN,
            ),
        }
    ),
)
def test_extra_specs(specs: dict[str, str], groups: dict[str, dict[str, int]]) -> None:
    assert list_amounts(build_one(make_inputs(specs))) == groups


@pytest.mark.parametrize(
    ("specs", "image", "cpus"),
    name_cases(
        {
            "shared": ({"hw:cpu_policy": "shared"}, {}, {"VCPU": 4}),
            "dedicated": (DEDICATED, {}, {"PCPU": 4}),
            "dedicated-by-the-image": ({}, DEDICATED_IMAGE, {"PCPU": 4}),
            "the-flavor-may-be-more": (DEDICATED, {"hw_cpu_policy": "shared"}, {"PCPU": 4}),
            "one-more-for-the-emulator": ({**DEDICATED, **ISOLATED}, {}, {"PCPU": 5}),
            "the-emulator-shares": (
                {**DEDICATED, "hw:emulator_threads_policy": "share"},
                {},
                {"PCPU": 4},
            ),
            "mixed": (
                {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-1"},
                {},
                {"VCPU": 2, "PCPU": 2},
            ),
            "mixed-by-exclusion": (
                {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "^0"},
                {},
                {"VCPU": 1, "PCPU": 3},
            ),
            "the-mask-of-the-image-is-first": (
                {"hw:cpu_policy": "mixed", "hw:cpu_realtime": "yes", "hw:cpu_realtime_mask": "^0"},
                {"hw_cpu_realtime_mask": "1"},
                {"VCPU": 3, "PCPU": 1},
            ),
            "mixed-with-the-emulator": ({**MIXED, **ISOLATED}, {}, {"VCPU": 3, "PCPU": 2}),
            "requested-as-a-resource": ({"resources:PCPU": "4"}, {}, {"PCPU": 4}),
        }
    ),
)
def test_cpus(specs: dict[str, str], image: dict[str, str], cpus: dict[str, int]) -> None:
    request = build_one(make_inputs(specs, image_properties=image))

    assert list_amounts(request) == {"": {"MEMORY_MB": 1024, "DISK_GB": 20, **cpus}}


@pytest.mark.parametrize(
    ("specs", "amounts"),
    name_cases(
        {
            "dedicated": (DEDICATED, [{"PCPU": 4}, {"VCPU": 4}]),
            "the-emulator-has-none-of-its-own": (
                {**DEDICATED, **ISOLATED},
                [{"PCPU": 5}, {"VCPU": 4}],
            ),
            "mixed-has-no-other-request": (MIXED, [{"VCPU": 3, "PCPU": 1}]),
            "nor-has-a-resource": ({"resources:PCPU": "4"}, [{"PCPU": 4}]),
        }
    ),
)
def test_hosts_without_pcpu(specs: dict[str, str], amounts: list[dict[str, int]]) -> None:
    requests = build_requests(make_inputs(specs, disk=0, ram=0))

    assert [list_amounts(request)[""] for request in requests] == amounts


@pytest.mark.parametrize(
    ("specs", "image", "amount"),
    name_cases(
        {
            "flavor": (ENCRYPTED, {}, 1),
            "image": ({}, {"hw_mem_encryption": "True"}, 1),
            "sev-es": ({"hw:mem_encryption": "1", "hw:mem_encryption_model": "amd-sev-es"}, {}, 1),
            "it-replaces-an-amount": (
                {"hw:mem_encryption": "yes", "resources:MEM_ENCRYPTION_CONTEXT": "3"},
                {},
                1,
            ),
            "none": ({"hw:mem_encryption": "false"}, {}, 0),
        }
    ),
)
def test_memory_encryption(specs: dict[str, str], image: dict[str, str], amount: int) -> None:
    properties = {"hw_firmware_type": "uefi", "hw_machine_type": "q35", **image}
    request = build_one(make_inputs(specs, image_properties=properties))

    assert request.groups[""].resources.get("MEM_ENCRYPTION_CONTEXT", 0) == amount


@pytest.mark.parametrize(
    ("specs", "image", "traits"),
    name_cases(
        {
            "required": ({"trait:A": "required"}, {}, {"A"}),
            "forbidden": ({"trait:A": "forbidden"}, {}, {"!A"}),
            "another-word-is-ignored": ({"trait:A": "wanted"}, {}, set()),
            "image": ({}, {"trait:A": "required"}, {"A"}),
            "images-forbid-nothing": ({}, {"trait:A": "forbidden"}, set()),
            "threads-isolated": (
                {**DEDICATED, "hw:cpu_thread_policy": "isolate"},
                {},
                {"!HW_CPU_HYPERTHREADING"},
            ),
            "threads-required": (
                {**DEDICATED, "hw:cpu_thread_policy": "require"},
                {},
                {"HW_CPU_HYPERTHREADING"},
            ),
            "tpm": (
                {"hw:tpm_version": "1.2"},
                {},
                {"COMPUTE_SECURITY_TPM_TIS", "COMPUTE_SECURITY_TPM_1_2"},
            ),
            "tpm-of-the-image": (
                {},
                {"hw_tpm_version": "2.0", "hw_tpm_model": "tpm-crb"},
                {"COMPUTE_SECURITY_TPM_CRB", "COMPUTE_SECURITY_TPM_2_0"},
            ),
            "secure-boot": (
                {"os:secure_boot": "required"},
                {},
                {"COMPUTE_SECURITY_UEFI_SECURE_BOOT"},
            ),
            "address-space": (
                {"hw:maxphysaddr_mode": "emulate"},
                {},
                {"COMPUTE_ADDRESS_SPACE_EMULATED"},
            ),
            "pci-numa-policy": (
                {"hw:pci_numa_affinity_policy": "socket"},
                {},
                {"COMPUTE_SOCKET_PCI_NUMA_AFFINITY"},
            ),
            "stateless-firmware": (
                {},
                {"hw_firmware_type": "uefi", "hw_firmware_stateless": "true"},
                {"COMPUTE_SECURITY_STATELESS_FIRMWARE"},
            ),
            "stateless-needs-uefi": ({}, {"hw_firmware_stateless": "true"}, set()),
        }
    ),
)
def test_traits(specs: dict[str, str], image: dict[str, str], traits: set[str]) -> None:
    """As in a query of Placement, `!` is before those that are forbidden."""
    group = build_one(make_inputs(specs, image_properties=image)).groups[""]

    assert {*group.required, *(f"!{trait}" for trait in group.forbidden)} == traits


@pytest.mark.parametrize(
    ("value", "isolate"), [("isolate", True), ("none", False), ("ISOLATE", False)]
)
def test_group_policy(value: str, isolate: bool) -> None:
    assert build_one(make_inputs({"group_policy": value})).isolate is isolate


def test_each_pci_device_is_a_group() -> None:
    aliases = {"nic": PciAlias("nic", "CUSTOM_NIC", frozenset({"CUSTOM_FAST"}))}
    request = build_one(make_inputs({"pci_passthrough:alias": "nic:2, nic:1"}, pci_aliases=aliases))

    devices = {name: group for name, group in request.groups.items() if group.pci}
    assert sorted(devices) == ["pci_0-0", "pci_0-1", "pci_1-0"]
    for group in devices.values():
        assert (group.resources, group.required) == ({"CUSTOM_NIC": 1}, {"CUSTOM_FAST"})


def test_device_profile() -> None:
    profiles = {"p": ({"resources:FPGA": "1", "trait:X": "required"}, {"resources:PGPU": "2"})}
    accelerators = (AcceleratorRequest("a", "p", 0, "fpga-1"),)
    request = build_one(
        make_inputs(
            {"accel:device_profile": "p"}, device_profiles=profiles, accelerators=accelerators
        )
    )

    first, second = request.groups["device_profile_0"], request.groups["device_profile_1"]
    assert (first.resources, first.required, first.provider) == ({"FPGA": 1}, {"X"}, "fpga-1")
    assert (second.resources, second.provider) == ({"PGPU": 2}, None)


def test_ports() -> None:
    plain = make_port("plain")
    old = make_port("old", {BANDWIDTH: 100}, providers={"": "nic-1"})
    new = make_port(
        "new",
        {PACKETS: 5},
        {BANDWIDTH: 200},
        providers={"new-0": "agent", "new-1": "nic-2"},
        same_subtree=("new-0", "new-1"),
    )
    request = build_one(make_inputs(ports=(plain, old, new)))

    assert list_amounts(request) == {
        "": PLAIN_AMOUNTS,
        "old-0": {BANDWIDTH: 100},
        "new-0": {PACKETS: 5},
        "new-1": {BANDWIDTH: 200},
    }
    assert request.groups["old-0"].provider == "nic-1"
    assert request.groups["new-1"].provider == "nic-2"
    assert request.same_subtree == (frozenset({"new-0", "new-1"}),)


def test_ports_with_accelerators() -> None:
    profiles = {"p": ({"resources:FPGA": "1"},)}
    ports = (
        make_port("one", vnic_type="accelerator-direct", device_profile="p"),
        make_port("two", vnic_type="normal", device_profile="p"),
    )
    (request,) = build_requests(make_inputs(ports=ports, device_profiles=profiles))

    assert [missing.pci for missing in request.missing] == [True]
    assert list_amounts(request) == {"": PLAIN_AMOUNTS, "device_profile_0one": {"FPGA": 1}}


def test_rules_say_where_each_amount_is_from() -> None:
    request = build_one(make_inputs({"resources1:VGPU": "1"}, swap=1))

    assert request.rules == (
        AmountRule("", "VCPU", 4, "the VCPUs of the flavor"),
        AmountRule("", "MEMORY_MB", 1024, "the memory of the flavor"),
        AmountRule("", "DISK_GB", 21, "the root disk and swap of the flavor"),
        AmountRule("1", "VGPU", 1, "extra spec resources1:VGPU"),
    )


@pytest.mark.parametrize(
    ("specs", "image"),
    name_cases(
        {
            "unknown-policy": ({"hw:cpu_policy": "pinned"}, {}),
            "unknown-policy-of-the-image": ({}, {"hw_cpu_policy": "pinned"}),
            "the-image-wants-more": ({"hw:cpu_policy": "shared"}, DEDICATED_IMAGE),
            "the-image-wants-all": (MIXED, DEDICATED_IMAGE),
            "mixed-without-a-mask": ({"hw:cpu_policy": "mixed"}, {}),
            "mixed-of-one-kind": ({"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-3"}, {}),
            "mask-beyond-the-cpus": ({"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "9"}, {}),
            "mask-without-end": (
                {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-999999999999"},
                {},
            ),
            "mask-without-mixed": ({"hw:cpu_dedicated_mask": "0"}, {}),
            "policy-and-resources": ({**DEDICATED, "resources:VCPU": "4"}, {}),
            "resources-differ-from-the-flavor": ({"resources:PCPU": "3"}, {}),
            "threads-of-shared-cpus": ({"hw:cpu_thread_policy": "isolate"}, {}),
            "emulator-of-shared-cpus": (ISOLATED, {}),
            "realtime-for-all": ({**DEDICATED, "hw:cpu_realtime": "yes"}, {}),
            "encryption-without-uefi": (ENCRYPTED, {}),
            "encryption-by-one-only": (
                ENCRYPTED,
                {"hw_firmware_type": "uefi", "hw_mem_encryption": "false"},
            ),
            "tpm-model-too-new": ({"hw:tpm_version": "1.2", "hw:tpm_model": "tpm-crb"}, {}),
            "secure-boot-differs": ({"os:secure_boot": "required"}, {"os_secure_boot": "disabled"}),
            "alias-without-a-number": ({"pci_passthrough:alias": "nic"}, {}),
            "alias-without-end": ({"pci_passthrough:alias": "nic:9999999999"}, {}),
        }
    ),
)
def test_what_nova_refuses_is_not_certain(specs: dict[str, str], image: dict[str, str]) -> None:
    (request,) = build_requests(make_inputs(specs, image_properties=image))

    assert request.groups == {}
    assert request.missing[-1].name == "flavor"
    assert request.missing[-1].classes is None


def test_names_that_are_taken_are_refused() -> None:
    twice = (make_port("a", {BANDWIDTH: 1}), make_port("a", {BANDWIDTH: 1}))
    (request,) = build_requests(make_inputs(ports=twice))

    assert request.missing[-1].reason.endswith("have the name a-0")
