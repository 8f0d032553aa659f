"""Which consumers and hosts are selected from the listings."""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._common.errors import InvalidInput
from .......plugins.module_utils._core.facts.index import ListingsIndex
from .......plugins.module_utils._core.models.nova import Service
from .......plugins.module_utils._core.models.placement import Allocation
from .......plugins.module_utils._core.models.snapshot import (
    NOT_ASKED,
    Answer,
    Evidence,
    ListedAmounts,
    Reading,
    Scope,
    Snapshot,
)
from .......plugins.module_utils._core.reading.candidates import (
    AmountNominator,
    HostChoice,
    check_named_consumers,
    choose_hosts_for_server_details,
    choose_nodes_for_server_listing,
    find_candidates,
    find_mismatched_nodes,
    sum_by_tree,
)
from ...fleet import Fleet
from ...world import CLAIM, FLAVOR, World, answer

# Candidates are all consumers that the listings do not show to be healthy, and no others


@pytest.fixture(name="fleet")
def _fleet() -> Fleet:
    return Fleet()


def test_servers_on_their_own_host_are_not_candidates(fleet: Fleet) -> None:
    assert find_candidates(fleet.read()) == []


def test_servers_on_no_host_or_two_hosts_are_candidates(fleet: Fleet) -> None:
    stranger = fleet.stranger(fleet.roots[0])
    elsewhere = fleet.server(fleet.roots[0], fleet.roots[1])
    both = fleet.server(fleet.roots[0], *fleet.roots[:2])
    nowhere = fleet.server(fleet.roots[0])

    assert find_candidates(fleet.read()) == sorted([stranger, elsewhere, both, nowhere])


def test_allocation_on_a_shared_pool_makes_no_candidate(fleet: Fleet) -> None:
    fleet.hold(fleet.guests[0], fleet.provider("pool", sharing=True), amounts={"DISK_GB": 9})

    assert find_candidates(fleet.read()) == []


def test_servers_with_bandwidth_are_candidates_if_the_kind_is_named(fleet: Fleet) -> None:
    """The listings do not show whether their ports request it."""
    bridge = fleet.provider("bridge", fleet.roots[0])
    fleet.hold(fleet.guests[0], bridge, amounts={"NET_BW_EGR_KILOBIT_PER_SEC": 1})
    device = fleet.provider("device", fleet.roots[1])
    fleet.hold(fleet.guests[1], device, amounts={"CUSTOM_VF": 1})

    assert find_candidates(fleet.read(kinds=("leaked_child",))) == []
    assert find_candidates(fleet.read(kinds=("leaked_port",))) == [fleet.guests[0]]


def test_neighbours_of_a_named_consumer_are_not_candidates(fleet: Fleet) -> None:
    """Its host was asked for its servers, and their allocations were not read."""
    named = fleet.guests[0]
    fleet.server(fleet.roots[0], fleet.roots[0])
    listings = fleet.listings(
        scope=Scope(consumers=(named,)),
        trees=(),
        allocations={named: fleet.allocations[named].resources},
    )

    assert fleet.roots[0] in choose_nodes_for_server_listing(listings)
    assert find_candidates(ListingsIndex(listings)) == [named]


@pytest.mark.parametrize(
    "scope", [{"hosts": ("compute-0",)}, {"consumers": ("anybody",)}, {"kinds": ("wrong_owner",)}]
)
def test_named_consumers_are_candidates(fleet: Fleet, scope: dict[str, t.Any]) -> None:
    assert find_candidates(fleet.read(**scope)) == sorted(
        {*fleet.guests, *scope.get("consumers", ())}
    )


def test_unlisted_servers_are_candidates_without_compute_nodes(fleet: Fleet) -> None:
    stranger = fleet.stranger(fleet.roots[0])
    index = ListingsIndex(fleet.listings(hypervisors=answer("GET", 500)))

    assert find_candidates(index, living=fleet.guests) == [stranger]


def test_candidates_on_silent_hosts_come_last_without_compute_nodes(fleet: Fleet) -> None:
    in_dead_cell, elsewhere = fleet.stranger(fleet.roots[0]), fleet.stranger(fleet.roots[1])
    silent = answer("GET", 200, (Service("nova-compute", "compute-0", "UNKNOWN", None),))
    index = ListingsIndex(fleet.listings(hypervisors=answer("GET", 500), services=silent))

    assert find_candidates(index, living=fleet.guests) == [elsewhere, in_dead_cell]


# Which hosts are asked for their servers, and who is a candidate because of what they answer


