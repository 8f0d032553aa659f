# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a host's agents, ports and aggregates blocks its deletion."""

from __future__ import annotations

import dataclasses as d
import typing as t

import pytest

from ......plugins.module_utils._core.models.codec import convert_to_json
from ......plugins.module_utils._core.models.nova import Aggregate, Service
from ......plugins.module_utils._core.models.surroundings import OtherService
from ......plugins.module_utils._hosts.network_agents import Agent, AgentResource, BoundPort
from ......plugins.module_utils._hosts.parts import (
    HostParts,
    NetworkParts,
    PartPolicy,
    describe_other_service,
    find_lonely_aggregates,
    find_part_blockers,
    find_zone_hosts,
    list_part_warnings,
    select_other_services,
)

DEAD = Agent("a-1", "neutron-l3-agent", "L3 agent", "old", alive=False)
ALIVE = d.replace(DEAD, uuid="a-2", alive=True)
ROUTERS = d.replace(DEAD, resources=(AgentResource("router", "r-1", "edge"),))
NETWORKS = d.replace(
    DEAD, type="DHCP agent", resources=(AgentResource("network", "n-1", "web\x1b[31m"),) * 2
)
UNKNOWN = d.replace(DEAD, resources=None)
PORT = BoundPort("p-1", "compute:nova", "s-1")


def _service(host: str, zone: str | None = "az1", binary: str = "nova-compute") -> Service:
    return Service(binary, host, "enabled", "up", id=f"id-of-{binary}-{host}", zone=zone)


def _block(parts: HostParts, **policy: bool) -> list[tuple[str, str, str]]:
    blockers = find_part_blockers("old", parts, PartPolicy(**policy))
    return [(entry.kind, entry.subject, entry.stops) for entry in blockers]


@pytest.mark.parametrize(
    ("agents", "ports", "kinds"),
    [
        ((), (), []),
        ((DEAD,), (), []),
        ((ALIVE,), (), ["agent_up"]),
        ((ROUTERS,), (), ["agent_in_use"]),
        ((NETWORKS,), (), ["agent_in_use"]),
        # What could not be listed may be there.
        ((UNKNOWN,), (), ["agent_in_use"]),
        ((DEAD,), (PORT,), ["port"]),
        ((d.replace(ROUTERS, alive=True),), (PORT,), ["agent_up", "agent_in_use", "port"]),
        # Without an agent, nothing is deleted under a port.
        ((), (PORT,), []),
    ],
)
def test_agents_that_block_the_deletion(
    agents: tuple[Agent, ...], ports: tuple[BoundPort, ...], kinds: list[str]
) -> None:
    parts = HostParts(NetworkParts(agents, ports))
    found = _block(parts)

    assert [kind for kind, _subject, _stops in found] == kinds
    assert {stops for _kind, _subject, stops in found} <= {"delete"}
    assert _block(parts, delete_agents=False) == []
    # Only that an agent is alive may be overruled.
    allowed = [kind for kind, _subject, _stops in _block(parts, delete_running_agents=True)]
    assert allowed == [kind for kind in kinds if kind != "agent_up"]


@pytest.mark.parametrize(
    ("agent", "command"),
    [
        (ROUTERS, "openstack network agent remove router --l3 a-1 r-1"),
        (NETWORKS, "openstack network agent add network --dhcp OTHER_AGENT n-1"),
    ],
)
def test_the_command_that_moves_what_an_agent_serves(agent: Agent, command: str) -> None:
    (blocker,) = find_part_blockers("old", HostParts(NetworkParts((agent,))), PartPolicy())

    assert command in blocker.reason and blocker.reason.isprintable()


@pytest.mark.parametrize(
    ("zone_hosts", "kinds"), [((), ["empty_zone"]), (("new",), []), (None, [])]
)
def test_the_last_host_of_a_zone(zone_hosts: tuple[str, ...] | None, kinds: list[str]) -> None:
    parts = HostParts(zone="az1", zone_hosts=zone_hosts)

    assert [kind for kind, _subject, _stops in _block(parts)] == kinds
    assert _block(parts, allow_empty_zone=True) == []


def test_hosts_of_a_zone_have_a_nova_compute_there() -> None:
    services = [
        _service("old"),
        _service("other-zone", "az2"),
        _service("control", binary="nova-scheduler"),
        # Its cell does not answer, and its zone is not known.
        _service("silent", None),
    ]

    assert find_zone_hosts("old", "az1", services) == ()
    assert find_zone_hosts("old", "az1", [*services, _service("new")]) == ("new",)
    assert find_zone_hosts("old", None, services) is None


def test_aggregates_without_another_host() -> None:
    services = [_service("old"), _service("new"), _service("control", binary="nova-scheduler")]
    members = {"lonely": ("old",), "stale": ("old", "gone", "control"), "shared": ("old", "new")}
    aggregates = [
        Aggregate(f"uuid-of-{name}", name, None, hosts, id=1) for name, hosts in members.items()
    ]
    lonely = find_lonely_aggregates("old", aggregates, services)

    assert [entry.name for entry in lonely] == ["lonely", "stale"]
    parts = HostParts(lonely_aggregates=lonely, unread=("Cinder was not looked at.",))
    assert list(list_part_warnings("old", parts)) == [
        "old is the last host of aggregate lonely.",
        "old is the last host of aggregate stale.",
        "Cinder was not looked at.",
    ]


def test_other_services_with_the_name_of_the_host() -> None:
    def build(binary: str, host: str) -> OtherService:
        return OtherService("block-storage", None, binary, host, "enabled", "down")

    services = [_service("old"), _service("old", binary="nova-console"), _service("old.example")]
    cinder = [
        build("cinder-volume", "old@lvm"),
        build("cinder-backup", "old"),
        build("cinder-volume", "older@lvm"),
        build("cinder-volume", "new@old"),
    ]
    found = select_other_services("old", services, cinder)

    assert [describe_other_service(entry)["command"] for entry in found] == [
        "cinder-manage service remove cinder-backup old",
        "cinder-manage service remove cinder-volume old@lvm",
        "openstack compute service delete id-of-nova-console-old",
    ]


def test_resources_that_are_not_known_are_not_an_empty_list() -> None:
    assert convert_to_json(UNKNOWN)["resources"] is None
    assert convert_to_json(DEAD)["resources"] == []
    described: t.Any = convert_to_json(ROUTERS)["resources"]
    assert described == [{"kind": "router", "uuid": "r-1", "name": "edge"}]
