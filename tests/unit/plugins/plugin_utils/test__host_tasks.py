# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Leftovers to quarantine, and what remains of a host."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.osops.placement.plugins.plugin_utils._host_tasks import (
    HostRemoval,
    LeftoverChanges,
    describe_host_removal,
    select_leftover_changes,
)

KINDS = {"leftover_domain": 2, "leftover_directory": 3}


def _left(hosts: t.Sequence[str], kinds: dict[str, int], orphaned: int) -> dict[str, t.Any]:
    return {
        "findings": [{"host": host} for host in hosts],
        "summary": {"kinds": kinds, "verdicts": {"orphaned": orphaned}},
    }


@pytest.mark.parametrize(
    ("hosts", "kinds", "orphaned", "chosen", "expected"),
    [
        ([], {}, 0, ["leftover_domain"], (0, False)),
        (["here"], KINDS, 1, [], (0, False)),
        (["here"], KINDS, 1, ["leftover_domain"], (2, True)),
        (["here"], KINDS, 1, ["leftover_domain", "leftover_directory"], (5, True)),
        (["there"], KINDS, 1, ["leftover_domain"], (2, False)),
        (["there", "here"], KINDS, 2, ["leftover_directory"], (3, True)),
        # Not all findings are returned, and the others may be on any host.
        (["there"], KINDS, 2, ["leftover_domain"], (2, True)),
        (["there"], KINDS, 2, [], (0, False)),
        (["here"], {"leftover_domain": 2}, 1, ["leftover_directory"], (0, False)),
    ],
)
def test_a_host_without_a_chosen_leftover_is_left_alone(
    hosts: list[str],
    kinds: dict[str, int],
    orphaned: int,
    chosen: list[str],
    expected: tuple[int, bool],
) -> None:
    left = _left(hosts, kinds, orphaned)

    assert select_leftover_changes(left, chosen, "here") == LeftoverChanges(*expected)


SERVICE = {"id": "s-1", "status": "disabled", "state": "down"}
NODE = {"uuid": "n-1", "name": "compute-17.example.org"}
CHILD = {"uuid": "c-1", "name": "compute-17 port", "root": "n-1"}


def _host(**parts: t.Any) -> dict[str, t.Any]:
    return {
        "name": "compute-17",
        "known": True,
        "service": None,
        "nodes": [],
        "providers": [],
        **parts,
    }


@pytest.mark.parametrize(
    ("after", "named", "remains"),
    [
        ({"service": SERVICE}, [], ["compute service s-1 remains (disabled, down)"]),
        ({"nodes": [NODE]}, [], ["compute node compute-17.example.org (n-1) remains"]),
        ({"providers": [CHILD]}, [], ["provider compute-17 port (c-1) remains"]),
        ({}, [NODE], ["provider compute-17.example.org (n-1) has the name of the host"]),
        ({"providers": [CHILD]}, [CHILD], ["provider compute-17 port (c-1) remains"]),
        (
            {"service": SERVICE, "nodes": [NODE], "providers": [CHILD, NODE]},
            [NODE],
            [
                "compute service s-1 remains (disabled, down)",
                "compute node compute-17.example.org (n-1) remains",
                "provider compute-17 port (c-1) remains",
                "provider compute-17.example.org (n-1) remains",
            ],
        ),
        (
            {"providers": [{**CHILD, "name": "a\x1b[31m"}]},
            [],
            ["provider a\\x1b[31m (c-1) remains"],
        ),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_everything_that_remains_is_named(
    after: dict[str, t.Any], named: list[dict[str, t.Any]], remains: list[str], known: bool
) -> None:
    removal = describe_host_removal(_host(known=known), _host(**after), named)

    assert removal == HostRemoval(
        False, f"compute-17 was not removed completely: {', '.join(remains)}."
    )


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (
            True,
            "compute-17 is gone: no service, no compute node, no provider, and its name is free.",
        ),
        (
            False,
            "Neither Nova nor Placement knows compute-17: "
            "it is already gone, or its name is misspelt.",
        ),
    ],
)
def test_nothing_remains(known: bool, message: str) -> None:
    removal = describe_host_removal(_host(known=known), _host(known=False), [])

    assert removal == HostRemoval(True, message)
