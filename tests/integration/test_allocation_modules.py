"""`placement_allocation` and `placement_allocation_info` against a real Placement."""

import typing as t
import uuid

import pytest

from .support import Ansible, Placement

CLAIM = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}
OWNER = {"project": "0f2a6c31d0c24f6a9c61b3c2e8a4d7b1", "user": "5b7d9f1e3a5c4e7d8b6a4c2e0f1d3b5a"}


@pytest.fixture
def consumer(placement: Placement) -> t.Iterator[str]:
    """The uuid of a consumer without an allocation, before and after the test."""
    name = str(uuid.uuid4())
    yield name
    left = placement.allocation(name)
    if left["allocations"]:
        body = {key: left[key] for key in ("consumer_generation", "project_id", "user_id")}
        placement.put(name, {**body, "allocations": {}})


@pytest.fixture
def held(ansible: Ansible, consumer: str) -> str:
    """A consumer with an allocation on two hosts."""
    result = ansible.module(
        "placement_allocation",
        consumer=consumer,
        resources={"compute-1": CLAIM, "compute-2": CLAIM},
        **OWNER,
    )
    assert result["changed"], result
    return consumer


def test_module_creates_an_allocation(
    ansible: Ansible, placement: Placement, consumer: str
) -> None:
    result = ansible.module(
        "placement_allocation", consumer=consumer, resources={"compute-1": CLAIM}, **OWNER
    )

    assert result["changed"]
    assert placement.held(consumer) == {placement.providers()["compute-1"]: CLAIM}
    assert placement.allocation(consumer)["consumer_type"] == "unknown"
    (allocation,) = result["allocations"]
    assert (allocation["consumer"], allocation["project"], allocation["user"]) == (
        consumer,
        OWNER["project"],
        OWNER["user"],
    )
    assert [(provider["name"], provider["resources"]) for provider in allocation["providers"]] == [
        ("compute-1", CLAIM)
    ]


@pytest.mark.acceptance
def test_module_is_idempotent(ansible: Ansible, placement: Placement, held: str) -> None:
    before = placement.everything()

    result = ansible.module(
        "placement_allocation",
        consumer=held.upper(),
        resources={"compute-2": CLAIM, "compute-1": CLAIM},
    )

    assert not result["changed"]
    assert placement.everything() == before


@pytest.mark.acceptance
def test_module_changes_amounts_and_drops_a_provider(
    ansible: Ansible, placement: Placement, held: str
) -> None:
    more = {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 1}

    result = ansible.module(
        "placement_allocation", "--diff", consumer=held, resources={"compute-2": more}
    )

    there = placement.providers()["compute-2"]
    assert result["changed"]
    assert placement.held(held) == {there: more}
    assert '-                    "VCPU": 1' in result["printed_diff"]
    assert '+                    "VCPU": 2' in result["printed_diff"]


def test_module_removes_one_provider_and_keeps_the_rest(
    ansible: Ansible, placement: Placement, held: str
) -> None:
    uuid_of_one = placement.providers()["compute-1"]

    assert ansible.module(
        "placement_allocation", consumer=held, state="absent", resource_provider=uuid_of_one
    )["changed"]
    assert placement.held(held) == {placement.providers()["compute-2"]: CLAIM}
    assert not ansible.module(
        "placement_allocation", consumer=held, state="absent", resource_provider="compute-1"
    )["changed"]


def test_removing_every_class_removes_the_consumer(
    ansible: Ansible, placement: Placement, held: str
) -> None:
    before = placement.everything()
    wish = {"consumer": held, "state": "absent", "resource_classes": list(CLAIM)}

    predicted = ansible.module("placement_allocation", "--check", **wish)
    assert predicted["changed"] and predicted["allocations"][0]["providers"] == []
    assert placement.everything() == before
    assert ansible.module("placement_allocation", **wish)["changed"]
    assert placement.held(held) == {}


