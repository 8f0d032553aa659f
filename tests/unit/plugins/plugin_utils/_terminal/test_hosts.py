# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts and what hypervisors have left over, as lines for a terminal."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.osops.placement.plugins.plugin_utils._terminal.hosts import (
    format_guests,
    format_host,
)
from ansible_collections.osops.placement.tests.unit.plugins.plugin_utils.hostile import HOSTILE

PATH = "/var/lib/placement/guests.json"
CONSUMER = "6f7a1f5c-2a2c-4f0c-8f07-0d3a6d6f1c11"


def _host(name: str = "compute-17", **changes: t.Any) -> dict[str, t.Any]:
    """A host on which everything has that name.

    A server holds it back, and something is left over.
    """
    provider = {"uuid": CONSUMER, "name": name}
    return {
        "name": name,
        "host": name,
        "known": True,
        "service": {"host": name, "status": "disabled", "state": "down", "disabled_reason": name},
        "nodes": [provider],
        "providers": [{**provider, "name": f"{name}_port"}, provider],
        "aggregates": [{"uuid": CONSUMER, "name": name, "zone": name}],
        "servers": [{"uuid": CONSUMER, "name": name, "status": "ACTIVE", "task_state": None}],
        "migrations": [],
        "left_over": [
            {
                "id": "deleted_server/x",
                "kind": "deleted_server",
                "consumer": CONSUMER,
                "reason": f"{name} is deleted.",
            }
        ],
        "blockers": [
            {
                "kind": "server",
                "subject": CONSUMER,
                "name": name,
                "reason": f"Server {name} is on it.",
                "stops": "disable",
            }
        ],
        **changes,
    }


@pytest.mark.parametrize("name", HOSTILE)
def test_of_a_host_nothing_that_a_terminal_would_obey_is_printed(name: str) -> None:
    for host in (_host(HOSTILE[name]), _host(HOSTILE[name], known=False)):
        for line in format_host(host, 100):
            assert line.isprintable()
            line.encode("utf-8")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_of_a_host_add_no_lines(name: str) -> None:
    assert len(format_host(_host(HOSTILE[name]), 10_000)) == len(format_host(_host("x"), 10_000))


@pytest.mark.parametrize("name", HOSTILE)
def test_no_line_about_a_host_is_wider_than_the_terminal(name: str) -> None:
    assert max(map(len, format_host(_host(HOSTILE[name]), 80))) <= 80


def test_a_host_is_told_with_what_it_has_and_what_holds_it_back() -> None:
    assert format_host(_host(), 1000) == [
        "",
        "compute-17",
        "    service  disabled, down (compute-17)",
        f"    nodes    compute-17 ({CONSUMER})",
        f"    tree     compute-17_port ({CONSUMER}), compute-17 ({CONSUMER})",
        f"    in       compute-17 ({CONSUMER})",
        "",
        "Blocked by:",
        f"server                 {CONSUMER}  compute-17",
        "    why      Server compute-17 is on it.",
        "",
        "Removable leftovers:",
        f"deleted_server         {CONSUMER}",
        "    why      compute-17 is deleted.",
    ]


def test_a_host_that_nothing_holds_back_says_so() -> None:
    assert format_host(_host(blockers=[], left_over=[]), 100)[-1] == "Ready to decommission."
    assert "Ready to decommission." not in format_host(_host(), 100)


def test_a_host_without_service_and_one_that_nobody_knows_are_told_as_such() -> None:
    assert "    service  none" in format_host(_host(service=None), 100)
    assert format_host(_host(known=False), 100) == [
        "",
        "compute-17: neither Nova nor Placement knows it.",
    ]


def test_of_many_things_that_hold_a_host_back_a_hundred_are_shown() -> None:
    lines = format_host(_host(blockers=_host()["blockers"] * 103), 100)

    assert sum(line.startswith("server ") for line in lines) == 100
    assert "… and 3 more in host.json" in lines


def _guests(name: str = "web-1", **changes: t.Any) -> dict[str, t.Any]:
    """A domain and a directory of a server with that name.

    They are on a host and under names that are the same.
    """
    entry = {
        "uuid": CONSUMER,
        "host": name,
        "name": name,
        "server": {"name": name},
        "reason": f"Server {name} is deleted.",
    }
    domain = {**entry, "id": "d", "kind": "leftover_domain", "guest": {"state": "shut off"}}
    directory = {
        **entry,
        "id": "f",
        "kind": "leftover_directory",
        "guest": {"size_bytes": 3 * 1024**3},
    }
    coverage = {"hosts": 1, "domains": 4, "directories": 5, "failed_checks": []}
    found = {
        "finished_at": "2026-10-25T20:13:51Z",
        "summary": {
            "verdicts": {"orphaned": 2, "protected": 1, "undecided": 0},
            "coverage": coverage,
        },
        "findings": [domain, directory],
        "protected": [directory],
        "undecided": [],
    }
    return {**found, **changes}


def test_what_is_left_over_on_hypervisors_is_told_with_what_would_be_done() -> None:
    assert format_guests(_guests(), PATH, ["leftover_domain"], 1000) == [
        "",
        "Leftovers on 1 hypervisors at 2026-10-25T20:13:51Z",
        "",
        f"leftover_domain        {CONSUMER}  web-1",
        "    host     web-1, web-1",
        "    why      Server web-1 is deleted.",
        "    write    undefine the domain",
        "",
        f"leftover_directory     {CONSUMER}  web-1",
        "    host     web-1, web-1, 3.0 GiB",
        "    why      Server web-1 is deleted.",
        (
            "    could    move the directory to the quarantine; not now: leftover_directory is "
            "not among the kinds to remediate"
        ),
        "",
        "Protected, not changed:",
        f"leftover_directory     {CONSUMER}  web-1",
        "    host     web-1, web-1, 3.0 GiB",
        "    why      Server web-1 is deleted.",
        "",
        "Of 4 domains and 5 directories: 2 orphaned, 1 protected, 0 undecided.",
    ]


def test_failed_checks_are_told_after_what_is_on_hypervisors() -> None:
    found = _guests()
    found["summary"]["coverage"]["failed_checks"] = ["A cell is not answering."]

    assert (
        format_guests(found, PATH, [], 100)[-1]
        == "NOTHING MAY BE CHANGED: A cell is not answering."
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_of_hypervisors_nothing_that_a_terminal_would_obey_is_printed(name: str) -> None:
    lines = format_guests(_guests(HOSTILE[name]), PATH, [], 10_000)

    assert all(line.isprintable() for line in lines)
    assert len(lines) == len(format_guests(_guests("x"), PATH, [], 10_000))
    assert max(map(len, format_guests(_guests(HOSTILE[name]), PATH, [], 100))) <= 100
