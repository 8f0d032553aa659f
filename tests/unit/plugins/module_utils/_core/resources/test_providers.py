# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Providers in the results of modules: their order, their parts, and unknown names."""

from __future__ import annotations

import typing as t

import pytest

from .......plugins.module_utils._core.clients.placement import PARTS
from .......plugins.module_utils._core.models.placement import Inventory, Provider, ProviderDetails
from .......plugins.module_utils._core.resources.providers import (
    describe_providers,
    find_unknown_names,
)

HOST = "0a000000-0000-4000-8000-000000000001"
CHILD = "0b000000-0000-4000-8000-000000000002"
GRANDCHILD = "0c000000-0000-4000-8000-000000000003"
POOL = "0d000000-0000-4000-8000-000000000004"
PROVIDERS = {
    GRANDCHILD: Provider(GRANDCHILD, "a port", 3, HOST, CHILD),
    POOL: Provider(POOL, "pool", 1, POOL, None, sharing=True),
    CHILD: Provider(CHILD, "{{ compute-1 }}_pci", 2, HOST, HOST),
    HOST: Provider(HOST, "compute-1", 7, HOST, None),
}
NOTHING = dict.fromkeys(PROVIDERS, ProviderDetails())
FULL = ProviderDetails(
    {"VCPU": Inventory(4, 1, 1, 4, 2, 2.0), "DISK_GB": Inventory(10, 0, 1, 10, 1, 1.0)},
    {"VCPU": 2, "DISK_GB": 11},
    frozenset({"COMPUTE_NODE", "COMPUTE_ACCELERATORS"}),
    frozenset({POOL, HOST}),
)


def test_tree_is_listed_from_its_root_down() -> None:
    names = [provider["name"] for provider in describe_providers(PROVIDERS, NOTHING, ())]

    assert names == ["compute-1", "{{ compute-1 }}_pci", "a port", "pool"]


def test_provider_deleted_meanwhile_is_omitted() -> None:
    left = {uuid: ProviderDetails() for uuid in PROVIDERS if uuid != CHILD}

    assert [provider["uuid"] for provider in describe_providers(PROVIDERS, left, ())] == [
        HOST,
        GRANDCHILD,
        POOL,
    ]


def test_provider_without_parts_shows_its_place_in_the_tree() -> None:
    assert describe_providers({CHILD: PROVIDERS[CHILD]}, NOTHING, ()) == [
        {
            "uuid": CHILD,
            "name": "{{ compute-1 }}_pci",
            "generation": 2,
            "root": HOST,
            "parent": HOST,
            "sharing": False,
        }
    ]


def test_all_parts_are_shown() -> None:
    (provider,) = describe_providers({HOST: PROVIDERS[HOST]}, {HOST: FULL}, PARTS)

    vcpu = {
        "total": 4,
        "reserved": 1,
        "min_unit": 1,
        "max_unit": 4,
        "step_size": 2,
        "allocation_ratio": 2.0,
        "capacity": 6,
    }
    assert provider["inventories"]["VCPU"] == vcpu
    assert list(provider["inventories"]) == ["DISK_GB", "VCPU"]
    assert provider["usages"] == {"DISK_GB": 11, "VCPU": 2}
    assert provider["free"] == {"DISK_GB": -1, "VCPU": 4}
    assert provider["traits"] == ["COMPUTE_ACCELERATORS", "COMPUTE_NODE"]
    assert provider["aggregates"] == [HOST, POOL]


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        (["traits"], {"traits"}),
        (["usages", "aggregates"], {"usages", "aggregates"}),
        (["inventories"], {"inventories"}),
        (["usages", "inventories"], {"usages", "inventories", "free"}),
    ],
)
def test_only_parts_that_were_read_are_shown(parts: list[str], shown: set[str]) -> None:
    (bare,) = describe_providers({HOST: PROVIDERS[HOST]}, {HOST: FULL}, ())
    (provider,) = describe_providers({HOST: PROVIDERS[HOST]}, {HOST: FULL}, parts)

    assert set(provider) - set(bare) == shown


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ([], []),
        (["compute-1", POOL, HOST.upper(), CHILD.replace("-", ""), "a port"], []),
        (["compute-2", "compute-1", "COMPUTE-1"], ["compute-2", "COMPUTE-1"]),
        (["ffffffff-0000-4000-8000-000000000000"], ["ffffffff-0000-4000-8000-000000000000"]),
    ],
)
def test_unknown_names_are_named(wanted: list[str], said: t.Any) -> None:
    assert find_unknown_names(wanted, PROVIDERS) == said
