# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Candidates are all consumers that the listings do not show to be healthy, and no others."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._collector.nomination import (
    choose_hosts_for_server_details,
    choose_nodes_for_server_listing,
    find_candidates,
    find_mismatched_nodes,
    sum_by_tree,
)
from ansible_collections.osops.placement.plugins.module_utils._models.nova import Service
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Scope
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.world import (
    CLAIM,
    FLAVOR,
    World,
    answer,
)

if t.TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import Server
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Snapshot

RESERVED = 512


class Fleet(World):
    """Some hosts with a server each.

    The figures of nova-compute count exactly these servers.
    """

    def __init__(self, hosts: int = 3) -> None:
        super().__init__()
        self.roots = [self.host(f"compute-{number}") for number in range(hosts)]
        self.guests = [self.hold(self.server(root), root) for root in self.roots]
        for root in self.roots:
            self.figures(root, CLAIM)

    def figures(self, root: str, used: Mapping[str, int], **fields: t.Any) -> None:
        told = {"VCPU": used.get("VCPU", 0), "MEMORY_MB": used.get("MEMORY_MB", 0) + RESERVED}
        self.nodes[root] = d.replace(self.nodes[root], used=told, **fields)

    def read(self, **scope: t.Any) -> Snapshot:
        return self.snapshot(scope=Scope(**scope), candidates=(), evidence={})

    def glances(self) -> dict[str, Server]:
        return dict(self.servers)

    def odd(self) -> list[str]:
        claimed = sum_by_tree(
            (share for held in self.allocations.values() for share in held.resources.items()),
            self.providers,
        )
        return find_mismatched_nodes(self.nodes, claimed)


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


def test_neighbours_of_a_named_consumer_are_not_candidates(fleet: Fleet) -> None:
    """Its host was asked for its servers, and their allocations were not read."""
    named = fleet.guests[0]
    fleet.server(fleet.roots[0], fleet.roots[0])
    snapshot = d.replace(
        fleet.read(consumers=(named,)),
        trees=(),
        allocations={named: fleet.allocations[named].resources},
    )

    assert fleet.roots[0] in choose_nodes_for_server_listing(snapshot)
    assert find_candidates(snapshot) == [named]


@pytest.mark.parametrize(
    "scope", [{"hosts": ("compute-0",)}, {"consumers": ("anybody",)}, {"kinds": ("wrong_owner",)}]
)
def test_named_consumers_are_candidates(fleet: Fleet, scope: dict[str, t.Any]) -> None:
    assert find_candidates(fleet.read(**scope)) == sorted(
        {*fleet.guests, *scope.get("consumers", ())}
    )


def test_triage_makes_no_candidate_on_a_host_that_was_not_read(fleet: Fleet) -> None:
    fleet.stranger(fleet.roots[0])
    both = fleet.stranger(*fleet.roots[:2])
    snapshot = fleet.read(mode="triage")
    unasked = tuple(d.replace(node, servers=None) for node in snapshot.hypervisors.value or ())

    assert find_candidates(d.replace(snapshot, hypervisors=answer("GET", 200, unasked))) == [both]


def test_unlisted_servers_are_candidates_without_compute_nodes(fleet: Fleet) -> None:
    stranger = fleet.stranger(fleet.roots[0])
    snapshot = d.replace(fleet.read(), hypervisors=answer("GET", 500))

    assert find_candidates(snapshot, living=fleet.guests) == [stranger]


def test_candidates_on_silent_hosts_come_last_without_compute_nodes(fleet: Fleet) -> None:
    in_dead_cell, elsewhere = fleet.stranger(fleet.roots[0]), fleet.stranger(fleet.roots[1])
    silent = answer("GET", 200, (Service("nova-compute", "compute-0", "UNKNOWN", None),))
    snapshot = d.replace(fleet.read(), hypervisors=answer("GET", 500), services=silent)

    assert find_candidates(snapshot, living=fleet.guests) == [elsewhere, in_dead_cell]


def test_figures_of_most_hosts_are_usual(fleet: Fleet) -> None:
    assert fleet.odd() == []


@pytest.mark.parametrize(
    "amounts", [{"VCPU": 1, "MEMORY_MB": 512}, {"VCPU": 1}, {"PCPU": 1}, {"MEMORY_MB": 1}]
)
def test_allocation_not_counted_by_nova_compute_makes_a_host_suspicious(
    fleet: Fleet, amounts: dict[str, int]
) -> None:
    fleet.stranger(fleet.roots[1], amounts=amounts)

    assert fleet.odd() == [fleet.roots[1]]


