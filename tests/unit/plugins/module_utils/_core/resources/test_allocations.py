"""From the parameters of the allocation module to the complete allocation to write.

And providers in the results of modules: their order, their parts, and unknown names.
"""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._common.errors import AllocationConflict, InvalidInput
from .......plugins.module_utils._core.clients.placement import PARTS
from .......plugins.module_utils._core.models.placement import (
    Allocation,
    Inventory,
    Provider,
    ProviderDetails,
)
from .......plugins.module_utils._core.resources.allocations import (
    check_generation,
    describe_allocation,
    describe_providers,
    find_unknown_names,
    remove_resources,
    set_resources,
)

CONSUMER = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"
HERE = "0a000000-0000-4000-8000-000000000001"
CHILD = "0b000000-0000-4000-8000-000000000002"
UNLISTED = "0c000000-0000-4000-8000-000000000003"
PROVIDERS = {
    HERE: Provider(HERE, "compute-1", 1, HERE, None),
    CHILD: Provider(CHILD, "{{ compute-1 }}_pci", 1, HERE, HERE),
}
HELD = Allocation(
    CONSUMER, 4, "project", "user", None, {CHILD: {"VF": 1}, HERE: {"VCPU": 2, "DISK_GB": 1}}, 60
)
NOTHING = Allocation(CONSUMER, None, None, None, None, {}, None)


ONE = {"compute-1": {"VCPU": 1}}


def _params(**options: t.Any) -> dict[str, t.Any]:
    unset = dict.fromkeys(
        ("resources", "project", "user", "consumer_type", "resource_provider", "resource_classes")
    )
    return {**unset, **options}


def _set(current: Allocation, resources: t.Any, **options: t.Any) -> Allocation:
    return set_resources(current, _params(resources=resources, **options), PROVIDERS)


def test_present_replaces_all_allocations() -> None:
    assert _set(HELD, ONE) == d.replace(HELD, resources={HERE: {"VCPU": 1}})


@pytest.mark.parametrize(
    ("name", "uuid"),
    [
        ("compute-1", HERE),
        (HERE, HERE),
        (HERE.upper(), HERE),
        (HERE.replace("-", ""), HERE),
        ("{{ compute-1 }}_pci", CHILD),
    ],
)
def test_provider_is_named_by_name_or_by_uuid_in_any_spelling(name: str, uuid: str) -> None:
    assert set(_set(HELD, {name: {"VCPU": 1}}).resources) == {uuid}


@pytest.mark.parametrize("amount", [2, "2"])
def test_amounts_may_be_numbers_or_text_from_jinja(amount: t.Any) -> None:
    assert _set(HELD, {"compute-1": {"VCPU": amount}}).resources == {HERE: {"VCPU": 2}}


@pytest.mark.parametrize(
    "share",
    [
        {"VCPU": "many"},
        {"VCPU": "2.5"},
        {"VCPU": None},
        {"VCPU": [2]},
        ["VCPU"],
        None,
        "VCPU",
        {"VCPU": 2.5},
        {"VCPU": True},
    ],
    ids=repr,
)
def test_amounts_that_are_not_whole_numbers_are_refused(share: t.Any) -> None:
    with pytest.raises(InvalidInput, match="compute-1 must be whole"):
        _set(HELD, {"compute-1": share})


