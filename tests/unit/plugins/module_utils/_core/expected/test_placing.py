"""What a server should have on its host, and all that makes it uncertain."""

import dataclasses as d
import typing as t
from collections.abc import Mapping

import pytest

from .......plugins.module_utils._core.expected.placing import Expectation, compare
from .......plugins.module_utils._core.expected.request import build_requests
from .......plugins.module_utils._core.models.other_services import (
    AcceleratorRequest,
    HostTree,
    PciAlias,
    ServerInputs,
)
from ...shapes_of_requests import (
    PCI,
    PLAIN_AMOUNTS,
    ROOT,
    make_inputs,
    make_inventory,
    make_pool,
    make_port,
    make_provider,
    make_tree,
    name_cases,
)

BANDWIDTH = "NET_BW_EGR_KILOBIT_PER_SEC"
PACKETS = "NET_PACKET_RATE_KILOPACKET_PER_SEC"
PLAIN = {ROOT: PLAIN_AMOUNTS}
GPU_1 = make_provider("gpu-1", {"VGPU": 8})
GPU_2 = make_provider("gpu-2", {"VGPU": 8})
TWO_GPUS = make_tree(GPU_1, GPU_2)
VGPU = {"resources1:VGPU": "1"}
TWO_VGPUS = {**VGPU, "resources2:VGPU": "1"}
APART = {**TWO_VGPUS, "group_policy": "isolate"}
POOL_HOST = make_tree(make_pool("pool", {"DISK_GB": 900}))
NIC = {"nic": PciAlias("nic", "CUSTOM_NIC")}
PINNED = {"hw:cpu_policy": "dedicated"}
PCPU_HOST = make_tree(root={"PCPU": 8, "VCPU": 8, "MEMORY_MB": 9999, "DISK_GB": 100})
PINNED_AMOUNTS = {ROOT: {"PCPU": 4, "MEMORY_MB": 1024, "DISK_GB": 20}}
NO_IMAGE = {"image_properties": None}
NO_VOLUME = {"volume_backed": None}
NO_PORTS = {"ports": None}


def expect(
    inputs: ServerInputs, tree: HostTree, present: Mapping[str, Mapping[str, int]]
) -> Expectation:
    return compare(build_requests(inputs), tree, present)


def without(amounts: Mapping[str, int], *classes: str) -> dict[str, int]:
    return {cls: amount for cls, amount in amounts.items() if cls not in classes}


@pytest.mark.parametrize(
    ("specs", "tree", "present"),
    name_cases(
        {
            "plain": ({}, make_tree(), PLAIN),
            "either-of-two-gpus": (VGPU, TWO_GPUS, {**PLAIN, "gpu-2": {"VGPU": 1}}),
            "two-groups-of-one-provider": (TWO_VGPUS, TWO_GPUS, {**PLAIN, "gpu-2": {"VGPU": 2}}),
            "disk-of-a-shared-pool": (
                {},
                POOL_HOST,
                {ROOT: {"VCPU": 4, "MEMORY_MB": 1024}, "pool": {"DISK_GB": 20}},
            ),
            "a-trait-that-is-gone": (
                {"resources1:VGPU": "1", "trait1:CUSTOM_FAST": "required"},
                make_tree(GPU_1),
                {**PLAIN, "gpu-1": {"VGPU": 1}},
            ),
            "a-baremetal-node-of-a-former-class": (
                {
                    "resources:CUSTOM_OLD": "1",
                    "resources:VCPU": "0",
                    "resources:MEMORY_MB": "0",
                    "resources:DISK_GB": "0",
                },
                make_tree(root={"CUSTOM_NEW": 1}),
                {ROOT: {"CUSTOM_OLD": 1}},
            ),
            "pinned": (PINNED, PCPU_HOST, PINNED_AMOUNTS),
            "pinned-before-the-host-had-pcpu": (PINNED, PCPU_HOST, PLAIN),
        }
    ),
)
def test_what_is_right(
    specs: dict[str, str], tree: HostTree, present: dict[str, dict[str, int]]
) -> None:
    expectation = expect(make_inputs(specs), tree, present)

    assert (expectation.matches, expectation.why) == (True, "")
    assert expectation.allocations == present


