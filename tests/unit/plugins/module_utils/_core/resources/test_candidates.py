"""The request to Placement, and how its answer becomes the reason that an operator reads.

The host's own figures are used for it, too.
"""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.models.placement import (
    AllocationCandidates,
    Inventory,
    Provider,
    ProviderDetails,
    ProviderSummary,
)
from .......plugins.module_utils._core.resources.candidate_requests import (
    ResourceRequest,
    build_query,
    list_groupings,
    parse_request,
)
from .......plugins.module_utils._core.resources.candidates import (
    HostTree,
    describe_all_hosts,
    describe_fitting_host,
    describe_unfit_host,
)

HOST = "0a000000-0000-4000-8000-000000000001"
CHILD = "0b000000-0000-4000-8000-000000000002"
OTHER = "0c000000-0000-4000-8000-000000000003"
POOL = "0d000000-0000-4000-8000-000000000004"
AGGREGATE = "0e000000-0000-4000-8000-000000000005"
ROOT = Provider(HOST, "compute-1", 1, HOST, None)
PROVIDERS = {
    HOST: ROOT,
    CHILD: Provider(CHILD, "compute-1_pci", 1, HOST, HOST),
    OTHER: Provider(OTHER, "compute-1_nic", 1, HOST, HOST),
    POOL: Provider(POOL, "pool-1", 1, POOL, None, sharing=True),
}
DISABLED = frozenset({"COMPUTE_STATUS_DISABLED"})


def _options(**given: t.Any) -> dict[str, t.Any]:
    return {"resources": {"VCPU": 1}, **dict.fromkeys(("required", "member_of", "limit")), **given}


def _inventory(total: int = 10, **limits: t.Any) -> Inventory:
    return d.replace(Inventory(total, 0, 1, 2**31 - 1, 1, 1.0), **limits)


def _having(
    cls: str, inventory: Inventory, used: int = 0, traits: str = "", aggregates: str = ""
) -> ProviderDetails:
    return ProviderDetails(
        {cls: inventory}, {cls: used}, frozenset(traits.split()), frozenset(aggregates.split())
    )


def _lacking(wanted: ResourceRequest, **known: ProviderDetails) -> dict[str, t.Any]:
    """Return the reasons for a host whose providers, by the names above, have these details."""
    return describe_unfit_host(
        wanted,
        HostTree(
            ROOT, PROVIDERS, {globals()[name.upper()]: details for name, details in known.items()}
        ),
    )


def _causes(answer: dict[str, t.Any]) -> str:
    return t.cast("str", answer["reason"]).partition(": ")[2]


def _offered(
    *allocations_by_consumer: dict[str, dict[str, int]], traits: frozenset[str] = frozenset()
) -> AllocationCandidates:
    figures = {
        cls: 9
        for allocations in allocations_by_consumer
        for share in allocations.values()
        for cls in share
    }
    return AllocationCandidates(
        allocations_by_consumer,
        {
            uuid: ProviderSummary(provider.root, traits, figures, dict.fromkeys(figures, 1))
            for uuid, provider in PROVIDERS.items()
        },
    )