@pytest.mark.parametrize(
    ("current", "options", "said"),
    [
        (HELD, {"resources": None}, "state=absent"),
        (HELD, {"resources": {}}, "state=absent"),
        (HELD, {"resources": {UNLISTED: {"VCPU": 1}}}, UNLISTED),
        (HELD, {"resources": {"compute-9": {"VCPU": 1}}}, "'compute-9'"),
        (HELD, {"resources": {**ONE, HERE: {"VCPU": 2}}}, "twice"),
        (HELD, {"resources": ONE, "resource_provider": ["compute-1"]}, "state=present"),
        (HELD, {"resources": ONE, "resource_classes": ["VCPU"]}, "state=present"),
        (NOTHING, {"resources": ONE}, "project and user"),
        (NOTHING, {"resources": ONE, "project": "project"}, "project and user"),
        (NOTHING, {"resources": ONE, "user": "user"}, "project and user"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(
    current: Allocation, options: dict[str, t.Any], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        _set(current, **options)


def test_new_consumer_is_created_as_requested() -> None:
    wanted = _set(NOTHING, ONE, project="p", user="u", consumer_type="INSTANCE")

    assert wanted == Allocation(CONSUMER, None, "p", "u", "INSTANCE", {HERE: {"VCPU": 1}}, None)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("project", "user", "INSTANCE")),
        ({"project": "p"}, ("p", "user", "INSTANCE")),
        ({"user": "u"}, ("project", "u", "INSTANCE")),
        ({"consumer_type": "CONTAINER"}, ("project", "user", "CONTAINER")),
    ],
)
def test_owner_and_type_change_only_when_given(
    given: dict[str, str], expected: tuple[str, ...]
) -> None:
    wanted = _set(d.replace(HELD, type="INSTANCE"), ONE, **given)

    assert (wanted.project, wanted.user, wanted.type) == expected


@pytest.mark.parametrize(
    ("wish", "left"),
    [
        ({}, {}),
        ({"resource_provider": ["compute-1"]}, {CHILD: {"VF": 1}}),
        ({"resource_provider": [CHILD.upper()]}, {HERE: {"VCPU": 2, "DISK_GB": 1}}),
        ({"resource_provider": ["compute-1", CHILD]}, {}),
        ({"resource_provider": [UNLISTED]}, dict(HELD.resources)),
        ({"resource_provider": []}, dict(HELD.resources)),
        ({"resource_classes": ["VCPU"]}, {CHILD: {"VF": 1}, HERE: {"DISK_GB": 1}}),
        ({"resource_classes": ["VF"]}, {HERE: {"VCPU": 2, "DISK_GB": 1}}),
        ({"resource_classes": []}, dict(HELD.resources)),
        (
            {"resource_provider": ["compute-1"], "resource_classes": ["VCPU", "VF"]},
            {CHILD: {"VF": 1}, HERE: {"DISK_GB": 1}},
        ),
    ],
    ids=str,
)
def test_absent_removes_what_is_named_and_keeps_the_rest(
    wish: dict[str, t.Any], left: dict[str, t.Any]
) -> None:
    assert remove_resources(HELD, _params(**wish), PROVIDERS) == d.replace(HELD, resources=left)


def test_absent_of_an_unknown_consumer_does_nothing() -> None:
    assert remove_resources(NOTHING, _params(), PROVIDERS) == NOTHING


def test_absent_with_an_unknown_provider_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'compute-9'"):
        remove_resources(HELD, _params(resource_provider=["compute-9"]), PROVIDERS)


@pytest.mark.parametrize("generation", [None, 4])
def test_expected_generation_is_accepted(generation: int | None) -> None:
    check_generation(HELD, generation)


@pytest.mark.parametrize(
    ("current", "expected", "said"),
    [(HELD, 0, "4"), (HELD, 3, "4"), (HELD, 5, "4"), (NOTHING, 4, "none")],
)
def test_unexpected_generation_is_named_with_that_of_the_consumer(
    current: Allocation, expected: int, said: str
) -> None:
    with pytest.raises(AllocationConflict, match=rf"generation {expected}\b.*has {said}\b"):
        check_generation(current, expected)


def test_allocation_is_described_with_names_and_root_uuids() -> None:
    allocation = d.replace(HELD, resources={UNLISTED: {"VCPU": 1}, **HELD.resources})

    here = {"uuid": HERE, "name": "compute-1", "root": HERE}
    child = {"uuid": CHILD, "name": "{{ compute-1 }}_pci", "root": HERE}
    assert describe_allocation(allocation, PROVIDERS) == {
        "consumer": CONSUMER,
        "generation": 4,
        "type": None,
        "project": "project",
        "user": "user",
        "age": 60,
        "providers": [
            {**here, "resources": {"VCPU": 2, "DISK_GB": 1}},
            {**child, "resources": {"VF": 1}},
            {"uuid": UNLISTED, "name": None, "root": None, "resources": {"VCPU": 1}},
        ],
    }


# Providers

GRANDCHILD = "0c000000-0000-4000-8000-000000000003"
POOL = "0d000000-0000-4000-8000-000000000004"
TREES = {
    GRANDCHILD: Provider(GRANDCHILD, "a port", 3, HERE, CHILD),
    POOL: Provider(POOL, "pool", 1, POOL, None, sharing=True),
    CHILD: Provider(CHILD, "{{ compute-1 }}_pci", 2, HERE, HERE),
    HERE: Provider(HERE, "compute-1", 7, HERE, None),
}
BARE = dict.fromkeys(TREES, ProviderDetails())
FULL = ProviderDetails(
    {"VCPU": Inventory(4, 1, 1, 4, 2, 2.0), "DISK_GB": Inventory(10, 0, 1, 10, 1, 1.0)},
    {"VCPU": 2, "DISK_GB": 11},
    frozenset({"COMPUTE_NODE", "COMPUTE_ACCELERATORS"}),
    frozenset({POOL, HERE}),
)


def test_tree_is_listed_from_its_root_down() -> None:
    names = [provider["name"] for provider in describe_providers(TREES, BARE, ())]

    assert names == ["compute-1", "{{ compute-1 }}_pci", "a port", "pool"]


def test_provider_deleted_meanwhile_is_omitted() -> None:
    left = {uuid: ProviderDetails() for uuid in TREES if uuid != CHILD}

    shown = [provider["uuid"] for provider in describe_providers(TREES, left, ())]
    assert shown == [HERE, GRANDCHILD, POOL]


def test_provider_without_parts_shows_its_place_in_the_tree() -> None:
    assert describe_providers({CHILD: TREES[CHILD]}, BARE, ()) == [
        {
            "uuid": CHILD,
            "name": "{{ compute-1 }}_pci",
            "generation": 2,
            "root": HERE,
            "parent": HERE,
            "sharing": False,
        }
    ]


def test_all_parts_are_shown() -> None:
    (provider,) = describe_providers({HERE: TREES[HERE]}, {HERE: FULL}, PARTS)

    assert provider["inventories"]["VCPU"] == {**d.asdict(FULL.inventories["VCPU"]), "capacity": 6}
    assert list(provider["inventories"]) == ["DISK_GB", "VCPU"]
    assert provider["usages"] == {"DISK_GB": 11, "VCPU": 2}
    assert provider["free"] == {"DISK_GB": -1, "VCPU": 4}
    assert provider["traits"] == ["COMPUTE_ACCELERATORS", "COMPUTE_NODE"]
    assert provider["aggregates"] == [HERE, POOL]


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        (["traits"], {"traits"}),
        (["usages", "aggregates"], {"usages", "aggregates"}),
        (["inventories"], {"inventories"}),
        (["usages", "inventories"], {"usages", "inventories", "free"}),
    ],
)
def test_only_parts_that_were_read_are_shown(parts: list[str], shown: set[str]) -> None:
    (bare,) = describe_providers({HERE: TREES[HERE]}, {HERE: FULL}, ())
    (provider,) = describe_providers({HERE: TREES[HERE]}, {HERE: FULL}, parts)

    assert set(provider) - set(bare) == shown


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ([], []),
        (["compute-1", POOL, HERE.upper(), CHILD.replace("-", ""), "a port"], []),
        (["compute-2", "compute-1", "COMPUTE-1"], ["compute-2", "COMPUTE-1"]),
        (["ffffffff-0000-4000-8000-000000000000"], ["ffffffff-0000-4000-8000-000000000000"]),
    ],
)
def test_unknown_names_are_named(wanted: list[str], said: t.Any) -> None:
    assert find_unknown_names(wanted, TREES) == said