def test_allocation_on_a_child_counts_for_its_host(fleet: Fleet) -> None:
    fleet.stranger(fleet.provider("numa-0", fleet.roots[1]), amounts={"VCPU": 1})

    assert fleet.odd() == [fleet.roots[1]]


def test_triage_misses_compensating_and_uncounted_allocations(fleet: Fleet) -> None:
    """One case is an orphan beside a missing allocation of the same size.

    The other is an allocation without processors and memory.
    """
    fleet.hold(fleet.uuid(), fleet.roots[0])
    del fleet.allocations[fleet.guests[0]]
    fleet.stranger(fleet.roots[1], amounts={"DISK_GB": 9, "CUSTOM_VF": 1})

    assert fleet.odd() == []


@pytest.mark.parametrize("fields", [{"state": "down"}, {"used": {}}])
def test_host_that_does_not_report_is_suspicious(fleet: Fleet, fields: dict[str, t.Any]) -> None:
    fleet.nodes[fleet.roots[0]] = d.replace(fleet.nodes[fleet.roots[0]], **fields)

    assert fleet.odd() == [fleet.roots[0]]


def test_each_host_is_suspicious_without_a_common_difference() -> None:
    fleet = Fleet(hosts=4)
    for root in fleet.roots[:2]:
        fleet.stranger(root)

    assert fleet.odd() == fleet.roots


def test_hosts_with_other_amounts_than_nova_compute_counts_are_read(
    fleet: Fleet,
) -> None:
    fleet.stranger(fleet.roots[0])
    assert choose_hosts_for_server_details(fleet.read()) == []
    fleet.hold(fleet.guests[1], fleet.roots[1], amounts={"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 1})

    assert choose_hosts_for_server_details(fleet.read()) == ["compute-1"]
    assert choose_hosts_for_server_details(fleet.read(kinds=("deleted_server",))) == []
    assert find_candidates(fleet.read(), fleet.glances()) == sorted(
        [fleet.guests[1], *(set(fleet.allocations) - set(fleet.guests))]
    )


def test_hosts_with_allocations_on_a_child_are_read(fleet: Fleet) -> None:
    fleet.hold(fleet.guests[2], fleet.provider("nic", fleet.roots[2]), amounts={"CUSTOM_VF": 1})

    assert choose_hosts_for_server_details(fleet.read()) == ["compute-2"]
    assert find_candidates(fleet.read(), fleet.glances()) == [fleet.guests[2]]


def test_servers_with_special_flavors_are_not_candidates_for_that_reason(fleet: Fleet) -> None:
    fleet.hold(fleet.guests[2], fleet.provider("nic", fleet.roots[2]), amounts={"CUSTOM_VF": 1})
    special = d.replace(FLAVOR, extra_specs={"resources:CUSTOM_VF": "1"})
    fleet.servers[fleet.guests[2]] = d.replace(fleet.servers[fleet.guests[2]], flavor=special)

    assert find_candidates(fleet.read(), fleet.glances()) == []


def test_reading_of_a_host_shows_on_which_node_a_server_is() -> None:
    fleet = Fleet()
    nodes = [fleet.host(name, service="ironic") for name in ("node-1", "node-2")]
    right, wrong = fleet.server(nodes[0], nodes[0]), fleet.server(nodes[0], nodes[1])

    assert "ironic" in choose_hosts_for_server_details(fleet.read())
    assert find_candidates(fleet.read(), fleet.glances()) == [wrong]
    assert find_candidates(fleet.read()) == sorted([right, wrong])


def test_hosts_of_known_orphans_are_not_read_for_their_figures(
    fleet: Fleet,
) -> None:
    """An unconfirmed resize is no reason either: nova-compute counts it on both hosts."""
    here, there, _other = fleet.roots
    both = fleet.server(there, here, there)
    unconfirmed = fleet.server(there, there, status="VERIFY_RESIZE")
    fleet.migration(unconfirmed, here, there, "finished", here)
    fleet.migration(both, here, there, "confirmed", here)
    fleet.figures(there, {"VCPU": 3, "MEMORY_MB": 1536})
    fleet.figures(here, {"VCPU": 2, "MEMORY_MB": 1024})

    assert choose_hosts_for_server_details(fleet.read()) == []
