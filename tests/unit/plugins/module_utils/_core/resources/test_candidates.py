"""The request to Placement, and how its answer becomes the reason that an operator reads.

The host's own figures are used for it, too.
"""

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
from .......plugins.module_utils._core.resources.candidates import (
    HostTree,
    ResourceRequest,
    build_query,
    describe_all_hosts,
    describe_fitting_host,
    describe_unfit_host,
    list_groupings,
    parse_request,
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
    details = {globals()[name.upper()]: given for name, given in known.items()}
    return describe_unfit_host(wanted, HostTree(ROOT, PROVIDERS, details))


def _causes(answer: dict[str, t.Any]) -> str:
    return t.cast("str", answer["reason"]).partition(": ")[2]


def _offered(
    *candidates: dict[str, dict[str, int]], traits: frozenset[str] = frozenset()
) -> AllocationCandidates:
    classes = {cls for candidate in candidates for share in candidate.values() for cls in share}
    capacity, used = dict.fromkeys(classes, 9), dict.fromkeys(classes, 1)
    summaries = {
        uuid: ProviderSummary(provider.root, traits, capacity, used)
        for uuid, provider in PROVIDERS.items()
    }
    return AllocationCandidates(candidates, summaries)


def test_required_and_forbidden_traits_are_distinguished_by_their_mark() -> None:
    traits, aggregates = ["B", "!C", "A"], [AGGREGATE.upper()]
    wanted = parse_request(
        _options(resources={"VCPU": "2"}, required=traits, member_of=aggregates, limit=5)
    )

    assert wanted == ResourceRequest(
        {"VCPU": 2}, frozenset("AB"), frozenset("C"), frozenset({AGGREGATE}), 5
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"resources": {}}, "resources is empty"),
        ({"resources": {"VCPU": "many"}}, "resources .* whole numbers"),
        ({"member_of": ["rack-1"]}, "member_of 'rack-1'"),
        ({"limit": 0}, "limit .* 0"),
    ],
)
def test_invalid_request_is_refused(options: dict[str, t.Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        parse_request(_options(**options))


EVERYTHING = ResourceRequest(
    {"VCPU": 2, "DISK_GB": 5, "VGPU": 1}, frozenset("TU"), frozenset("V"), frozenset({AGGREGATE}), 7
)
IN_RACK = {"member_of": f"in:{AGGREGATE}"}


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
            EVERYTHING,
            None,
            {},
            {"resources": "VCPU:2,DISK_GB:5,VGPU:1", "required": "T,U,!V", **IN_RACK, "limit": "7"},
        ),
        (
            d.replace(EVERYTHING, member_of=frozenset(), limit=None),
            ROOT,
            {"DISK_GB": frozenset("U")},
            {"resources": "VCPU:2,VGPU:1", "required": "T,!V", "in_tree": HOST}
            | {"resources1": "DISK_GB:5", "required1": "U,!V"},
        ),
        (
            d.replace(EVERYTHING, required=frozenset(), forbidden=frozenset(), limit=None),
            ROOT,
            {"VGPU": frozenset(), "DISK_GB": frozenset()},
            {"resources": "VCPU:2", **IN_RACK, "in_tree": HOST, "group_policy": "none"}
            | {"resources1": "DISK_GB:5", "member_of1": f"in:{AGGREGATE}"}
            | {"resources2": "VGPU:1", "member_of2": f"in:{AGGREGATE}"},
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


SSD = "STORAGE_DISK_SSD"
SSD_POOL = _having("DISK_GB", _inventory(), traits=SSD)
BOTH_POOL = _having("DISK_GB", _inventory(), traits="BOTH")


@pytest.mark.parametrize(
    ("resources", "required", "elsewhere", "ways"),
    [
        ("VCPU DISK_GB", "", [], []),
        ("VCPU DISK_GB", "", [_having("IPV4_ADDRESS", _inventory())], []),
        ("VCPU DISK_GB", "", [SSD_POOL], [{"DISK_GB": ""}]),
        ("VCPU DISK_GB", "COMPUTE_NODE", [SSD_POOL], [{"DISK_GB": ""}]),
        ("VCPU DISK_GB", f"COMPUTE_NODE {SSD}", [SSD_POOL], [{"DISK_GB": SSD}]),
        ("VCPU DISK_GB", "NOBODY_HAS_IT", [SSD_POOL], [{"DISK_GB": ""}]),
        ("VCPU DISK_GB", "BOTH", [BOTH_POOL], [{"DISK_GB": ""}, {"DISK_GB": "BOTH"}]),
        (
            "VCPU DISK_GB VGPU",
            "",
            [SSD_POOL, _having("VGPU", _inventory())],
            [{"DISK_GB": "", "VGPU": ""}],
        ),
        ("DISK_GB VCPU", "", [SSD_POOL, _having("VCPU", _inventory())], [{"DISK_GB": ""}]),
        ("DISK_GB", "", [SSD_POOL], []),
        ("VCPU", "", [_having("VCPU", _inventory())], []),
    ],
)
def test_shared_resources_are_queried_separately(
    resources: str, required: str, elsewhere: list[ProviderDetails], ways: list[dict[str, str]]
) -> None:
    wanted = ResourceRequest(dict.fromkeys(resources.split(), 1), frozenset(required.split()))
    own = [_having("VCPU", _inventory(), traits="COMPUTE_NODE BOTH")]

    found = list_groupings(wanted, own, elsewhere)

    assert found == [
        {cls: frozenset(traits.split()) for cls, traits in groups.items()} for groups in ways
    ]


@pytest.mark.parametrize(
    ("asked", "inventory", "used", "violates", "said"),
    [
        (5, _inventory(), 8, ["free"], ["2 of 10 VCPU"]),
        (5, _inventory(), 12, ["free"], ["0 of 10 VCPU"]),
        (5, _inventory(reserved=6), 0, ["free"], ["4 of 4 VCPU"]),
        (21, _inventory(allocation_ratio=2.0), 0, ["free"], ["20 of 20 VCPU"]),
        (5, _inventory(max_unit=4), 0, ["max_unit"], ["at most 4 VCPU"]),
        (5, _inventory(min_unit=6), 0, ["min_unit"], ["at least 6 VCPU"]),
        (5, _inventory(step_size=2), 0, ["step_size"], ["multiple of 2 VCPU"]),
        (
            11,
            _inventory(max_unit=4, step_size=2),
            0,
            ["free", "max_unit", "step_size"],
            ["10 of 10 VCPU", "at most 4 VCPU", "multiple of 2 VCPU"],
        ),
    ],
)
def test_unavailable_amount_is_explained_by_the_violated_limit(
    asked: int, inventory: Inventory, used: int, violates: list[str], said: list[str]
) -> None:
    answer = _lacking(ResourceRequest({"VCPU": asked}), host=_having("VCPU", inventory, used))
    causes = _causes(answer).split(";")

    assert len(causes) == len(said)
    assert all(part in cause for part, cause in zip(said, causes, strict=True))
    assert answer["lacking"] == [
        {
            **d.asdict(inventory),
            "resource_class": "VCPU",
            "asked": asked,
            "violates": violates,
            "uuid": HOST,
            "name": "compute-1",
            "capacity": inventory.capacity,
            "used": used,
            "free": inventory.capacity - used,
        }
    ]


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
    shown = [entry[name] for name in ("resource_class", "violates", "uuid", "total", "free")]
    assert shown == ["VGPU", ["inventory"], None, None, None]
    assert "no VGPU" in _causes(answer)


def test_reason_names_the_provider_with_the_most_free_capacity() -> None:
    answer = _lacking(
        ResourceRequest({"CUSTOM_PCI": 4}),
        child=_having("CUSTOM_PCI", _inventory(4), 3),
        other=_having("CUSTOM_PCI", _inventory(4), 2),
    )

    assert [entry["name"] for entry in answer["lacking"]] == ["compute-1_pci", "compute-1_nic"]
    assert "2 of 4" in _causes(answer) and "compute-1_nic" in _causes(answer)


def test_amount_available_on_one_of_several_providers_is_not_lacking() -> None:
    answer = _lacking(
        ResourceRequest({"VGPU": 1, "CUSTOM_PCI": 4}),
        child=_having("CUSTOM_PCI", _inventory(4), 4),
        other=_having("CUSTOM_PCI", _inventory(4), 0),
    )

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
    assert all(f"{trait} is missing" in answer["reason"] for trait in missing)
    assert all(f"{trait} is forbidden" in answer["reason"] for trait in clashing)


def test_forbidden_trait_is_ignored_where_another_provider_has_the_class() -> None:
    wanted = ResourceRequest({"CUSTOM_NIC": 1, "VGPU": 1}, forbidden=frozenset({"HW_NIC_SRIOV"}))

    answer = _lacking(wanted, child=NIC, other=_having("CUSTOM_NIC", _inventory()))

    assert answer["forbidden_traits"] == [] and "HW_NIC_SRIOV" not in answer["reason"]


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

    assert ("aggregates" in _lacking(wanted, host=host, child=child)["reason"]) == outside


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
    assert ("Nova would not" in answer["reason"]) == (not forbidden)
    assert ("COMPUTE_STATUS_DISABLED is forbidden" in answer["reason"]) == bool(forbidden)


ON_HOST = {HOST: {"VCPU": 1}}
ON_POOL = {HOST: {"MEMORY_MB": 1}, POOL: {"VCPU": 1}}
ENABLED = frozenset[str]()


@pytest.mark.parametrize(
    ("candidates", "traits", "said"),
    [
        ([ON_HOST], ENABLED, []),
        ([ON_HOST], DISABLED, ["disabled"]),
        ([ON_POOL], ENABLED, ["sharing", "pool-1"]),
        ([ON_HOST, ON_POOL], ENABLED, []),
    ],
)
def test_fitting_host_is_reported_with_the_view_of_nova(
    candidates: t.Any, traits: frozenset[str], said: list[str]
) -> None:
    offered = _offered(*candidates, traits=traits)
    answer = describe_fitting_host(ResourceRequest({"VCPU": 1}), ROOT, offered, PROVIDERS)

    assert (answer["fits"], answer["disabled"]) == (True, bool(traits))
    assert (answer["lacking"], answer["missing_traits"], answer["forbidden_traits"]) == ([], [], [])
    words = ("compute-1 has room for 1 VCPU", "disabled", "sharing", "pool-1")
    assert [word for word in words if word in answer["reason"]] == [words[0], *said]


def test_candidate_shows_its_host_and_the_amounts_per_provider() -> None:
    (candidate,) = describe_fitting_host(
        ResourceRequest({}), ROOT, _offered({POOL: {"DISK_GB": 5}, HOST: {"VCPU": 1}}), PROVIDERS
    )["candidates"]

    host = {"uuid": HOST, "name": "compute-1", "root": HOST, "resources": {"VCPU": 1}}
    pool = {"uuid": POOL, "name": "pool-1", "root": POOL, "resources": {"DISK_GB": 5}}
    assert candidate == {
        "root": HOST,
        "root_name": "compute-1",
        "disabled": False,
        "providers": [
            {**host, "capacity": {"VCPU": 9}, "used": {"VCPU": 1}},
            {**pool, "capacity": {"DISK_GB": 9}, "used": {"DISK_GB": 1}},
        ],
    }


@pytest.mark.parametrize(
    ("candidates", "traits", "said"),
    [
        ([], ENABLED, ["no candidate"]),
        ([ON_HOST], ENABLED, ["1 candidate"]),
        ([ON_HOST], DISABLED, ["1 candidate", "1 of them has"]),
        ([ON_HOST, {CHILD: {"VCPU": 1}}], DISABLED, ["2 candidates", "2 of them have"]),
    ],
)
def test_candidates_are_counted_without_a_host(
    candidates: t.Any, traits: frozenset[str], said: list[str]
) -> None:
    offered = _offered(*candidates, traits=traits)
    answer = describe_all_hosts(ResourceRequest({"VCPU": 1}), offered, PROVIDERS)

    assert answer["fits"] == bool(candidates)
    assert all(f" {words} " in answer["reason"] for words in said)
    assert ("disabled" in answer["reason"]) == bool(traits)


def test_candidates_are_ordered_by_name_even_with_an_unknown_provider() -> None:
    offered = _offered({POOL: {"VCPU": 1}}, {HOST: {"VCPU": 1}})

    known = describe_all_hosts(ResourceRequest({"VCPU": 1}), offered, PROVIDERS)["candidates"]
    unknown = describe_all_hosts(ResourceRequest({"VCPU": 1}), offered, {HOST: ROOT})["candidates"]

    assert [candidate["root_name"] for candidate in known] == ["compute-1", "pool-1"]
    assert [(candidate["root"], candidate["root_name"]) for candidate in unknown] == [
        (POOL, None),
        (HOST, "compute-1"),
    ]
