"""How many hosts have more allocated than they physically have, and what is stranded."""

import dataclasses as d
import typing as t

import pytest

from .......plugins.module_utils._core.facts.index import SnapshotIndex
from .......plugins.module_utils._core.findings.figures import summarize_overcommit
from .......plugins.module_utils._core.models.placement import Inventory, ProviderDetails
from .......plugins.module_utils._core.models.snapshot import HostGroups, Scope, Shard
from ...judging import NO_MINIMUM_AGE, build_findings
from ...world import CLAIM, PLENTY, World

CALM = {"hosts": 1, "overcommitted": 0, "highest": 0.5, "highest_host": "compute-1"}


def _summarize(
    has: dict[str, int], used: dict[str, int], reserved: int = 0, **changes: t.Any
) -> t.Any:
    world = World()
    host = world.host("compute-1")
    world.nodes[host] = d.replace(world.nodes[host], has=has)
    world.hold("consumer", host, amounts=used)
    details = {}
    if reserved:
        inventories = dict.fromkeys(used, d.replace(PLENTY, reserved=reserved))
        details = {host: ProviderDetails(inventories)}
    return summarize_overcommit(SnapshotIndex(world.snapshot(details=details, **changes)))


@pytest.mark.parametrize(
    ("has", "used", "reserved", "figures"),
    [
        ({"VCPU": 4}, {"VCPU": 2}, 0, {"VCPU": CALM}),
        ({"VCPU": 4}, {"VCPU": 6, "PCPU": 3}, 0, {"VCPU": (1, 1.5)}),
        ({"VCPU": 4}, {"VCPU": 3, "PCPU": 9}, 0, {"VCPU": (0, 0.75)}),
        ({"VCPU": 4}, {"VCPU": 4}, 0, {"VCPU": (0, 1.0)}),
        ({"MEMORY_MB": 1000}, {"MEMORY_MB": 600}, 500, {"MEMORY_MB": (1, 1.2)}),
        ({"MEMORY_MB": 500}, {"MEMORY_MB": 600}, 500, {}),
        ({}, {"VCPU": 2}, 0, {}),
        ({"VCPU": 4}, {"CUSTOM_X": 9}, 0, {"VCPU": (0, 0.0)}),
    ],
)
def test_a_host_is_overcommitted_if_more_is_allocated_than_it_has(
    has: dict[str, int], used: dict[str, int], reserved: int, figures: dict[str, t.Any]
) -> None:
    expected = {}
    for cls, figure in figures.items():
        expected[cls] = figure
        if isinstance(figure, tuple):
            host = "compute-1" if figure[1] else ""
            expected[cls] = {
                "hosts": 1,
                "overcommitted": figure[0],
                "highest": figure[1],
                "highest_host": host,
            }

    assert _summarize(has, used, reserved) == expected


def test_hosts_out_of_scope_do_not_count() -> None:
    assert _summarize({"VCPU": 4}, {"VCPU": 2}, trees=()) == {}


_STOCK = {"VCPU": Inventory(16, 0, 1, 16, 1, 4.0)}


def _orphan(world: World, *held: str) -> str:
    uuid = world.server(held[0], *held)
    world.delete(uuid)
    return uuid


def _summarize_findings(world: World, **changes: t.Any) -> t.Any:
    return build_findings(world.snapshot(**changes), NO_MINIMUM_AGE)["summary"]


def test_capacity_counts_what_is_stranded_on_its_own_providers_only() -> None:
    """Both are sums over the same providers, so that one is a fraction of the other."""
    world = World()
    read, unread = world.host("compute-1"), world.host("compute-2")
    world.server(read, read)
    _orphan(world, read)
    for _number in range(3):
        _orphan(world, unread)

    summary = _summarize_findings(world, details={read: ProviderDetails(inventories=_STOCK)})

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

    stranded = _summarize_findings(world)["stranded"]

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
        stranded = _summarize_findings(world, scope=scope, trees=(here,))["stranded"]
        assert stranded["resource_classes"]
        assert (stranded["allocated"], stranded["share_of_claimed"]) == ({}, {})


def test_allocated_amounts_are_only_of_stranded_classes() -> None:
    world = World()
    here = world.host("compute-1")
    world.server(here, here)

    assert _summarize_findings(world)["stranded"]["allocated"] == {}
