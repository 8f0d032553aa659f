# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hosts use other amounts than Placement has allocated."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from ansible_collections.osops.placement.plugins.module_utils._core.reading.candidates import (
    find_mismatched_nodes,
    sum_by_tree,
)
from ansible_collections.osops.placement.tests.unit.plugins.module_utils.fleet import Fleet


@pytest.fixture(name="fleet")
def _fleet() -> Fleet:
    return Fleet()


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