@pytest.mark.parametrize(
    ("specs", "tree", "present", "expected"),
    name_cases(
        {
            "more-and-less": ({}, make_tree(), {ROOT: {"VCPU": 8}}, PLAIN),
            "nothing": ({}, make_tree(), {}, PLAIN),
            "another-host": ({}, make_tree(), {"other": PLAIN_AMOUNTS}, PLAIN),
            "another-host-as-well": ({}, make_tree(), {**PLAIN, "other": PLAIN_AMOUNTS}, PLAIN),
            "a-lost-child": (VGPU, make_tree(GPU_1), PLAIN, {**PLAIN, "gpu-1": {"VGPU": 1}}),
            "the-gpu-that-it-has-is-kept": (
                VGPU,
                TWO_GPUS,
                {ROOT: {"VCPU": 1}, "gpu-2": {"VGPU": 3}},
                {**PLAIN, "gpu-2": {"VGPU": 1}},
            ),
            "an-unasked-gpu": ({}, make_tree(GPU_1), {**PLAIN, "gpu-1": {"VGPU": 1}}, PLAIN),
            "only-one-has-the-trait": (
                {**VGPU, "trait1:CUSTOM_FAST": "required"},
                make_tree(GPU_1, make_provider("gpu-2", {"VGPU": 8}, ["CUSTOM_FAST"])),
                PLAIN,
                {**PLAIN, "gpu-2": {"VGPU": 1}},
            ),
            "only-one-lacks-the-trait": (
                {**VGPU, "trait1:CUSTOM_SLOW": "forbidden"},
                make_tree(GPU_1, make_provider("gpu-2", {"VGPU": 8}, ["CUSTOM_SLOW"])),
                PLAIN,
                {**PLAIN, "gpu-1": {"VGPU": 1}},
            ),
            "only-one-is-large-enough": (
                {"resources1:VGPU": "2"},
                make_tree(GPU_1, make_provider("gpu-2", {"VGPU": 1})),
                PLAIN,
                {**PLAIN, "gpu-1": {"VGPU": 2}},
            ),
            "isolated-groups-have-one-each": (
                APART,
                TWO_GPUS,
                PLAIN,
                {**PLAIN, "gpu-1": {"VGPU": 1}, "gpu-2": {"VGPU": 1}},
            ),
            "a-group-is-of-one-provider": (
                {"resources1:VGPU": "1", "resources1:CUSTOM_ENCODER": "1"},
                make_tree(GPU_1, make_provider("gpu-2", {"VGPU": 8, "CUSTOM_ENCODER": 2})),
                PLAIN,
                {**PLAIN, "gpu-2": {"VGPU": 1, "CUSTOM_ENCODER": 1}},
            ),
            "pinned-on-a-host-without-pcpu": (PINNED, make_tree(), {}, PLAIN),
            "pinned-on-a-host-with-pcpu": (PINNED, PCPU_HOST, {}, PINNED_AMOUNTS),
            "pinned-with-vcpu-that-is-kept": (
                PINNED,
                PCPU_HOST,
                {ROOT: without(PLAIN_AMOUNTS, "DISK_GB")},
                PLAIN,
            ),
            "only-the-pool-has-disk": (
                {},
                make_tree(
                    make_pool("pool", {"DISK_GB": 900}), root={"VCPU": 16, "MEMORY_MB": 65536}
                ),
                {},
                {ROOT: {"VCPU": 4, "MEMORY_MB": 1024}, "pool": {"DISK_GB": 20}},
            ),
        }
    ),
)
def test_what_is_wrong(
    specs: dict[str, str],
    tree: HostTree,
    present: dict[str, dict[str, int]],
    expected: dict[str, dict[str, int]],
) -> None:
    expectation = expect(make_inputs(specs), tree, present)

    assert (expectation.matches, expectation.why) == (False, "")
    assert expectation.allocations == expected


