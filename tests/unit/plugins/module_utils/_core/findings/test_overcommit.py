# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many hosts have more allocated than they physically have."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._core.facts.index import SnapshotIndex
from ansible_collections.osops.placement.plugins.module_utils._core.findings.figures import (
    summarize_overcommit,
)
from ansible_collections.osops.placement.plugins.module_utils._core.models.placement import (
    ProviderDetails,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.world import (
    PLENTY,
    World,
)

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
        ({"VCPU": 4}, {"VCPU": 3, "PCPU": 3}, 0, {"VCPU": (1, 1.5)}),
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
