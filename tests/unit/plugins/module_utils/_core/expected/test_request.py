"""What Nova requests for a server, case by case."""

from __future__ import annotations

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
from ...shapes_of_requests import PLAIN_AMOUNTS, make_inputs, make_port

BANDWIDTH = "NET_BW_EGR_KILOBIT_PER_SEC"
PACKETS = "NET_PACKET_RATE_KILOPACKET_PER_SEC"
BAREMETAL = {
    "resources:CUSTOM_GOLD": "1",
    "resources:VCPU": "0",
    "resources:MEMORY_MB": "0",
    "resources:DISK_GB": "0",
}


def list_amounts(request: ResourceRequest) -> dict[str, dict[str, int]]:
    return {name: dict(group.resources) for name, group in request.groups.items()}


def build_one(inputs: ServerInputs) -> ResourceRequest:
    requests = build_requests(inputs)
    assert [request.missing for request in requests] == [()] * len(requests)
    return requests[0]


@pytest.mark.parametrize(
    ("changes", "amounts"),
    [
        pytest.param({}, PLAIN_AMOUNTS, id="plain"),
        pytest.param({"volume_backed": True}, {"VCPU": 4, "MEMORY_MB": 1024}, id="from-a-volume"),
        pytest.param({"swap": 1}, {**PLAIN_AMOUNTS, "DISK_GB": 21}, id="swap-is-rounded-up"),
        pytest.param({"swap": 1024}, {**PLAIN_AMOUNTS, "DISK_GB": 21}, id="swap-of-one-gib"),
        pytest.param({"ephemeral": 5}, {**PLAIN_AMOUNTS, "DISK_GB": 25}, id="ephemeral"),
        pytest.param(
            {"volume_backed": True, "ephemeral": 5, "swap": 2048},
            {**PLAIN_AMOUNTS, "DISK_GB": 7},
            id="a-volume-replaces-only-the-root-disk",
        ),
        pytest.param({"disk": 0}, {"VCPU": 4, "MEMORY_MB": 1024}, id="no-disk-at-all"),
        pytest.param(
            {"disk": 0, "volume_backed": None}, {"VCPU": 4, "MEMORY_MB": 1024}, id="no-root-disk"
        ),
    ],
)
def test_amounts_of_the_flavor(changes: dict[str, t.Any], amounts: dict[str, int]) -> None:
    assert list_amounts(build_one(make_inputs(**changes))) == {"": amounts}


