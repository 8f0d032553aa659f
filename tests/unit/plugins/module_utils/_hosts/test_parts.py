# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is read of a host's network agents, and which of its ports count as used."""

from __future__ import annotations

import typing as t

import pytest

from ......plugins.module_utils._common.errors import CloudError
from ......plugins.module_utils._core.models.nova import Aggregate, Service
from ......plugins.module_utils._core.models.surroundings import OtherService
from ......plugins.module_utils._hosts.network_agents import Agent, BoundPort
from ......plugins.module_utils._hosts.parts import (
    HostParts,
    NetworkParts,
    describe_other_service,
    find_lonely_aggregates,
    find_used_ports,
    find_zone_hosts,
    list_part_warnings,
    read_network_parts,
    select_other_services,
)
from ..world import answer

AGENT = Agent("a-1", "neutron-l3-agent", "L3 agent", "old", alive=False)


class Nova:
    """Answers with one status to the lookup of any server."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.asked: list[str] = []

    def get_server(self, uuid: str) -> t.Any:
        self.asked.append(uuid)
        return answer(f"GET /servers/{uuid}", self.status, None)


class Neutron:
    """The agents and ports of one host; an error in place of either."""

    def __init__(self, agents: t.Any = (), ports: t.Any = ()) -> None:
        self.agents, self.ports = agents, ports

    def list_agents(self, _host: str) -> t.Any:
        return self._give(self.agents)

    def list_bound_ports(self, _host: str) -> t.Any:
        return self._give(self.ports)

    def _give(self, value: t.Any) -> t.Any:
        if isinstance(value, CloudError):
            raise value
        return value


def _read(neutron: Neutron | None) -> NetworkParts:
    return read_network_parts("old", t.cast("t.Any", neutron), t.cast("t.Any", Nova(404)))


def test_nothing_is_asked_without_a_network_service() -> None:
    assert _read(None) == NetworkParts()


def test_ports_are_read_only_for_agents_that_may_be_deleted() -> None:
    refused = CloudError("No.")

    assert _read(Neutron((), refused)) == NetworkParts()
    for neutron in (Neutron(refused), Neutron((AGENT,), refused)):
        parts = _read(neutron)
        # An agent under ports that are not known is not one that may be deleted.
        assert parts.agents == () and parts.unread.endswith("were not looked at. No.")


@pytest.mark.parametrize(
    ("owner", "device", "status", "is_used"),
    [
        ("compute:nova", "s-1", 404, False),
        ("compute:nova", "s-1", 200, True),
        # Anything but Nova's own "there is none" leaves the server possible.
        ("compute:nova", "s-1", 500, True),
        ("compute:nova", "s-1", 403, True),
        ("baremetal:none", "s-1", 404, False),
        ("compute:nova", "", 200, False),
        ("network:dhcp", "dhcp-of-a-network", 404, True),
        ("network:dhcp", "reserved_dhcp_port", 404, False),
        ("network:router_interface", "r-1", 404, True),
        ("", "something", 404, True),
        ("", "", 200, False),
    ],
)
def test_ports_whose_device_may_be_there(
    owner: str, device: str, status: int, is_used: bool
) -> None:
    port = BoundPort("p-1", owner, device)
    nova = Nova(status)
    found = find_used_ports("old", t.cast("t.Any", Neutron(ports=(port,))), t.cast("t.Any", nova))

    assert found == ((port,) if is_used else ())
    assert nova.asked in ([], ["s-1"])


def _service(host: str, zone: str | None = "az1", binary: str = "nova-compute") -> Service:
    return Service(binary, host, "enabled", "up", id=f"id-of-{binary}-{host}", zone=zone)


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
