"""`placement_provider_info` and `allocation_candidate_info` against a real Placement."""

import typing as t
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from .support import Ansible, Minicloud, Placement

PARTS = ("inventories", "usages", "traits", "aggregates")
AGGREGATE = str(uuid.uuid4())
SERVER = {"VCPU": 30, "MEMORY_MB": 741376, "DISK_GB": 1638}


@pytest.fixture(scope="module")
def made(placement: Placement) -> Iterator[dict[str, str]]:
    """Provider uuids by name.

    A host with a device, and a host without disks whose service is disabled, with a pool that
    shares its disks.
    """
    placement.change("PUT", "/resource_classes/CUSTOM_PCI_X")
    memory = {"total": 772495, "reserved": 8192}
    host = placement.create_provider(
        "info-host",
        {"VCPU": {"total": 30, "max_unit": 30}, "MEMORY_MB": memory, "DISK_GB": {"total": 1760}},
        traits=["COMPUTE_NODE"],
    )
    device = placement.create_provider(
        "info-{{ device }}",
        {"CUSTOM_PCI_X": {"total": 4, "max_unit": 2}},
        parent=host,
        traits=["HW_NIC_SRIOV"],
    )
    diskless = placement.create_provider(
        "info-diskless",
        {"VCPU": {"total": 8, "allocation_ratio": 4.0}},
        traits=["COMPUTE_STATUS_DISABLED"],
        aggregate=AGGREGATE,
    )
    shares = ["MISC_SHARES_VIA_AGGREGATE", "STORAGE_DISK_SSD"]
    pool = placement.create_provider(
        "info-pool", {"DISK_GB": {"total": 9000}}, traits=shares, aggregate=AGGREGATE
    )
    yield {
        "info-host": host,
        "info-{{ device }}": device,
        "info-diskless": diskless,
        "info-pool": pool,
    }
    for provider in (device, host, diskless, pool):
        placement.change("DELETE", f"/resource_providers/{provider}")


@pytest.fixture
def claim(placement: Placement) -> Iterator[t.Callable[[str, dict[str, int]], str]]:
    """Allocate amounts of a provider to an unknown consumer, until the end of the test."""
    consumers: list[str] = []

    def make(provider: str, resources: dict[str, int]) -> str:
        consumers.append(str(uuid.uuid4()))
        owner = {"project_id": "p", "user_id": "u", "consumer_generation": None}
        placement.put(consumers[-1], {**owner, "allocations": {provider: {"resources": resources}}})
        return consumers[-1]

    yield make
    for consumer in consumers:
        left = placement.allocation(consumer)
        if left["allocations"]:
            body = {key: left[key] for key in ("consumer_generation", "project_id", "user_id")}
            placement.put(consumer, {**body, "allocations": {}})


@pytest.mark.parametrize("name", ["info-host", "info-{{ device }}"])
def test_info_shows_a_whole_tree_from_its_root_down(
    ansible: Ansible, made: dict[str, str], name: str
) -> None:
    result = ansible.module("placement_provider_info", resource_provider=[made[name].upper()])

    host, device = result["providers"]
    assert (result["changed"], result["unknown"]) == (False, [])
    assert (host["name"], host["root"], host["parent"]) == ("info-host", host["uuid"], None)
    assert (device["name"], device["root"], device["parent"]) == (
        "info-{{ device }}",
        host["uuid"],
        host["uuid"],
    )


def test_info_shows_a_provider_as_placement_has_it(
    ansible: Ansible,
    placement: Placement,
    made: dict[str, str],
    claim: t.Callable[[str, dict[str, int]], str],
) -> None:
    claim(made["info-host"], {"VCPU": 2, "MEMORY_MB": 4096})
    path = f"/resource_providers/{made['info-host']}"
    there = {part: placement.get(f"{path}/{part}")[part] for part in PARTS}

    shown = ansible.module("placement_provider_info", resource_provider="info-host")["providers"][0]

    assert shown["generation"] == placement.get(path)["generation"]
    capacities = {cls: inventory.pop("capacity") for cls, inventory in shown["inventories"].items()}
    assert {part: shown[part] for part in PARTS} == there
    assert capacities == {"VCPU": 30, "MEMORY_MB": 764303, "DISK_GB": 1760}
    assert shown["free"] == {"VCPU": 28, "MEMORY_MB": 760207, "DISK_GB": 1760}


