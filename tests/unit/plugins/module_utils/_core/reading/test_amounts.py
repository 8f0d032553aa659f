# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which servers are looked up for their amounts, and of how many the listings say enough."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._core.facts.listings_index import (
    ListingsIndex,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.snapshot import (
    ListedAmounts,
    Reading,
)
from ansible_collections.osops.placement.plugins.module_utils._core.reading.candidates import (
    AmountNominator,
    HostChoice,
    choose_hosts_for_server_details,
    find_candidates,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.fleet import Fleet
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.world import (
    CLAIM,
    FLAVOR,
    answer,
)

VGPU = d.replace(FLAVOR, extra_specs={"resources:VGPU": "1"})
PCI = d.replace(FLAVOR, extra_specs={"pci_passthrough:alias": "gpu:1"})
BOOTED = {"image": None, "image_properties": None, "volumes": ("v",)}


@pytest.fixture(name="fleet")
def _fleet() -> Fleet:
    return Fleet()


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
    candidates, listed = _nominate(fleet, kinds=("wrong_amount",))

    assert candidates == sorted([booted, nested])
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