def test_module_keeps_the_consumer_type_and_leaves_untyped_consumers_untyped(
    ansible: Ansible, placement: Placement, consumer: str
) -> None:
    ansible.module(
        "placement_allocation",
        consumer=consumer,
        consumer_type="CONTAINER",
        resources={"compute-1": CLAIM},
        **OWNER,
    )
    ansible.module("placement_allocation", consumer=consumer, resources={"compute-2": CLAIM})

    assert placement.allocation(consumer)["consumer_type"] == "CONTAINER"


def test_module_changes_several_consumers(
    ansible: Ansible, placement: Placement, held: str
) -> None:
    other = str(uuid.uuid4())
    wishes = [
        {"consumer": held, "state": "absent", "resource_provider": "compute-1"},
        {"consumer": other, "resources": {"compute-1": CLAIM}, **OWNER},
    ]

    result = ansible.module("placement_allocation", allocations=wishes)
    ansible.module("placement_allocation", consumer=other, state="absent")

    assert [allocation["changed"] for allocation in result["allocations"]] == [True, True]
    assert placement.held(held) == {placement.providers()["compute-2"]: CLAIM}


def test_module_refuses_a_consumer_in_two_entries_before_any_write(
    ansible: Ansible, placement: Placement, held: str
) -> None:
    before = placement.everything()
    wishes = [
        {"consumer": held, "state": "absent", "resource_provider": name}
        for name in ("compute-1", "compute-2")
    ]

    result = ansible.module("placement_allocation", allocations=wishes)

    assert result["failed"] and f"has consumer {held} more than once" in result["msg"]
    assert placement.everything() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"resources": {"compute-1": {"VCPU": 0}}}, "has 0 VCPU"),
        ({"resources": {"compute-1": {"VCPU": 10**6}}}, "max_unit"),
        ({"resources": {"compute-1": {"CUSTOM_NONESUCH": 1}}}, "CUSTOM_NONESUCH"),
        ({"resources": {"nonesuch": CLAIM}}, "'nonesuch'"),
    ],
)
def test_module_fails_with_the_reason_for_invalid_parameters(
    ansible: Ansible, placement: Placement, consumer: str, arguments: dict[str, t.Any], said: str
) -> None:
    result = ansible.module("placement_allocation", consumer=consumer, **arguments, **OWNER)

    assert result["failed"]
    assert said in result["msg"]
    assert "Traceback" not in str(result)
    assert placement.held(consumer) == {}
    # No empty record remains that would refuse an allocation without a generation.
    assert ansible.module(
        "placement_allocation", consumer=consumer, resources={"compute-1": CLAIM}, **OWNER
    )["changed"]


def test_info_finds_allocations_by_consumer(
    ansible: Ansible, placement: Placement, held: str
) -> None:
    providers = placement.providers()

    result = ansible.module("placement_allocation_info", consumer=held)

    (allocation,) = result["allocations"]
    assert not result["changed"]
    assert {key: allocation[key] for key in ("consumer", "type", "project", "user")} == {
        "consumer": held,
        "type": None,
        **OWNER,
    }
    assert allocation["generation"] == placement.allocation(held)["consumer_generation"]
    assert 0 <= allocation["age"] < 600
    assert {
        provider["uuid"]: provider["resources"] for provider in allocation["providers"]
    } == placement.held(held)
    assert {(provider["name"], provider["root"]) for provider in allocation["providers"]} == {
        (name, providers[name]) for name in ("compute-1", "compute-2")
    }


def test_info_by_provider_shows_whole_consumers(ansible: Ansible, held: str) -> None:
    result = ansible.module("placement_allocation_info", resource_provider=["compute-2"])

    allocation = next(
        allocation for allocation in result["allocations"] if allocation["consumer"] == held
    )
    assert {provider["name"] for provider in allocation["providers"]} == {"compute-1", "compute-2"}


@pytest.mark.acceptance
def test_info_lists_all_allocations(ansible: Ansible, placement: Placement, held: str) -> None:
    result = ansible.module("placement_allocation_info")

    assert {allocation["consumer"] for allocation in result["allocations"]} == set(
        placement.everything()
    )
