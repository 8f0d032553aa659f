# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Leftovers to quarantine, and what remains of a host."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.osops.placement.plugins.plugin_utils._hosts.host_tasks import (
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


DEAD = {"uuid": "a-1", "type": "L3 agent", "alive": False}
ALIVE = {"uuid": "a-2", "type": "DHCP agent", "alive": True}


@pytest.mark.parametrize(
    ("agents", "remains", "notes"),
    [
        ("all", ["L3 agent a-1 remains (dead)", "DHCP agent a-2 remains (alive)"], []),
        ("dead", ["L3 agent a-1 remains (dead)"], ["DHCP agent a-2 remains (alive): stop it."]),
        ("none", [], []),
    ],
)
def test_agents_that_must_be_gone(agents: str, remains: list[str], notes: list[str]) -> None:
    after = _host(known=False, agents=[DEAD, ALIVE])
    removal = describe_host_removal(_host(agents=[DEAD, ALIVE]), after, [], agents)

    assert removal.complete is not bool(remains)
    for text in [*remains, *notes]:
        assert text in removal.message
    gone = describe_host_removal(_host(agents=[DEAD]), _host(known=False), [], agents)
    assert gone.complete and ("no network agent" in gone.message) is (agents == "all")


def test_an_aggregate_that_still_has_the_host_remains() -> None:
    after = _host(known=False, aggregates=[{"name": "ssd", "uuid": "u-1"}])
    removal = describe_host_removal(_host(), after, [])

    assert removal == HostRemoval(
        False, "compute-17 was not removed completely: aggregate ssd (u-1) still has the host."
    )


def test_what_was_left_alone_is_named_at_the_end() -> None:
    service = {"binary": "cinder-volume", "host": "compute-17@lvm", "command": "cinder-manage \x1b"}
    after = _host(known=False, other_services=[service], unread=["Neutron was not looked at."])
    removal = describe_host_removal(_host(), after, [])

    assert removal.complete
    assert removal.message.endswith(
        "its name is free. Neutron was not looked at. "
        "The cinder-volume of compute-17@lvm was left alone: cinder-manage \\x1b"
    )