@pytest.mark.parametrize(
    ("specs", "tree", "present", "why"),
    name_cases(
        {
            "two-gpus": (VGPU, TWO_GPUS, PLAIN, "several_placements"),
            "one-of-two-is-too-much": (
                VGPU,
                TWO_GPUS,
                {**PLAIN, "gpu-1": {"VGPU": 1}, "gpu-2": {"VGPU": 1}},
                "several_placements",
            ),
            "together-or-apart": (TWO_VGPUS, TWO_GPUS, PLAIN, "several_placements"),
            "local-disk-or-shared-pool": (
                {},
                POOL_HOST,
                {ROOT: {"VCPU": 4, "MEMORY_MB": 1024}},
                "several_placements",
            ),
            "nearer-to-pcpu": (
                PINNED,
                PCPU_HOST,
                {ROOT: {"VCPU": 1, "PCPU": 3, **without(PLAIN_AMOUNTS, "VCPU")}},
                "",
            ),
            "some-pcpu": (
                {**PINNED, "hw:emulator_threads_policy": "isolate"},
                PCPU_HOST,
                {ROOT: {"PCPU": 1, **without(PLAIN_AMOUNTS, "VCPU")}},
                "",
            ),
            "pcpu-or-vcpu": (
                PINNED,
                PCPU_HOST,
                {ROOT: {"VCPU": 1, **without(PLAIN_AMOUNTS, "VCPU")}},
                "cpu_class_ambiguous",
            ),
        }
    ),
)
def test_what_is_wrong_and_without_one_answer(
    specs: dict[str, str], tree: HostTree, present: dict[str, dict[str, int]], why: str
) -> None:
    expectation = expect(make_inputs(specs), tree, present)

    assert (expectation.matches, expectation.why.id) == (False, why)
    assert (expectation.allocations is None) is bool(why)


@pytest.mark.parametrize(
    ("specs", "tree", "present", "why"),
    name_cases(
        {
            "no-inventory": (
                {"resources1:CUSTOM_FPGA": "1"},
                make_tree(),
                PLAIN,
                "no_provider_fits",
            ),
            "too-much": ({"resources1:VGPU": "9"}, make_tree(GPU_1), PLAIN, "no_provider_fits"),
            "isolated-groups-together": (
                APART,
                TWO_GPUS,
                {**PLAIN, "gpu-1": {"VGPU": 2}},
                "right_amounts_on_other_providers",
            ),
        }
    ),
)
def test_what_cannot_be_known(
    specs: dict[str, str], tree: HostTree, present: dict[str, dict[str, int]], why: str
) -> None:
    expectation = expect(make_inputs(specs), tree, present)

    assert (expectation.matches, expectation.allocations) == (None, None)
    assert expectation.why.id == why


@pytest.mark.parametrize(
    ("step", "amount", "matches"), [(1, 3, False), (2, 3, None), (2, 4, False)]
)
def test_step_size(step: int, amount: int, matches: bool | None) -> None:
    gpu = d.replace(GPU_1, inventories={"VGPU": make_inventory(8, step_size=step)})
    expectation = expect(make_inputs({"resources1:VGPU": str(amount)}), make_tree(gpu), PLAIN)

    assert expectation.matches is matches


def test_what_is_reserved_today_does_not_count() -> None:
    root = make_provider(ROOT, {}, parent=None)
    inventories = {
        cls: make_inventory(amount, reserved=amount) for cls, amount in PLAIN_AMOUNTS.items()
    }
    tree = HostTree(ROOT, {ROOT: d.replace(root, inventories=inventories)})

    assert expect(make_inputs(), tree, {}).allocations == PLAIN


# A bridge and its agent: packets are of the agent, bandwidth is of the bridge below it.
AGENT = make_provider("agent", {PACKETS: 1000})
BRIDGE = make_provider("bridge", {BANDWIDTH: 1000}, parent="agent")
OTHER = make_provider("other-bridge", {BANDWIDTH: 1000})
PORT = make_port("p", {PACKETS: 10}, {BANDWIDTH: 100}, same_subtree=("p-0", "p-1"))


def test_same_subtree_decides_on_the_bridge() -> None:
    expectation = expect(make_inputs(ports=(PORT,)), make_tree(AGENT, OTHER, BRIDGE), PLAIN)

    assert expectation.allocations == {**PLAIN, "agent": {PACKETS: 10}, "bridge": {BANDWIDTH: 100}}


