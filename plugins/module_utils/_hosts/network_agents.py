# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the network agents of a host from Neutron, and deletes one.

API reference: https://docs.openstack.org/api-ref/network/v2/#agents
"""

from __future__ import annotations

import dataclasses as d
import functools
import operator
import typing as t
from collections.abc import Collection, Mapping

from .._common.clock import read_back
from .._common.errors import CloudError
from .._core.clients.api import Api, Reply
from .._core.clients.neutron import ADMIN, SAMPLE, shows_other_projects

# The kinds of resources that Neutron schedules to one agent.
NETWORK, ROUTER = "network", "router"
# What Neutron schedules to the agents of a type: the path of the listing, its key and the kind.
_SCHEDULED = {
    "DHCP agent": ("dhcp-networks", "networks", NETWORK),
    "L3 agent": ("l3-routers", "routers", ROUTER),
}
# Only administrators see this field of a network.
_ADMIN_FIELD = "provider:network_type"
_NO_RIGHTS = (
    "lists no network agent: these credentials may not see any. Use a role that may (get_agent in "
    "the policy of Neutron, admin by default)."
)


@d.dataclass(frozen=True)
class AgentResource:
    """A network or a router that Neutron has scheduled to an agent."""

    kind: str
    uuid: str
    name: str


@d.dataclass(frozen=True)
class Agent:
    """A network agent (`GET /v2.0/agents`).

    alive: whether it has reported within Neutron's `agent_down_time`.
    resources: what Neutron has scheduled to it; None where that is not known.
    """

    uuid: str
    binary: str
    type: str
    host: str
    alive: bool
    admin_state_up: bool = True
    heartbeat_at: str | None = None
    description: str | None = None
    resources: tuple[AgentResource, ...] | None = ()


@d.dataclass(frozen=True)
class BoundPort:
    """A port that is bound to a host (`GET /v2.0/ports`).

    device: the uuid of the server or router, or Neutron's own id of a DHCP server.
    """

    uuid: str
    device_owner: str
    device: str


class AgentReader:
    """Reads network agents, what they serve, and the ports that are bound to a host."""

    def __init__(
        self, api: Api, project: str | None = None, roles: Collection[str] = frozenset()
    ) -> None:
        """Read with the credentials for a project, which have these roles there."""
        self._api = api
        self._project = project
        self._roles = roles

    def list_agents(self, host: str) -> tuple[Agent, ...]:
        """Return the agents of a host, sorted by binary and uuid, with what they serve.

        Raises CloudError where they cannot be known.
        """
        reply, agents = self._api.read_pages("/v2.0/agents", "agents", _parse_agent, host=host)
        self._api.expect(reply, f"for the network agents of {host}")
        if not agents:
            self.require_access()
            return ()
        # A filter that Neutron ignored must not make the agents of another host those of this one.
        own = [agent for agent in agents if agent.host == host]
        own.sort(key=lambda agent: (agent.binary, agent.uuid))
        return tuple(map(self.add_resources, own))

    def get_agent(self, uuid: str) -> Agent | None:
        """Return an agent with what it serves, or None if there is none.

        Raises CloudError where these credentials may not see agents: Neutron then answers 404 too.
        """
        path = f"/v2.0/agents/{uuid}"
        reply, agent = self._api.read(path, None, lambda reply: _parse_agent(reply.body["agent"]))
        self._api.expect(reply, f"for network agent {uuid}", 200, 404)
        if agent is None:
            self.require_access()
            return None
        return self.add_resources(agent)

    def require_access(self) -> None:
        """Raise CloudError if an agent that Neutron does not show may be there nevertheless.

        Neutron leaves out what the credentials may not see, without an error.
        """
        reply, agents = self._api.read("/v2.0/agents", None, _parse_agents, limit="1")
        self._api.expect(reply, "for its network agents")
        if agents:
            return
        # Without any agent, only something else that administrators see tells the two cases apart.
        reply, fields = self._api.read("/v2.0/networks", None, _list_network_fields, limit="1")
        self._api.expect(reply, "for its networks")
        if fields and _ADMIN_FIELD not in fields:
            raise CloudError(
                f"Neutron at {self._api.endpoint} lists no network agent: {_NO_RIGHTS}"
            )

    def add_resources(self, agent: Agent) -> Agent:
        """Return `agent` with the networks or routers that Neutron has scheduled to it."""
        if agent.type not in _SCHEDULED:
            return agent
        path, key, kind = _SCHEDULED[agent.type]
        # What could not be listed is None: it may be there.
        _reply, resources = self._api.read_pages(
            f"/v2.0/agents/{agent.uuid}/{path}", key, functools.partial(_parse_resource, kind)
        )
        return d.replace(agent, resources=resources)

    def list_bound_ports(self, host: str) -> tuple[BoundPort, ...]:
        """Return the ports that are bound to a host, sorted by uuid.

        Raises CloudError unless the ports of all projects are certainly among them.
        """
        filters: dict[str, t.Any] = {"binding:host_id": host}
        reply, listed = self._api.read_pages("/v2.0/ports", "ports", _parse_port, **filters)
        self._api.expect(reply, f"for the ports of {host}")
        self._require_all_ports()
        # Neutron ignores filters that it does not know.
        ports = [port for bound_to, port in listed or () if bound_to == host]
        return tuple(sorted(ports, key=lambda port: port.uuid))

    def _require_all_ports(self) -> None:
        """Raise CloudError unless these credentials show the ports of other projects.

        Neutron's policies can grant the agents alone: it then leaves out the ports of all other
        projects, and a host full of them looks as if nothing used it.
        """
        if ADMIN in self._roles:
            return
        reply, are_shown = self._api.read(
            "/v2.0/ports",
            None,
            lambda reply: shows_other_projects(reply, self._project),
            limit=SAMPLE,
        )
        self._api.expect(reply, "for its ports")
        if not are_shown:
            raise CloudError(
                f"Neutron at {self._api.endpoint} shows these credentials no port of another "
                "project, so it is not certain whether anything uses the host. Use a role that may "
                "see all ports (context_is_admin or context_with_global_access in the policy of "
                "Neutron, admin by default)."
            )


class AgentWriter:
    """Deletes network agents. What it reports as done it has read back."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._reader = AgentReader(api)

    def delete_agent(self, agent: Agent) -> None:
        """Delete `agent`. Raises CloudError if Neutron still has it."""
        name = f"the {agent.type} of {agent.host}"
        refusal = ""
        try:
            reply = self._api.write("DELETE", f"/v2.0/agents/{agent.uuid}", None)
            # With the chassis of OVN, Neutron deletes all agents on it.
            self._api.expect(reply, f"to delete {name}", 204, 404)
        except CloudError as error:
            refusal = str(error)
        # The workers of Neutron's API hear of a deleted chassis of OVN one after the other.
        if read_back(lambda: self._reader.get_agent(agent.uuid), operator.not_, not refusal):
            raise CloudError(
                refusal or f"Neutron accepted the deletion of {name}, but still lists it."
            )


def _parse_agents(reply: Reply) -> tuple[Agent, ...]:
    return tuple(map(_parse_agent, reply.body["agents"]))


def _parse_agent(row: Mapping[str, t.Any]) -> Agent:
    # An agent that never reported, or an answer without the field, is taken for a living one.
    return Agent(
        uuid=row["id"],
        binary=row["binary"],
        type=row["agent_type"],
        host=row["host"],
        alive=row.get("alive") is not False,
        admin_state_up=row.get("admin_state_up") is not False,
        heartbeat_at=row.get("heartbeat_timestamp") or None,
        description=row.get("description") or None,
    )


def _parse_resource(kind: str, row: Mapping[str, t.Any]) -> AgentResource:
    return AgentResource(kind, row["id"], row.get("name") or "")


def _parse_port(row: Mapping[str, t.Any]) -> tuple[str | None, BoundPort]:
    """Return the host that a port is bound to, and the port."""
    owner, device = row.get("device_owner") or "", row.get("device_id") or ""
    return row.get("binding:host_id"), BoundPort(row["id"], owner, device)


def _list_network_fields(reply: Reply) -> list[str]:
    return [field for network in reply.body["networks"] for field in network]