def test_info_without_names_shows_all_providers(
    ansible: Ansible, placement: Placement, made: dict[str, str]
) -> None:
    result = ansible.module("placement_provider_info", parts=[])

    assert {
        provider["name"]: provider["uuid"] for provider in result["providers"]
    } == placement.providers()
    assert {key for provider in result["providers"] for key in provider} == {
        "uuid",
        "name",
        "generation",
        "root",
        "parent",
        "sharing",
    }


@pytest.mark.parametrize(
    ("cloud", "module", "arguments"),
    [
        ("minicloud-demo", "placement_provider_info", {}),
        ("minicloud-reader", "placement_provider_info", {"resource_provider": "compute-1"}),
        (
            "minicloud-demo",
            "allocation_candidate_info",
            {"resources": SERVER, "resource_provider": "compute-1"},
        ),
        ("minicloud-reader", "allocation_candidate_info", {"resources": SERVER}),
    ],
)
def test_info_refuses_insufficient_permissions(
    ansible: Ansible, cloud: str, module: str, arguments: dict[str, t.Any]
) -> None:
    result = ansible.module(module, cloud=cloud, **arguments)

    assert result["failed"]
    assert "answered 403" in result["msg"]
    assert "admin by default" in result["msg"]
    assert "\n" not in result["msg"]


def test_host_with_free_capacity_fits(
    ansible: Ansible, made: dict[str, str], claim: t.Callable[[str, dict[str, int]], str]
) -> None:
    claim(made["info-host"], {"DISK_GB": 22})

    result = ansible.module(
        "allocation_candidate_info",
        resource_provider=made["info-{{ device }}"],
        resources={**SERVER, "CUSTOM_PCI_X": 1},
    )

    assert (result["changed"], result["fits"], result["disabled"], result["lacking"]) == (
        False,
        True,
        False,
        [],
    )
    assert "30 VCPU" in result["reason"]
    (candidate,) = result["candidates"]
    assert (candidate["root"], candidate["root_name"]) == (made["info-host"], "info-host")
    shares = {share["name"]: share for share in candidate["providers"]}
    assert shares["info-host"]["resources"] == SERVER
    assert shares["info-host"]["capacity"] == {"VCPU": 30, "MEMORY_MB": 764303, "DISK_GB": 1760}
    assert shares["info-host"]["used"] == {"VCPU": 0, "MEMORY_MB": 0, "DISK_GB": 22}
    assert shares["info-{{ device }}"]["resources"] == {"CUSTOM_PCI_X": 1}


@pytest.mark.parametrize(
    ("resources", "required", "violates", "said"),
    [
        ({"VCPU": 20}, [], {"VCPU": ["free"]}, "10 of 30 VCPU"),
        ({"CUSTOM_PCI_X": 3}, [], {"CUSTOM_PCI_X": ["max_unit"]}, "info-{{ device }}"),
        ({"VCPU": 1, "VGPU": 1}, [], {"VGPU": ["inventory"]}, "no VGPU"),
        ({"VCPU": 1}, ["COMPUTE_NODE", "HW_NIC_SRIOV"], {}, "trait HW_NIC_SRIOV"),
        ({"VCPU": 1}, ["!COMPUTE_NODE"], {}, "trait COMPUTE_NODE"),
    ],
)
def test_host_lacking_something_does_not_fit(
    ansible: Ansible,
    made: dict[str, str],
    claim: t.Callable[[str, dict[str, int]], str],
    resources: dict[str, int],
    required: list[str],
    violates: dict[str, list[str]],
    said: str,
) -> None:
    claim(made["info-host"], {"VCPU": 20})

    result = ansible.module(
        "allocation_candidate_info",
        resource_provider="info-host",
        resources=resources,
        required=required,
    )

    assert (result["failed"], result["fits"], result["candidates"]) == (False, False, [])
    assert {entry["resource_class"]: entry["violates"] for entry in result["lacking"]} == violates
    assert said in result["reason"]


