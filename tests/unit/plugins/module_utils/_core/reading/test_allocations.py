# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which root providers are those of the hosts that a user names."""

from __future__ import annotations

import pytest

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._core.reading.allocations import (
    find_roots_of_hosts,
    find_roots_of_members,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.world import World


@pytest.fixture(name="site")
def _site() -> World:
    world = World()
    world.host("compute-1.example", service="compute-1")
    for name in ("node-1", "node-2"):
        world.host(name, service="ironic")
    world.provider("gone")
    return world


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("compute-1", {"compute-1.example"}),
        ("compute-1.example", {"compute-1.example"}),
        ("ironic", {"node-1", "node-2"}),
        ("node-2", {"node-2"}),
        ("gone", {"gone"}),
    ],
)
def test_a_host_goes_by_the_name_of_its_service_its_hypervisor_or_its_provider(
    site: World, name: str, found: set[str]
) -> None:
    roots = find_roots_of_hosts([name], site.nodes.values(), site.providers)

    assert {site.providers[root].name for root in roots} == found
    assert find_roots_of_hosts(roots, site.nodes.values(), site.providers) == roots


def test_a_provider_that_shares_is_no_host(site: World) -> None:
    site.provider("pool", sharing=True)

    with pytest.raises(InvalidInput, match="neither Nova nor Placement knows pool"):
        find_roots_of_hosts(["pool"], site.nodes.values(), site.providers)


def test_a_child_is_no_host(site: World) -> None:
    site.provider("nic", next(iter(site.nodes)))

    with pytest.raises(InvalidInput, match="hosts: neither Nova nor Placement knows nic"):
        find_roots_of_hosts(["nic"], site.nodes.values(), site.providers)


def test_all_unknown_hosts_are_named(site: World) -> None:
    with pytest.raises(InvalidInput, match=r"knows a, b\."):
        find_roots_of_hosts(["b", "node-1", "a"], site.nodes.values(), site.providers)


@pytest.mark.parametrize(
    ("hosts", "found"),
    [
        (["compute-1"], {"compute-1.example"}),
        (["ironic"], {"node-1", "node-2"}),
        # Nova lists it no longer, or its cell does not answer.
        (["gone"], {"gone"}),
        (["gone", "ironic"], {"gone", "node-1", "node-2"}),
        # A group names hosts of services, and a node of another host is not one.
        (["node-2"], set()),
        (["compute-1.example"], set()),
        (["nonesuch"], set()),
        ([], set()),
    ],
)
def test_a_member_of_a_group_is_the_host_of_a_service(
    site: World, hosts: list[str], found: set[str]
) -> None:
    roots = find_roots_of_members(hosts, site.nodes.values(), site.providers)

    assert {site.providers[root].name for root in roots} == found


def test_a_provider_that_holds_the_name_of_a_member_belongs_to_it(site: World) -> None:
    old = site.provider("compute-1.example")

    roots = find_roots_of_members(["compute-1"], site.nodes.values(), site.providers)

    assert old in roots and len(roots) == 2


def test_a_member_has_no_sharing_provider_of_its_name(site: World) -> None:
    pool = site.provider("compute-1", sharing=True)

    assert pool not in find_roots_of_members(["compute-1"], site.nodes.values(), site.providers)