def test_neutron_decides_on_the_bridge() -> None:
    port = make_port("p", {BANDWIDTH: 100}, providers={"": "other-bridge"})
    expectation = expect(make_inputs(ports=(port,)), make_tree(AGENT, BRIDGE, OTHER), PLAIN)

    assert expectation.allocations == {**PLAIN, "other-bridge": {BANDWIDTH: 100}}


def test_cyborg_decides_on_the_device() -> None:
    devices = [make_provider(name, {"FPGA": 1}) for name in ("fpga-1", "fpga-2")]
    inputs = make_inputs(
        {"accel:device_profile": "p"},
        device_profiles={"p": ({"resources:FPGA": "1"},)},
        accelerators=(AcceleratorRequest("a", "p", 0, "fpga-2"),),
    )

    assert expect(inputs, make_tree(*devices), PLAIN).allocations == {
        **PLAIN,
        "fpga-2": {"FPGA": 1},
    }


def test_neutron_and_placement_contradict_each_other() -> None:
    port = make_port("p", {BANDWIDTH: 100}, providers={"": "other-bridge"})
    present = {ROOT: {"VCPU": 1}, "bridge": {BANDWIDTH: 100}}
    expectation = expect(make_inputs(ports=(port,)), make_tree(AGENT, BRIDGE, OTHER), present)

    assert (expectation.matches, expectation.allocations) == (None, None)
    assert expectation.why.id == "group_provider_contradicted"


def test_neutron_names_a_provider_of_another_host() -> None:
    port = make_port("p", {BANDWIDTH: 100}, providers={"": "far-bridge"})
    expectation = expect(make_inputs(ports=(port,)), make_tree(AGENT, BRIDGE), PLAIN)

    assert (expectation.matches, expectation.allocations) == (None, None)
    assert expectation.why.id == "group_provider_of_other_host"


def test_a_port_that_was_attached_later_need_not_be_isolated() -> None:
    ports = tuple(
        make_port(name, {BANDWIDTH: 100}, providers={"": "bridge"}) for name in ("p", "q")
    )
    inputs = make_inputs({"group_policy": "isolate"}, ports=ports)
    present = {**PLAIN, "bridge": {BANDWIDTH: 200}}

    assert expect(inputs, make_tree(AGENT, BRIDGE), present).matches is True


# PCI devices are in Placement only where Nova is configured so.
DEVICE_1 = make_provider("device-1", {"CUSTOM_NIC": 1}, [PCI])
DEVICE_2 = make_provider("device-2", {"CUSTOM_NIC": 1}, [PCI])
STRANGE = make_provider("device-3", {"CUSTOM_GPU": 1}, [PCI])


@pytest.mark.parametrize(
    ("request_of_alias", "tree", "present", "matches", "expected"),
    name_cases(
        {
            "pci-is-not-in-placement": ("nic:1", make_tree(), PLAIN, True, PLAIN),
            "other-children-are-no-pci": ("nic:1", make_tree(GPU_1), PLAIN, True, PLAIN),
            "one-device": (
                "nic:1",
                make_tree(DEVICE_1),
                PLAIN,
                False,
                {**PLAIN, "device-1": {"CUSTOM_NIC": 1}},
            ),
            "two-of-two-devices": (
                "nic:2",
                make_tree(DEVICE_1, DEVICE_2),
                PLAIN,
                False,
                {**PLAIN, "device-1": {"CUSTOM_NIC": 1}, "device-2": {"CUSTOM_NIC": 1}},
            ),
            "one-of-two-devices": ("nic:1", make_tree(DEVICE_1, DEVICE_2), PLAIN, False, None),
            "the-class-is-somebody-else-s": (
                "nic:1",
                make_tree(make_provider("cyborg-device", {"CUSTOM_NIC": 1})),
                PLAIN,
                True,
                PLAIN,
            ),
            "a-wrong-alias": ("nic:1", make_tree(STRANGE), PLAIN, None, None),
            "unknown-but-no-pci": ("unknown:1", make_tree(GPU_1), PLAIN, True, PLAIN),
            "unknown-and-lost": ("unknown:1", make_tree(DEVICE_1), PLAIN, None, None),
            "unknown-and-there": (
                "unknown:1",
                make_tree(DEVICE_1),
                {**PLAIN, "device-1": {"CUSTOM_NIC": 1}},
                None,
                None,
            ),
            "other-amounts": ("unknown:1", make_tree(DEVICE_1), {ROOT: {"VCPU": 4}}, False, None),
        }
    ),
)
def test_pci_devices(
    request_of_alias: str,
    tree: HostTree,
    present: dict[str, dict[str, int]],
    matches: bool | None,
    expected: dict[str, dict[str, int]] | None,
) -> None:
    inputs = make_inputs({"pci_passthrough:alias": request_of_alias}, pci_aliases=NIC)
    expectation = expect(inputs, tree, present)

    assert (expectation.matches, expectation.allocations) == (matches, expected)
    assert bool(expectation.why) is (expected is None)