@pytest.mark.parametrize(
    ("specs", "groups"),
    [
        pytest.param(
            {"resources:VCPU": "2"}, {"": {**PLAIN_AMOUNTS, "VCPU": 2}}, id="override-an-amount"
        ),
        pytest.param(
            {"resources:DISK_GB": "0"}, {"": {"VCPU": 4, "MEMORY_MB": 1024}}, id="override-by-zero"
        ),
        pytest.param(BAREMETAL, {"": {"CUSTOM_GOLD": 1}}, id="baremetal"),
        pytest.param(
            {"resources1:VGPU": "1"}, {"": PLAIN_AMOUNTS, "1": {"VGPU": 1}}, id="numbered-group"
        ),
        pytest.param(
            {"resources_GPU:VGPU": "1"},
            {"": PLAIN_AMOUNTS, "_GPU": {"VGPU": 1}},
            id="group-with-a-word",
        ),
        pytest.param(
            {"resources1:VCPU": "4"},
            {"": {"MEMORY_MB": 1024, "DISK_GB": 20}, "1": {"VCPU": 4}},
            id="a-class-in-any-group-replaces-the-flavor",
        ),
        pytest.param(
            {"resources1:VCPU": "0"},
            {"": {"MEMORY_MB": 1024, "DISK_GB": 20}},
            id="zero-in-any-group-replaces-the-flavor",
        ),
        pytest.param({"resources:VGPU": "0"}, {"": PLAIN_AMOUNTS}, id="zero-requests-nothing"),
        pytest.param({"resources:VGPU": "-1"}, {"": PLAIN_AMOUNTS}, id="below-zero-is-ignored"),
        pytest.param({"resources:VGPU": "two"}, {"": PLAIN_AMOUNTS}, id="a-word-is-ignored"),
        pytest.param({"resources no:VGPU": "1"}, {"": PLAIN_AMOUNTS}, id="a-suffix-with-a-space"),
        pytest.param({f"resources{'a' * 65}:VGPU": "1"}, {"": PLAIN_AMOUNTS}, id="a-long-suffix"),
        pytest.param({"resources": "1"}, {"": PLAIN_AMOUNTS}, id="without-a-class"),
        pytest.param(
            {"hw:pmem": "6GB, small,small"},
            {
                "": {
                    **PLAIN_AMOUNTS,
                    "CUSTOM_PMEM_NAMESPACE_6GB": 1,
                    "CUSTOM_PMEM_NAMESPACE_SMALL": 2,
                }
            },
            id="persistent-memory",
        ),
        pytest.param(
            {"hw:tpm_version": "2.0", "os:secure_boot": "required", "hw:numa_nodes": "2"},
            {"": PLAIN_AMOUNTS},
            id="traits-have-no-amounts",
        ),
    ],
)
def test_extra_specs(specs: dict[str, str], groups: dict[str, dict[str, int]]) -> None:
    assert list_amounts(build_one(make_inputs(specs))) == groups


