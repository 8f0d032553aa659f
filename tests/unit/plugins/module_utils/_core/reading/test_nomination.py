# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Candidates are all consumers that the listings do not show to be healthy, and no others."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._core.facts.listings_index import (
    ListingsIndex,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.nova import Service
from ansible_collections.osops.placement.plugins.module_utils._core.models.snapshot import Scope
from ansible_collections.osops.placement.plugins.module_utils._core.reading.candidates import (
    choose_nodes_for_server_listing,
    find_candidates,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.fleet import Fleet
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.world import answer


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

    assert find_candidates(index, living=fleet.guests) == [
        elsewhere,
        in_dead_cell,
    ]