@pytest.mark.parametrize(
    ("vnic_type", "present", "matches"),
    name_cases(
        {
            "it-is-not-in-placement": ("direct", PLAIN, True),
            "it-may-be-in-placement": ("direct", {**PLAIN, "device-1": {"CUSTOM_NIC": 1}}, None),
            "no-port-has-a-device": ("normal", {**PLAIN, "device-1": {"CUSTOM_NIC": 1}}, False),
            "it-does-not-explain-the-rest": ("direct", {ROOT: {"VCPU": 4}}, False),
        }
    ),
)
def test_pci_devices_of_ports(
    vnic_type: str, present: dict[str, dict[str, int]], matches: bool | None
) -> None:
    inputs = make_inputs(ports=(make_port("p", vnic_type=vnic_type),))

    assert expect(inputs, make_tree(DEVICE_1), present).matches is matches


def test_cyborg_would_know_the_device() -> None:
    devices = [make_provider(name, {"FPGA": 1}) for name in ("fpga-1", "fpga-2")]
    inputs = make_inputs(
        {"accel:device_profile": "p"},
        device_profiles={"p": ({"resources:FPGA": "1"},)},
        accelerators=None,
    )
    expectation = expect(inputs, make_tree(*devices), PLAIN)

    assert (expectation.matches, expectation.allocations) == (False, None)
    assert [missing.name for missing in expectation.missing] == ["accelerators"]


SEV_HOST = make_tree(make_provider("sev", {"MEM_ENCRYPTION_CONTEXT": 4}))


@pytest.mark.parametrize(
    ("changes", "tree", "present", "matches", "names"),
    name_cases(
        {
            "flavor": ({"extra_specs": None}, make_tree(), PLAIN, None, ["flavor"]),
            "flavor-and-another-provider": (
                {"extra_specs": None},
                make_tree(),
                {"other": PLAIN_AMOUNTS},
                None,
                ["flavor"],
            ),
            "the-image-cannot-matter": (NO_IMAGE, make_tree(), PLAIN, True, []),
            "right-without-image": (NO_IMAGE, PCPU_HOST, PLAIN, None, ["image"]),
            "wrong-without-image": (NO_IMAGE, PCPU_HOST, PINNED_AMOUNTS, None, ["image"]),
            "the-image-does-not-explain-it": (
                NO_IMAGE,
                PCPU_HOST,
                {ROOT: {**PLAIN_AMOUNTS, "MEMORY_MB": 1}},
                False,
                ["image"],
            ),
            "maybe-encrypted": (NO_IMAGE, SEV_HOST, PLAIN, None, ["image"]),
            "maybe-a-volume": (
                NO_VOLUME,
                make_tree(),
                {ROOT: without(PLAIN_AMOUNTS, "DISK_GB")},
                None,
                ["volume"],
            ),
            "a-volume-does-not-explain-it": (
                NO_VOLUME,
                make_tree(),
                {ROOT: {**PLAIN_AMOUNTS, "VCPU": 9}},
                False,
                ["volume"],
            ),
            "maybe-a-volume-and-gpus-together": (
                {"volume_backed": None, "extra_specs": APART},
                TWO_GPUS,
                {ROOT: without(PLAIN_AMOUNTS, "DISK_GB"), "gpu-1": {"VGPU": 2}},
                None,
                ["volume"],
            ),
            "no-children-no-ports": (NO_PORTS, make_tree(), PLAIN, True, []),
            "maybe-bandwidth": (NO_PORTS, make_tree(BRIDGE, AGENT), PLAIN, None, ["ports"]),
            "bandwidth-of-an-unknown-port": (
                NO_PORTS,
                make_tree(BRIDGE, AGENT),
                {**PLAIN, "bridge": {BANDWIDTH: 100}},
                None,
                ["ports"],
            ),
            "a-port-whose-request-is-hidden": (
                {"ports": (make_port("p", groups=None),)},
                make_tree(BRIDGE, AGENT),
                {**PLAIN, "bridge": {BANDWIDTH: 100}},
                None,
                ["ports"],
            ),
            "an-unknown-device-profile": (
                {"extra_specs": {"accel:device_profile": "p"}},
                make_tree(make_provider("fpga-1", {"FPGA": 1})),
                {**PLAIN, "fpga-1": {"FPGA": 1}},
                None,
                ["device_profile"],
            ),
            "a-class-that-no-provider-has": (
                {"extra_specs": {"resources:NEW_CLASS": "1"}},
                make_tree(),
                PLAIN,
                True,
                [],
            ),
            "a-class-that-only-a-newer-nova-knows": (
                {"extra_specs": {"resources:NEW_CLASS": "1"}},
                make_tree(make_provider("new", {"NEW_CLASS": 1})),
                {**PLAIN, "new": {"NEW_CLASS": 1}},
                None,
                ["flavor"],
            ),
        }
    ),
)
def test_what_is_missing_is_never_ignored(
    changes: dict[str, t.Any],
    tree: HostTree,
    present: dict[str, dict[str, int]],
    matches: bool | None,
    names: list[str],
) -> None:
    expectation = expect(make_inputs(**changes), tree, present)

    assert expectation.matches is matches
    assert [missing.name for missing in expectation.missing] == names
    # Nothing is written while something is missing.
    assert expectation.allocations == (PLAIN if not names else None)