def test_a_glance_goes_to_hosts_whose_servers_hold_other_amounts_than_nova_compute_counts(
    fleet: Fleet,
) -> None:
    fleet.stranger(fleet.roots[0])
    assert choose_hosts_for_server_details(fleet.read()).hosts == ()
    fleet.hold(fleet.guests[1], fleet.roots[1], amounts={"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 1})

    assert choose_hosts_for_server_details(fleet.read()).hosts == ("compute-1",)
    assert choose_hosts_for_server_details(fleet.read(kinds=("deleted_server",))).hosts == ()
    assert find_candidates(fleet.read(), fleet.glances()) == sorted(
        [fleet.guests[1], *(set(fleet.allocations) - set(fleet.guests))]
    )


def test_a_server_without_an_allocation_does_not_hide_one_with_too_much(fleet: Fleet) -> None:
    """nova-compute counts both, and their sums are right."""
    root, double = fleet.roots[1], {name: 2 * amount for name, amount in CLAIM.items()}
    fleet.server(root)
    fleet.figures(root, double)
    fleet.hold(fleet.guests[1], root, amounts=double)

    assert choose_hosts_for_server_details(fleet.read()).hosts == ("compute-1",)
    assert fleet.guests[1] in find_candidates(fleet.read(), fleet.glances())


def test_a_glance_goes_to_hosts_whose_servers_hold_a_child(fleet: Fleet) -> None:
    fleet.hold(fleet.guests[2], fleet.provider("nic", fleet.roots[2]), amounts={"CUSTOM_VF": 1})

    assert choose_hosts_for_server_details(fleet.read()).hosts == ("compute-2",)
    assert find_candidates(fleet.read(), fleet.glances()) == [fleet.guests[2]]


def test_who_asked_for_more_than_a_plain_server_is_not_nominated_for_it(fleet: Fleet) -> None:
    fleet.hold(fleet.guests[2], fleet.provider("nic", fleet.roots[2]), amounts={"CUSTOM_VF": 1})
    special = d.replace(FLAVOR, extra_specs={"resources:CUSTOM_VF": "1"})
    fleet.servers[fleet.guests[2]] = d.replace(fleet.servers[fleet.guests[2]], flavor=special)

    assert find_candidates(fleet.read(), fleet.glances()) == []


def test_a_glance_tells_on_which_node_of_a_service_a_server_is() -> None:
    fleet = Fleet()
    nodes = [fleet.host(name, service="ironic") for name in ("node-1", "node-2")]
    right, wrong = fleet.server(nodes[0], nodes[0]), fleet.server(nodes[0], nodes[1])

    assert "ironic" in choose_hosts_for_server_details(fleet.read()).hosts
    assert find_candidates(fleet.read(), fleet.glances()) == [wrong]
    assert find_candidates(fleet.read()) == sorted([right, wrong])


def test_what_nova_compute_counts_on_the_host_of_an_orphan_is_no_reason_for_a_glance(
    fleet: Fleet,
) -> None:
    """Nor is a resize that waits to be confirmed, which nova-compute counts on both hosts."""
    here, there, _other = fleet.roots
    both = fleet.server(there, here, there)
    parked = fleet.server(there, there, status="VERIFY_RESIZE")
    fleet.migration(parked, here, there, "finished", here)
    fleet.migration(both, here, there, "confirmed", here)
    fleet.figures(there, {"VCPU": 3, "MEMORY_MB": 1536})
    fleet.figures(here, {"VCPU": 2, "MEMORY_MB": 1024})

    assert choose_hosts_for_server_details(fleet.read()).hosts == ()


# Which hosts use other amounts than Placement has allocated


def _find_mismatched(fleet: Fleet) -> list[str]:
    allocated = []
    for allocation in fleet.allocations.values():
        allocated.extend(allocation.resources.items())
    return find_mismatched_nodes(fleet.nodes, sum_by_tree(allocated, fleet.providers))


def test_figures_that_most_hosts_have_are_usual(fleet: Fleet) -> None:
    assert _find_mismatched(fleet) == []


@pytest.mark.parametrize(
    "amounts", [{"VCPU": 1, "MEMORY_MB": 512}, {"VCPU": 1}, {"PCPU": 1}, {"MEMORY_MB": 1}]
)
def test_a_claim_that_nova_compute_does_not_count_makes_a_host_odd(
    fleet: Fleet, amounts: dict[str, int]
) -> None:
    fleet.stranger(fleet.roots[1], amounts=amounts)

    assert _find_mismatched(fleet) == [fleet.roots[1]]


def test_a_claim_of_a_child_counts_for_its_host(fleet: Fleet) -> None:
    fleet.stranger(fleet.provider("numa-0", fleet.roots[1]), amounts={"VCPU": 1})

    assert _find_mismatched(fleet) == [fleet.roots[1]]


def test_what_figures_do_not_show(fleet: Fleet) -> None:
    """An orphan beside a missing claim of the same size.

    And claims of neither processors nor memory.
    """
    fleet.hold(fleet.uuid(), fleet.roots[0])
    del fleet.allocations[fleet.guests[0]]
    fleet.stranger(fleet.roots[1], amounts={"DISK_GB": 9, "CUSTOM_VF": 1})

    assert _find_mismatched(fleet) == []


@pytest.mark.parametrize("fields", [{"state": "down"}, {"used": {}}])
def test_a_host_that_does_not_report_is_odd(fleet: Fleet, fields: dict[str, t.Any]) -> None:
    fleet.nodes[fleet.roots[0]] = d.replace(fleet.nodes[fleet.roots[0]], **fields)

    assert _find_mismatched(fleet) == [fleet.roots[0]]


def test_where_no_difference_is_that_of_most_hosts_each_is_odd() -> None:
    fleet = Fleet(hosts=4)
    for root in fleet.roots[:2]:
        fleet.stranger(root)

    assert _find_mismatched(fleet) == fleet.roots


# Which servers are looked up for their amounts, and of how many the listings say enough


VGPU = d.replace(FLAVOR, extra_specs={"resources:VGPU": "1"})
PCI = d.replace(FLAVOR, extra_specs={"pci_passthrough:alias": "gpu:1"})
BOOTED = {"image": None, "image_properties": None, "volumes": ("v",)}


def _guest(fleet: Fleet, held: t.Mapping[str, int] = CLAIM, **fields: t.Any) -> str:
    """Add a server on the first host, and count it as nova-compute does."""
    return fleet.hold(fleet.server(fleet.roots[0], **fields), fleet.roots[0], amounts=held)


def _child(fleet: Fleet, server: str, cls: str) -> str:
    child = fleet.provider("child", fleet.roots[0])
    return fleet.hold(server, child, amounts={cls: 1})


def _nominate(fleet: Fleet, **scope: t.Any) -> tuple[list[str], ListedAmounts]:
    """Return the candidates and what is said of the others, with the details of all servers."""
    index = fleet.read(**scope)
    choice = choose_hosts_for_server_details(index)
    details = {uuid: row for uuid, row in fleet.servers.items() if row.host in choice.hosts}
    amounts = AmountNominator(index, details, choice, {})
    candidates = find_candidates(index, details, amounts=amounts)
    return candidates, amounts.summarize(candidates)


def test_agreeing_hosts_are_checked_by_their_sums(fleet: Fleet) -> None:
    assert _nominate(fleet) == ([], ListedAmounts(by_host=3))


def test_single_host_agrees_with_nobody() -> None:
    assert _nominate(Fleet(1)) == ([], ListedAmounts(unchecked={"not_compared": 1}))


def test_hosts_are_not_compared_for_other_kinds(fleet: Fleet) -> None:
    assert _nominate(fleet, kinds=("deleted_server",))[1].unchecked == {"not_compared": 3}


def test_servers_of_a_host_that_disagrees_are_compared_by_themselves(fleet: Fleet) -> None:
    wrong = _guest(fleet, {**CLAIM, "VCPU": 5})
    right = _guest(fleet)
    booted = _guest(fleet, {"VCPU": 1, "MEMORY_MB": 512}, **BOOTED)
    candidates, listed = _nominate(fleet)

    assert candidates == [wrong] and {right, booted}.isdisjoint(candidates)
    assert listed == ListedAmounts(
        by_server=2, by_host=2, unchecked={"not_compared": 1}, differing=(wrong,)
    )


def test_lost_child_is_found_where_the_listing_is_read_anyway(fleet: Fleet) -> None:
    _child(fleet, _guest(fleet, flavor=VGPU), "VGPU")
    lost = _guest(fleet, flavor=VGPU)
    assert _nominate(fleet)[0] == [lost]


def test_device_of_an_unknown_alias_is_not_looked_up_in_every_run(fleet: Fleet) -> None:
    server = _child(fleet, _guest(fleet, flavor=PCI), "CUSTOM_GPU")
    candidates, listed = _nominate(fleet)

    assert candidates == [] and listed.unchecked == {"pci_alias": 1}
    assert _nominate(fleet, kinds=("wrong_amount",))[0] == [server]


def test_every_server_is_compared_if_the_kind_is_named(fleet: Fleet) -> None:
    """Those that need more than a listing shows are looked up, the others are in order."""
    booted = _guest(fleet, {"VCPU": 1, "MEMORY_MB": 512}, **BOOTED)
    nested = _child(fleet, _guest(fleet, flavor=VGPU), "VGPU")
    alias = _guest(fleet, flavor=PCI)
    # The tree may have the class on a child only.
    on_root = _guest(fleet, {**CLAIM, "VGPU": 1}, flavor=VGPU)
    candidates, listed = _nominate(fleet, kinds=("wrong_amount",))

    assert candidates == sorted([booted, nested, on_root])
    assert alias not in candidates
    assert listed == ListedAmounts(by_server=3, unchecked={"pci_alias": 1})


def test_named_host_is_compared_by_its_listing(fleet: Fleet) -> None:
    wrong = _guest(fleet, {**CLAIM, "VCPU": 5})
    candidates, listed = _nominate(fleet, hosts=("compute-0",))

    # All are looked up; the listing says which of them need no more than that.
    assert wrong in candidates and listed.candidates == dict.fromkeys(fleet.guests, "")


def test_incremental_reading_compares_only_what_changed(fleet: Fleet) -> None:
    for root in fleet.roots:
        fleet.figures(root, CLAIM, running_vms=4)
    nodes = tuple(d.replace(node, servers=None) for node in fleet.nodes.values())
    listings = fleet.listings(reading=Reading("incremental"), hypervisors=answer("GET", 200, nodes))
    changed = {uuid: fleet.servers[uuid] for uuid in fleet.guests[:2]}
    amounts = AmountNominator(ListingsIndex(listings), changed, HostChoice(), {})

    assert amounts.summarize([fleet.guests[2]]) == ListedAmounts(
        by_server=2, unchecked={"unchanged": 9}
    )


# A named consumer of which there is nothing at all is most likely misspelt


UUID = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"
THERE = t.cast("t.Any", object())


def _answer(status: int, value: t.Any = None) -> Answer[t.Any]:
    return Answer("GET …", "2.68", status, "2026-01-01T00:00:00Z", value)


NOTHING = Evidence(
    UUID,
    _answer(200, Allocation(UUID, None, None, None, None, {}, None)),
    migrations=_answer(200, ()),
    server=_answer(404),
    deleted_listing=_answer(200, ()),
    actions=_answer(404),
    marker=_answer(400),
)


def read(evidence: Evidence, **parts: t.Any) -> Snapshot:
    snapshot = World().snapshot()
    scope = Scope(consumers=(UUID,))
    return d.replace(snapshot, scope=scope, evidence={UUID: evidence}, **parts)


def test_unknown_consumer_is_refused() -> None:
    with pytest.raises(InvalidInput, match=f"^consumers: .* knows {UUID}"):
        check_named_consumers(read(NOTHING), ())


@pytest.mark.parametrize(
    "known",
    [
        {"allocation": _answer(200, Allocation(UUID, 1, "p", "u", None, {"host": {"VCPU": 1}}, 5))},
        {"allocation": _answer(500)},
        {"server": _answer(200, THERE)},
        # A cell that is down.
        {"server": _answer(500)},
        {"server": _answer(403)},
        {"server": NOT_ASKED},
        {"deleted_listing": _answer(200, (THERE,))},
        {"deleted_listing": _answer(500)},
        {"deleted_listing": NOT_ASKED},
        {"actions": _answer(200, (THERE,))},
        {"migrations": _answer(200, (THERE,))},
        {"migrations": _answer(500)},
        {"marker": _answer(200, True)},
        {"marker": NOT_ASKED},
        {"rows": (_answer(200, ()), _answer(200, (UUID,)))},
        {"rows": (_answer(500),)},
    ],
    ids=lambda known: next(iter(known)),
)
def test_any_other_answer_is_enough(known: dict[str, t.Any]) -> None:
    check_named_consumers(read(d.replace(NOTHING, **known)), ())


def test_consumer_that_is_listed_or_was_seen_or_was_not_looked_up_is_accepted() -> None:
    check_named_consumers(read(NOTHING), {UUID})
    check_named_consumers(read(NOTHING, allocations={UUID: {"host": {"VCPU": 1}}}), ())
    check_named_consumers(d.replace(read(NOTHING), evidence={}), ())
