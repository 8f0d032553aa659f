# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Stranded amounts, and what each of their fractions is of."""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._core.models.placement import (
    Inventory,
    ProviderDetails,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.snapshot import (
    HostGroups,
    Scope,
    Shard,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.judging import (
    NO_MINIMUM_AGE,
    build_findings,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.world import (
    CLAIM,
    World,
)

_STOCK = {"VCPU": Inventory(16, 0, 1, 16, 1, 4.0)}


def _orphan(world: World, *held: str) -> str:
    uuid = world.server(held[0], *held)
    world.delete(uuid)
    return uuid


def _summarize(world: World, **changes: t.Any) -> t.Any:
    return build_findings(world.snapshot(**changes), NO_MINIMUM_AGE)["summary"]


def test_capacity_counts_what_is_stranded_on_its_own_providers_only() -> None:
    """Both are sums over the same providers, so that one is a fraction of the other."""
    world = World()
    read, unread = world.host("compute-1"), world.host("compute-2")
    world.server(read, read)
    _orphan(world, read)
    for _number in range(3):
        _orphan(world, unread)

    summary = _summarize(world, details={read: ProviderDetails(inventories=_STOCK)})

    assert summary["stranded"]["resource_classes"]["VCPU"] == 4
    assert summary["capacity"]["VCPU"] == {
        "total": 16,
        "reserved": 0,
        "capacity": 64,
        "used": 2,
        "stranded": 1,
        "providers": 1,
    }


def test_allocated_amounts_are_those_of_which_the_fractions_are() -> None:
    world = World()
    here, there = world.host("compute-1"), world.host("compute-2")
    world.server(here, here)
    world.server(there, there)
    world.server(there, there)
    _orphan(world, here)

    stranded = _summarize(world)["stranded"]

    # On all providers, whether or not their inventory was read.
    assert stranded["allocated"] == {cls: 4 * amount for cls, amount in CLAIM.items()}
    assert stranded["share_of_claimed"] == dict.fromkeys(CLAIM, 0.25)


def test_part_of_a_cloud_has_neither_allocated_amounts_nor_fractions() -> None:
    world = World()
    here = world.host("compute-1")
    world.server(here, here)
    _orphan(world, here)

    for scope in (
        Scope(hosts=("compute-1",)),
        Scope(groups=HostGroups(cells=("cell1",))),
        Scope(shard=Shard(1, 2)),
    ):
        stranded = _summarize(world, scope=scope, trees=(here,))["stranded"]
        assert stranded["resource_classes"]
        assert (stranded["allocated"], stranded["share_of_claimed"]) == ({}, {})


def test_allocated_amounts_are_only_of_stranded_classes() -> None:
    world = World()
    here = world.host("compute-1")
    world.server(here, here)

    assert _summarize(world)["stranded"]["allocated"] == {}