@pytest.mark.parametrize("required", [[], ["STORAGE_DISK_SSD", "COMPUTE_STATUS_DISABLED"]])
def test_host_fits_with_capacity_of_a_shared_pool(
    ansible: Ansible, made: dict[str, str], required: list[str]
) -> None:
    result = ansible.module(
        "allocation_candidate_info",
        resource_provider="info-diskless",
        resources={"VCPU": 1, "DISK_GB": 9000},
        required=required,
    )

    (candidate,) = result["candidates"]
    assert (result["fits"], result["disabled"], candidate["root_name"]) == (
        True,
        True,
        "info-diskless",
    )
    assert {share["name"]: share["resources"] for share in candidate["providers"]} == {
        "info-diskless": {"VCPU": 1},
        "info-pool": {"DISK_GB": 9000},
    }
    assert "info-pool" in result["reason"] and "service is disabled" in result["reason"]


def test_query_without_a_host_finds_all_hosts_with_free_capacity(
    ansible: Ansible, made: dict[str, str]
) -> None:
    wanted = {"VCPU": 1, "DISK_GB": 1}
    every = ansible.module("allocation_candidate_info", resources=wanted)
    here = ansible.module("allocation_candidate_info", resources=wanted, member_of=[AGGREGATE])
    one = ansible.module("allocation_candidate_info", resources=wanted, limit=1)

    roots = {candidate["root_name"]: candidate["disabled"] for candidate in every["candidates"]}
    assert roots.items() >= {"compute-1": False, "info-host": False, "info-diskless": True}.items()
    assert [candidate["root_name"] for candidate in here["candidates"]] == ["info-diskless"]
    assert len(one["candidates"]) == 1
    assert "lacking" not in every


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"resource_provider": "nonesuch"}, "'nonesuch'"),
        ({"resources": {"CUSTOM_NONESUCH": 1}}, "CUSTOM_NONESUCH"),
        ({"required": ["CUSTOM_NONESUCH"]}, "CUSTOM_NONESUCH"),
    ],
)
def test_invalid_query_fails_with_the_reason(
    ansible: Ansible, arguments: dict[str, t.Any], said: str
) -> None:
    result = ansible.module("allocation_candidate_info", **{"resources": {"VCPU": 1}, **arguments})

    assert result["failed"]
    assert said in result["msg"]
    assert "\n" not in result["msg"]


@pytest.mark.long
def test_orphan_blocks_its_host_until_it_is_removed(
    ansible: Ansible,
    placement: Placement,
    minicloud: Minicloud,
    tmp_path: Path,
    claim: t.Callable[[str, dict[str, int]], str],
) -> None:
    """With this check an operator opens and closes a case of "No valid host was found"."""
    minicloud.scenario("healthy")
    question = {"resource_provider": "compute-1", "resources": SERVER}
    assert ansible.module("allocation_candidate_info", **question)["fits"]
    orphan = claim(placement.providers()["compute-1"], {**SERVER, "DISK_GB": 1668})

    blocked = ansible.module("allocation_candidate_info", **question)
    findings = str(tmp_path / "findings.json")
    no_age = {"min_age": "0", "unknown_min_age": "0"}
    ansible.module("orphan_detect", dest=findings, **no_age)
    planned = ansible.module(
        "orphan_plan",
        findings=findings,
        kinds=["unknown_consumer"],
        dest=str(tmp_path / "plan.json"),
    )
    ansible.module("orphan_remediate", plan=planned["plan"], output_dir=str(tmp_path), **no_age)
    freed = ansible.module("allocation_candidate_info", **question)

    (entry,) = blocked["lacking"]
    assert (blocked["fits"], entry["resource_class"], entry["violates"]) == (
        False,
        "MEMORY_MB",
        ["free"],
    )
    assert f"{entry['free']} of {entry['capacity']} MEMORY_MB are free" in blocked["reason"]
    assert placement.held(orphan) == {}
    assert freed["fits"]