def test_many_pci_devices_are_no_problem() -> None:
    devices = [make_provider(f"device-{number}", {"CUSTOM_NIC": 1}, [PCI]) for number in range(200)]
    inputs = make_inputs({"pci_passthrough:alias": "nic:16"}, pci_aliases=NIC)
    held = {f"device-{number * 7}": {"CUSTOM_NIC": 1} for number in range(16)}

    right = expect(inputs, make_tree(*devices), {**PLAIN, **held})
    wrong = expect(inputs, make_tree(*devices), {ROOT: {"VCPU": 1}, **held})
    held.pop("device-7")
    lost = expect(inputs, make_tree(*devices), {**PLAIN, **held})

    assert right.matches is True
    assert wrong.allocations == right.allocations
    assert (lost.matches, lost.allocations) == (False, None)
    assert lost.why.id == "several_placements" and "CUSTOM_NIC" in lost.why


def test_many_like_devices_are_no_problem() -> None:
    specs = {f"resources{number}:CUSTOM_{number}": "1" for number in range(1, 13)}
    classes = {f"CUSTOM_{number}": 9 for number in range(1, 13)}
    devices = [make_provider(f"device-{number}", classes) for number in range(11)]
    expectation = expect(make_inputs(specs), make_tree(*devices), {})

    assert (expectation.matches, expectation.allocations) == (False, None)
    assert expectation.why.id == "several_placements" and "CUSTOM_9" in expectation.why


def test_too_many_placements_are_not_certain() -> None:
    specs = {f"resources{number}:CUSTOM_{number}": "1" for number in range(1, 13)}
    classes = {f"CUSTOM_{number}": 9 for number in range(1, 13)}
    # The last group fits nowhere together with the others, which only shows at the end.
    devices = [make_provider(f"device-{number}", classes) for number in range(11)]
    expectation = expect(make_inputs({**specs, "group_policy": "isolate"}), make_tree(*devices), {})

    assert (expectation.matches, expectation.allocations) == (False, None)
    assert expectation.why.id == "too_many_placements"


def test_names_of_providers_are_made_printable() -> None:
    gpus = [d.replace(GPU_1, name="evil\x1b[2J"), GPU_2]

    assert "\x1b" not in expect(make_inputs(VGPU), make_tree(*gpus), PLAIN).why
