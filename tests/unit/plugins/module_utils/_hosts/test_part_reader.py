# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is read of a host's network agents, and which of its ports count as used."""

from __future__ import annotations

import typing as t

import pytest

from ......plugins.module_utils._common.errors import CloudError
from ......plugins.module_utils._hosts.network_agents import Agent, BoundPort
from ......plugins.module_utils._hosts.parts import (
    NetworkParts,
    find_used_ports,
    read_network_parts,
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