@pytest.mark.parametrize(
    ("specs", "image", "cpus"),
    [
        pytest.param({"hw:cpu_policy": "shared"}, {}, {"VCPU": 4}, id="shared"),
        pytest.param({"hw:cpu_policy": "dedicated"}, {}, {"PCPU": 4}, id="dedicated"),
        pytest.param({}, {"hw_cpu_policy": "dedicated"}, {"PCPU": 4}, id="dedicated-by-the-image"),
        pytest.param(
            {"hw:cpu_policy": "dedicated"},
            {"hw_cpu_policy": "shared"},
            {"PCPU": 4},
            id="the-flavor-may-be-more",
        ),
        pytest.param(
            {"hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "isolate"},
            {},
            {"PCPU": 5},
            id="one-more-for-the-emulator",
        ),
        pytest.param(
            {"hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "share"},
            {},
            {"PCPU": 4},
            id="the-emulator-shares",
        ),
        pytest.param(
            {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-1"},
            {},
            {"VCPU": 2, "PCPU": 2},
            id="mixed",
        ),
        pytest.param(
            {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "^0"},
            {},
            {"VCPU": 1, "PCPU": 3},
            id="mixed-by-exclusion",
        ),
        pytest.param(
            {"hw:cpu_policy": "mixed", "hw:cpu_realtime": "yes", "hw:cpu_realtime_mask": "^0"},
            {"hw_cpu_realtime_mask": "1"},
            {"VCPU": 3, "PCPU": 1},
            id="the-mask-of-the-image-is-first",
        ),
        pytest.param(
            {
                "hw:cpu_policy": "mixed",
                "hw:cpu_dedicated_mask": "0",
                "hw:emulator_threads_policy": "isolate",
            },
            {},
            {"VCPU": 3, "PCPU": 2},
            id="mixed-with-the-emulator",
        ),
        pytest.param({"resources:PCPU": "4"}, {}, {"PCPU": 4}, id="requested-as-a-resource"),
    ],
)
def test_cpus(specs: dict[str, str], image: dict[str, str], cpus: dict[str, int]) -> None:
    request = build_one(make_inputs(specs, image_properties=image))

    assert list_amounts(request) == {"": {"MEMORY_MB": 1024, "DISK_GB": 20, **cpus}}


@pytest.mark.parametrize(
    ("specs", "amounts"),
    [
        pytest.param({"hw:cpu_policy": "dedicated"}, [{"PCPU": 4}, {"VCPU": 4}], id="dedicated"),
        pytest.param(
            {"hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "isolate"},
            [{"PCPU": 5}, {"VCPU": 4}],
            id="the-emulator-has-none-of-its-own",
        ),
        pytest.param(
            {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0"},
            [{"VCPU": 3, "PCPU": 1}],
            id="mixed-has-no-other-request",
        ),
        pytest.param({"resources:PCPU": "4"}, [{"PCPU": 4}], id="nor-has-a-resource"),
    ],
)
def test_hosts_without_pcpu(specs: dict[str, str], amounts: list[dict[str, int]]) -> None:
    requests = build_requests(make_inputs(specs, disk=0, ram=0))

    assert [list_amounts(request)[""] for request in requests] == amounts


@pytest.mark.parametrize(
    ("specs", "image", "amount"),
    [
        pytest.param({"hw:mem_encryption": "true"}, {}, 1, id="flavor"),
        pytest.param({}, {"hw_mem_encryption": "True"}, 1, id="image"),
        pytest.param(
            {"hw:mem_encryption": "1", "hw:mem_encryption_model": "amd-sev-es"}, {}, 1, id="sev-es"
        ),
        pytest.param(
            {"hw:mem_encryption": "yes", "resources:MEM_ENCRYPTION_CONTEXT": "3"},
            {},
            1,
            id="it-replaces-an-amount",
        ),
        pytest.param({"hw:mem_encryption": "false"}, {}, 0, id="none"),
    ],
)
def test_memory_encryption(specs: dict[str, str], image: dict[str, str], amount: int) -> None:
    properties = {"hw_firmware_type": "uefi", "hw_machine_type": "q35", **image}
    request = build_one(make_inputs(specs, image_properties=properties))

    assert request.groups[""].resources.get("MEM_ENCRYPTION_CONTEXT", 0) == amount


@pytest.mark.parametrize(
    ("specs", "image", "required", "forbidden"),
    [
        pytest.param({"trait:A": "required"}, {}, {"A"}, set(), id="required"),
        pytest.param({"trait:A": "forbidden"}, {}, set(), {"A"}, id="forbidden"),
        pytest.param({"trait:A": "wanted"}, {}, set(), set(), id="another-word-is-ignored"),
        pytest.param({}, {"trait:A": "required"}, {"A"}, set(), id="image"),
        pytest.param({}, {"trait:A": "forbidden"}, set(), set(), id="images-forbid-nothing"),
        pytest.param(
            {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "isolate"},
            {},
            set(),
            {"HW_CPU_HYPERTHREADING"},
            id="threads-isolated",
        ),
        pytest.param(
            {"hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "require"},
            {},
            {"HW_CPU_HYPERTHREADING"},
            set(),
            id="threads-required",
        ),
        pytest.param(
            {"hw:tpm_version": "1.2"},
            {},
            {"COMPUTE_SECURITY_TPM_TIS", "COMPUTE_SECURITY_TPM_1_2"},
            set(),
            id="tpm",
        ),
        pytest.param(
            {},
            {"hw_tpm_version": "2.0", "hw_tpm_model": "tpm-crb"},
            {"COMPUTE_SECURITY_TPM_CRB", "COMPUTE_SECURITY_TPM_2_0"},
            set(),
            id="tpm-of-the-image",
        ),
        pytest.param(
            {"os:secure_boot": "required"},
            {},
            {"COMPUTE_SECURITY_UEFI_SECURE_BOOT"},
            set(),
            id="secure-boot",
        ),
        pytest.param(
            {"hw:maxphysaddr_mode": "emulate"},
            {},
            {"COMPUTE_ADDRESS_SPACE_EMULATED"},
            set(),
            id="address-space",
        ),
        pytest.param(
            {"hw:pci_numa_affinity_policy": "socket"},
            {},
            {"COMPUTE_SOCKET_PCI_NUMA_AFFINITY"},
            set(),
            id="pci-numa-policy",
        ),
        pytest.param(
            {},
            {"hw_firmware_type": "uefi", "hw_firmware_stateless": "true"},
            {"COMPUTE_SECURITY_STATELESS_FIRMWARE"},
            set(),
            id="stateless-firmware",
        ),
        pytest.param(
            {}, {"hw_firmware_stateless": "true"}, set(), set(), id="stateless-needs-uefi"
        ),
    ],
)
def test_traits(
    specs: dict[str, str], image: dict[str, str], required: set[str], forbidden: set[str]
) -> None:
    group = build_one(make_inputs(specs, image_properties=image)).groups[""]

    assert (group.required, group.forbidden) == (required, forbidden)


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
    [
        pytest.param({"hw:cpu_policy": "pinned"}, {}, id="unknown-policy"),
        pytest.param({}, {"hw_cpu_policy": "pinned"}, id="unknown-policy-of-the-image"),
        pytest.param(
            {"hw:cpu_policy": "shared"}, {"hw_cpu_policy": "dedicated"}, id="the-image-wants-more"
        ),
        pytest.param(
            {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0"},
            {"hw_cpu_policy": "dedicated"},
            id="the-image-wants-all",
        ),
        pytest.param({"hw:cpu_policy": "mixed"}, {}, id="mixed-without-a-mask"),
        pytest.param(
            {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-3"}, {}, id="mixed-of-one-kind"
        ),
        pytest.param(
            {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "9"}, {}, id="mask-beyond-the-cpus"
        ),
        pytest.param(
            {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-999999999999"},
            {},
            id="mask-without-end",
        ),
        pytest.param({"hw:cpu_dedicated_mask": "0"}, {}, id="mask-without-mixed"),
        pytest.param(
            {"hw:cpu_policy": "dedicated", "resources:VCPU": "4"}, {}, id="policy-and-resources"
        ),
        pytest.param({"resources:PCPU": "3"}, {}, id="resources-differ-from-the-flavor"),
        pytest.param({"hw:cpu_thread_policy": "isolate"}, {}, id="threads-of-shared-cpus"),
        pytest.param({"hw:emulator_threads_policy": "isolate"}, {}, id="emulator-of-shared-cpus"),
        pytest.param(
            {"hw:cpu_policy": "dedicated", "hw:cpu_realtime": "yes"}, {}, id="realtime-for-all"
        ),
        pytest.param({"hw:mem_encryption": "true"}, {}, id="encryption-without-uefi"),
        pytest.param(
            {"hw:mem_encryption": "true"},
            {"hw_firmware_type": "uefi", "hw_mem_encryption": "false"},
            id="encryption-by-one-only",
        ),
        pytest.param(
            {"hw:tpm_version": "1.2", "hw:tpm_model": "tpm-crb"}, {}, id="tpm-model-too-new"
        ),
        pytest.param(
            {"os:secure_boot": "required"}, {"os_secure_boot": "disabled"}, id="secure-boot-differs"
        ),
        pytest.param({"pci_passthrough:alias": "nic"}, {}, id="alias-without-a-number"),
        pytest.param({"pci_passthrough:alias": "nic:9999999999"}, {}, id="alias-without-end"),
    ],
)
def test_what_nova_refuses_is_not_certain(specs: dict[str, str], image: dict[str, str]) -> None:
    (request,) = build_requests(make_inputs(specs, image_properties=image))

    assert request.groups == {}
    assert request.missing[-1].name == "flavor"
    assert request.missing[-1].classes is None


def test_names_that_are_taken_are_refused() -> None:
    twice = (make_port("a", {BANDWIDTH: 1}), make_port("a", {BANDWIDTH: 1}))
    (request,) = build_requests(make_inputs(ports=twice))

    assert request.missing[-1].reason.endswith("two request groups have the name a-0")