def test_required_and_forbidden_traits_are_distinguished_by_their_mark() -> None:
    wanted = parse_request(
        _options(
            resources={"VCPU": "2"},
            required=["B", "!C", "A"],
            member_of=[AGGREGATE.upper()],
            limit=5,
        )
    )

    assert wanted == ResourceRequest(
        {"VCPU": 2}, frozenset("AB"), frozenset("C"), frozenset({AGGREGATE}), 5
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"resources": {}}, "resources is empty"),
        ({"resources": {"VCPU": "many"}}, "resources must be whole numbers by resource class"),
        ({"member_of": ["rack-1"]}, "member_of 'rack-1' is not a valid UUID"),
        ({"limit": 0}, "limit must be 1 or more, but is 0"),
    ],
)
def test_invalid_request_is_refused(options: dict[str, t.Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        parse_request(_options(**options))


WANTED = ResourceRequest(
    {"VCPU": 2, "DISK_GB": 5, "VGPU": 1}, frozenset("TU"), frozenset("V"), frozenset({AGGREGATE}), 7
)


@pytest.mark.parametrize(
    ("wanted", "root", "groups", "parameters"),
    [
        (ResourceRequest({"VCPU": 2}), None, {}, {"resources": "VCPU:2"}),
        (
            ResourceRequest({"VCPU": 2, "DISK_GB": 5}),
            ROOT,
            {},
            {"resources": "VCPU:2,DISK_GB:5", "in_tree": HOST},
        ),
        (
            WANTED,
            None,
            {},
            {
                "resources": "VCPU:2,DISK_GB:5,VGPU:1",
                "required": "T,U,!V",
                "member_of": f"in:{AGGREGATE}",
                "limit": "7",
            },
        ),
        (
            d.replace(WANTED, member_of=frozenset(), limit=None),
            ROOT,
            {"DISK_GB": frozenset("U")},
            {
                "resources": "VCPU:2,VGPU:1",
                "required": "T,!V",
                "in_tree": HOST,
                "resources1": "DISK_GB:5",
                "required1": "U,!V",
            },
        ),
        (
            ResourceRequest({"VCPU": 2, "VGPU": 1, "DISK_GB": 5}, member_of=frozenset({AGGREGATE})),
            ROOT,
            {"VGPU": frozenset(), "DISK_GB": frozenset()},
            {
                "resources": "VCPU:2",
                "member_of": f"in:{AGGREGATE}",
                "in_tree": HOST,
                "resources1": "DISK_GB:5",
                "member_of1": f"in:{AGGREGATE}",
                "resources2": "VGPU:1",
                "member_of2": f"in:{AGGREGATE}",
                "group_policy": "none",
            },
        ),
    ],
)
def test_request_is_sent_in_the_form_of_the_api(
    wanted: ResourceRequest,
    root: Provider | None,
    groups: dict[str, frozenset[str]],
    parameters: dict[str, str],
) -> None:
    assert build_query(wanted, root, groups) == parameters


SSD_POOL = _having("DISK_GB", _inventory(), traits="STORAGE_DISK_SSD")


@pytest.mark.parametrize(
    ("resources", "required", "elsewhere", "ways"),
    [
        (("VCPU", "DISK_GB"), "", [], []),
        (("VCPU", "DISK_GB"), "", [_having("IPV4_ADDRESS", _inventory())], []),
        (("VCPU", "DISK_GB"), "", [SSD_POOL], [{"DISK_GB": ""}]),
        (("VCPU", "DISK_GB"), "COMPUTE_NODE", [SSD_POOL], [{"DISK_GB": ""}]),
        (
            ("VCPU", "DISK_GB"),
            "COMPUTE_NODE STORAGE_DISK_SSD",
            [SSD_POOL],
            [{"DISK_GB": "STORAGE_DISK_SSD"}],
        ),
        (("VCPU", "DISK_GB"), "NOBODY_HAS_IT", [SSD_POOL], [{"DISK_GB": ""}]),
        (
            ("VCPU", "DISK_GB"),
            "BOTH",
            [_having("DISK_GB", _inventory(), traits="BOTH")],
            [{"DISK_GB": ""}, {"DISK_GB": "BOTH"}],
        ),
        (
            ("VCPU", "DISK_GB", "VGPU"),
            "",
            [SSD_POOL, _having("VGPU", _inventory())],
            [{"DISK_GB": "", "VGPU": ""}],
        ),
        (("DISK_GB", "VCPU"), "", [SSD_POOL, _having("VCPU", _inventory())], [{"DISK_GB": ""}]),
        (("DISK_GB",), "", [SSD_POOL], []),
        (("VCPU",), "", [_having("VCPU", _inventory())], []),
    ],
)
def test_shared_resources_are_queried_separately(
    resources: tuple[str, ...],
    required: str,
    elsewhere: list[ProviderDetails],
    ways: list[dict[str, str]],
) -> None:
    wanted = ResourceRequest(dict.fromkeys(resources, 1), frozenset(required.split()))
    own = [_having("VCPU", _inventory(), traits="COMPUTE_NODE BOTH")]

    found = list_groupings(wanted, own, elsewhere)

    assert found == [
        {cls: frozenset(traits.split()) for cls, traits in groups.items()} for groups in ways
    ]


@pytest.mark.parametrize(
    ("asked", "inventory", "used", "violates", "said"),
    [
        (5, _inventory(), 8, ["free"], "2 of 10 VCPU are free."),
        (5, _inventory(), 12, ["free"], "0 of 10 VCPU are free."),
        (5, _inventory(reserved=6), 0, ["free"], "4 of 4 VCPU are free."),
        (21, _inventory(allocation_ratio=2.0), 0, ["free"], "20 of 20 VCPU are free."),
        (
            5,
            _inventory(max_unit=4),
            0,
            ["max_unit"],
            "an allocation must have at most 4 VCPU (max_unit).",
        ),
        (
            5,
            _inventory(min_unit=6),
            0,
            ["min_unit"],
            "an allocation must have at least 6 VCPU (min_unit).",
        ),
        (
            5,
            _inventory(step_size=2),
            0,
            ["step_size"],
            "an allocation must be a multiple of 2 VCPU (step_size).",
        ),
        (
            11,
            _inventory(max_unit=4, step_size=2),
            0,
            ["free", "max_unit", "step_size"],
            (
                "10 of 10 VCPU are free; an allocation must have at most 4 VCPU (max_unit); an "
                "allocation must be a multiple of 2 VCPU (step_size)."
            ),
        ),
    ],
)
def test_unavailable_amount_is_explained_by_the_violated_limit(
    asked: int, inventory: Inventory, used: int, violates: list[str], said: str
) -> None:
    answer = _lacking(ResourceRequest({"VCPU": asked}), host=_having("VCPU", inventory, used))

    (entry,) = answer["lacking"]
    assert (entry["violates"], _causes(answer)) == (violates, said)
    assert (entry["resource_class"], entry["asked"], entry["uuid"], entry["name"]) == (
        "VCPU",
        asked,
        HOST,
        "compute-1",
    )
    assert {field: entry[field] for field in d.asdict(inventory)} == d.asdict(inventory)
    assert (entry["capacity"], entry["used"], entry["free"]) == (
        inventory.capacity,
        used,
        inventory.capacity - used,
    )


def test_first_source_document_is_explained_with_its_own_figures() -> None:
    used = {"VCPU": 30, "MEMORY_MB": 741376, "DISK_GB": 1668}
    inventories = {
        "VCPU": _inventory(30),
        "MEMORY_MB": _inventory(772495, reserved=8192),
        "DISK_GB": _inventory(1760),
    }

    answer = _lacking(
        ResourceRequest({"VCPU": 30, "MEMORY_MB": 741376, "DISK_GB": 1638}),
        host=ProviderDetails(inventories, used),
    )

    assert not answer["fits"]
    assert answer["reason"] == (
        "compute-1 has no room for 30 VCPU, 741376 MEMORY_MB, 1638 DISK_GB: "
        "0 of 30 VCPU are free; 22927 of 764303 MEMORY_MB are free; 92 of 1760 DISK_GB are free."
    )


def test_class_without_a_provider_is_reported() -> None:
    answer = _lacking(ResourceRequest({"VCPU": 1, "VGPU": 1}), host=_having("VCPU", _inventory()))

    (entry,) = answer["lacking"]
    assert (
        entry["resource_class"],
        entry["violates"],
        entry["uuid"],
        entry["total"],
        entry["free"],
    ) == (
        "VGPU",
        ["inventory"],
        None,
        None,
        None,
    )
    assert _causes(answer) == "it has no VGPU."


def test_reason_names_the_provider_with_the_most_free_capacity() -> None:
    pci = ResourceRequest({"CUSTOM_PCI": 4})

    answer = _lacking(
        pci,
        child=_having("CUSTOM_PCI", _inventory(4), 3),
        other=_having("CUSTOM_PCI", _inventory(4), 2),
    )

    assert [entry["name"] for entry in answer["lacking"]] == ["compute-1_pci", "compute-1_nic"]
    assert (
        _causes(answer)
        == "2 of 4 CUSTOM_PCI are free on compute-1_nic, the most on any of 2 providers."
    )


def test_amount_available_on_one_of_several_providers_is_not_lacking() -> None:
    details = {
        "child": _having("CUSTOM_PCI", _inventory(4), 4),
        "other": _having("CUSTOM_PCI", _inventory(4), 0),
    }

    answer = _lacking(ResourceRequest({"VGPU": 1, "CUSTOM_PCI": 4}), **details)

    assert [entry["resource_class"] for entry in answer["lacking"]] == ["VGPU"]


ROOMY = _having("VCPU", _inventory(), traits="COMPUTE_NODE T", aggregates=AGGREGATE)
FULL = _having("VCPU", _inventory(), 10, traits="COMPUTE_NODE T")
NIC = _having("CUSTOM_NIC", _inventory(), traits="HW_NIC_SRIOV")


@pytest.mark.parametrize(
    ("required", "forbidden", "resources", "missing", "clashing"),
    [
        ("T HW_X", "", {"VCPU": 1}, ["HW_X"], []),
        ("HW_X A", "", {"VCPU": 1}, ["A", "HW_X"], []),
        ("HW_NIC_SRIOV", "", {"VCPU": 1}, ["HW_NIC_SRIOV"], []),
        ("HW_NIC_SRIOV HW_X", "", {"VCPU": 1, "CUSTOM_NIC": 1}, ["HW_X"], []),
        ("", "T HW_X", {"VCPU": 1}, [], ["T"]),
        ("", "T HW_NIC_SRIOV", {"VCPU": 1, "CUSTOM_NIC": 1}, [], ["HW_NIC_SRIOV", "T"]),
        ("HW_X", "T", {"VCPU": 1}, ["HW_X"], ["T"]),
    ],
)
@pytest.mark.parametrize("host", [ROOMY, FULL], ids=["roomy", "full"])
def test_missing_and_forbidden_traits_are_reported_with_and_without_free_capacity(
    host: ProviderDetails,
    required: str,
    forbidden: str,
    resources: dict[str, int],
    missing: list[str],
    clashing: list[str],
) -> None:
    answer = _lacking(
        ResourceRequest(resources, frozenset(required.split()), frozenset(forbidden.split())),
        host=host,
        child=NIC,
    )

    assert (answer["missing_traits"], answer["forbidden_traits"]) == (missing, clashing)
    assert bool(answer["lacking"]) == (host is FULL)
    assert all(f"trait {trait} is missing" in answer["reason"] for trait in missing)
    assert all(f"trait {trait} is forbidden, but set" in answer["reason"] for trait in clashing)


def test_forbidden_trait_is_ignored_where_another_provider_has_the_class() -> None:
    wanted = ResourceRequest({"CUSTOM_NIC": 1, "VGPU": 1}, forbidden=frozenset({"HW_NIC_SRIOV"}))

    answer = _lacking(wanted, child=NIC, other=_having("CUSTOM_NIC", _inventory()))

    assert (answer["forbidden_traits"], _causes(answer)) == ([], "it has no VGPU.")


@pytest.mark.parametrize(
    ("host", "child", "outside"),
    [
        (ROOMY, NIC, False),
        (FULL, NIC, True),
        (FULL, _having("CUSTOM_NIC", _inventory(), aggregates=AGGREGATE), False),
    ],
    ids=["root in it", "none in it", "child in it"],
)
def test_aggregates_of_a_root_include_its_tree(
    host: ProviderDetails, child: ProviderDetails, outside: bool
) -> None:
    wanted = ResourceRequest({"CUSTOM_NIC": 1, "VGPU": 1}, member_of=frozenset({AGGREGATE}))

    assert (
        "none of the requested aggregates" in _lacking(wanted, host=host, child=child)["reason"]
    ) == outside


def test_unexplained_refusal_is_reported_as_such() -> None:
    wanted = ResourceRequest({"CUSTOM_NIC": 10}, required=frozenset({"HW_NIC_SRIOV"}))

    answer = _lacking(wanted, child=NIC, other=_having("CUSTOM_NIC", _inventory()))

    assert (answer["lacking"], answer["missing_traits"], answer["forbidden_traits"]) == ([], [], [])
    assert "not together" in answer["reason"]


@pytest.mark.parametrize("forbidden", [frozenset[str](), DISABLED])
def test_disabled_compute_service_is_reported_once(forbidden: frozenset[str]) -> None:
    answer = _lacking(
        ResourceRequest({"VCPU": 1}, forbidden=forbidden), host=d.replace(FULL, traits=DISABLED)
    )

    assert answer["disabled"]
    assert ("Nova would not select it anyway" in answer["reason"]) == (not forbidden)
    assert ("trait COMPUTE_STATUS_DISABLED is forbidden, but set" in answer["reason"]) == bool(
        forbidden
    )


@pytest.mark.parametrize(
    ("allocations_by_consumer", "traits", "reason"),
    [
        ([{HOST: {"VCPU": 1}}], frozenset[str](), "compute-1 has room for 1 VCPU."),
        (
            [{HOST: {"VCPU": 1}}],
            DISABLED,
            (
                "compute-1 has room for 1 VCPU, but Nova does not select it, because its compute "
                "service is disabled."
            ),
        ),
        (
            [{HOST: {"MEMORY_MB": 1}, POOL: {"VCPU": 1}}],
            frozenset[str](),
            "compute-1 has room for 1 VCPU together with sharing provider pool-1, "
            "which Nova does not find if the request names the host.",
        ),
        (
            [{HOST: {"VCPU": 1}}, {HOST: {"MEMORY_MB": 1}, POOL: {"VCPU": 1}}],
            frozenset[str](),
            "compute-1 has room for 1 VCPU.",
        ),
    ],
)
def test_fitting_host_is_reported_with_the_view_of_nova(
    allocations_by_consumer: t.Any, traits: frozenset[str], reason: str
) -> None:
    answer = describe_fitting_host(
        ResourceRequest({"VCPU": 1}),
        ROOT,
        _offered(*allocations_by_consumer, traits=traits),
        PROVIDERS,
    )

    assert (answer["fits"], answer["disabled"], answer["reason"]) == (True, bool(traits), reason)
    assert (answer["lacking"], answer["missing_traits"], answer["forbidden_traits"]) == ([], [], [])


def test_candidate_shows_its_host_and_the_amounts_per_provider() -> None:
    (candidate,) = describe_fitting_host(
        ResourceRequest({}), ROOT, _offered({POOL: {"DISK_GB": 5}, HOST: {"VCPU": 1}}), PROVIDERS
    )["candidates"]

    assert candidate == {
        "root": HOST,
        "root_name": "compute-1",
        "disabled": False,
        "providers": [
            {
                "uuid": HOST,
                "name": "compute-1",
                "root": HOST,
                "resources": {"VCPU": 1},
                "capacity": {"VCPU": 9},
                "used": {"VCPU": 1},
            },
            {
                "uuid": POOL,
                "name": "pool-1",
                "root": POOL,
                "resources": {"DISK_GB": 5},
                "capacity": {"DISK_GB": 9},
                "used": {"DISK_GB": 1},
            },
        ],
    }


@pytest.mark.parametrize(
    ("allocations_by_consumer", "traits", "reason"),
    [
        (
            [],
            frozenset[str](),
            (
                "Placement offers no candidate for 1 VCPU: name a host in resource_provider to "
                "find out what is in the way."
            ),
        ),
        ([{HOST: {"VCPU": 1}}], frozenset[str](), "Placement offers 1 candidate for 1 VCPU."),
        (
            [{HOST: {"VCPU": 1}}],
            DISABLED,
            (
                "Placement offers 1 candidate for 1 VCPU, but 1 of them has a disabled compute "
                "service, so Nova does not select it."
            ),
        ),
        (
            [{HOST: {"VCPU": 1}}, {CHILD: {"VCPU": 1}}],
            DISABLED,
            (
                "Placement offers 2 candidates for 1 VCPU, but 2 of them have a disabled compute "
                "service, so Nova does not select them."
            ),
        ),
    ],
)
def test_candidates_are_counted_without_a_host(
    allocations_by_consumer: t.Any, traits: frozenset[str], reason: str
) -> None:
    answer = describe_all_hosts(
        ResourceRequest({"VCPU": 1}), _offered(*allocations_by_consumer, traits=traits), PROVIDERS
    )

    assert (answer["fits"], answer["reason"]) == (bool(allocations_by_consumer), reason)


def test_candidates_are_ordered_by_name_even_with_an_unknown_provider() -> None:
    offered = _offered({POOL: {"VCPU": 1}}, {HOST: {"VCPU": 1}})

    known = describe_all_hosts(ResourceRequest({"VCPU": 1}), offered, PROVIDERS)["candidates"]
    unknown = describe_all_hosts(ResourceRequest({"VCPU": 1}), offered, {HOST: ROOT})["candidates"]

    assert [candidate["root_name"] for candidate in known] == ["compute-1", "pool-1"]
    assert [(candidate["root"], candidate["root_name"]) for candidate in unknown] == [
        (POOL, None),
        (HOST, "compute-1"),
    ]
