# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Deletes a host: its place in aggregates, its service, its providers and its network agents.

Whatever can refuse the deletion is asked before the first of these goes, because a part that is
gone cannot be restored by itself.
"""

from __future__ import annotations

import dataclasses as d
import typing as t
from collections.abc import Iterable, Mapping

from .._common.errors import CloudError, PlacementToolsError
from .._core.clients.groups import AggregateClient
from .._core.clients.nova import NovaReader
from .._core.clients.placement import PlacementReader
from .._core.clients.provider_writer import ProviderWriter
from .._core.clients.session import Session
from .._core.facts.services import COMPUTE, get_listed_services
from .._core.models.change import sort_children_first
from .._core.models.finding import Finding
from .._core.models.nova import Aggregate, Service
from .._core.models.placement import Provider
from .emptiness import Blocker, Contents, list_occupants
from .host_info import HostReader
from .host_report import HostReport, explain_refusal, find_agent_blockers, make_port_blocker
from .nova_client import ServiceWriter
from .parts import Agent, AgentWriter, find_used_ports, make_agent_reader

_WHAT = "deleted, and nothing of it was deleted"


@d.dataclass
class Deleted:
    """What is gone of a host, or would be."""

    aggregates: list[Aggregate] = d.field(default_factory=list)
    service: Service | None = None
    providers: list[Provider] = d.field(default_factory=list)
    agents: list[Agent] = d.field(default_factory=list)

    def describe(self) -> dict[str, t.Any]:
        """Return it as `compute_host` returns it."""
        return {
            "aggregates": [{"uuid": one.uuid, "name": one.name} for one in self.aggregates],
            "service": self.service.id if self.service else None,
            "providers": [{"uuid": one.uuid, "name": one.name} for one in self.providers],
            "agents": [{"uuid": one.uuid, "type": one.type} for one in self.agents],
        }

    def __bool__(self) -> bool:
        return any((self.aggregates, self.service, self.providers, self.agents))


class HostDeletion:
    """Deletes the host of a report."""

    def __init__(self, session: Session, reader: HostReader, report: HostReport) -> None:
        self._session = session
        self._reader = reader
        self._report = report
        self._host = report.host
        self._nova = NovaReader(session.compute)
        self._placement = PlacementReader(session.placement)
        self._policy = reader.part_policy
        self._deleted = Deleted()

    def find_refusal(self, is_cleaned: bool, is_stopped: bool) -> dict[str, t.Any] | None:
        """Return the result of a deletion that is refused, None if nothing blocks it.

        is_cleaned, is_stopped: whether what is left over, and nova-compute, block nothing.
        """
        ignored = "service_up" if is_stopped else ""
        blockers: list[Blocker | Finding] = [
            blocker for blocker in self._report.blockers if blocker.kind != ignored
        ]
        if not is_cleaned:
            blockers += self._report.contents.leftovers
        refusal = explain_refusal(self._report.name, blockers, _WHAT)
        if not refusal:
            return None
        document = self._report.describe()
        parts = {name: document[name] for name in ("blockers", "left_over")}
        failure = {"failed": True, "changed": False, "msg": refusal}
        return {**failure, **parts, "deleted": Deleted().describe()}

    def foretell(self) -> dict[str, t.Any]:
        """Return the result that a deletion would have."""
        agents = self._report.parts.network.agents if self._policy.delete_agents else ()
        aggregates, providers = self._report.parts.aggregates, self._report.providers
        deleted = Deleted([*aggregates], self._host.service, [*providers], [*agents])
        return {"changed": bool(deleted), "deleted": deleted.describe()}

    def run(self) -> dict[str, t.Any]:
        """Delete the host, and return what is gone, also if something else is not."""
        result: dict[str, t.Any] = {}
        try:
            if self._host.service is None:
                self._require_no_host()
            else:
                self._require_unused(self._host.service)
            self._leave_aggregates()
            self._delete_service()
            self._delete_providers()
            if self._policy.delete_agents:
                self._delete_agents()
        except PlacementToolsError as error:
            result = {"failed": True, "msg": str(error)}
        return {**result, "changed": bool(self._deleted), "deleted": self._deleted.describe()}

    def _leave_aggregates(self) -> None:
        client = AggregateClient(self._session.compute)
        for aggregate in self._report.parts.aggregates:
            client.remove_host(aggregate, self._host.name)
            self._deleted.aggregates.append(aggregate)

    def _delete_service(self) -> None:
        """Delete the service; Nova deletes its compute nodes and their providers with it."""
        service, nodes = self._host.service, self._host.nodes
        if service is None:
            return
        self._require_unused(service)
        providers = {provider.uuid for provider in self._report.providers}
        without_provider = [node for node in nodes if node.uuid not in providers]
        # Nova answers 500 to the deletion of a service that has a node without a provider.
        with ProviderWriter(self._session.placement).create_placeholders(without_provider):
            ServiceWriter(self._session.compute).delete_service(service, nodes)
        self._deleted.service = service

    def _require_no_host(self) -> None:
        """Raise CloudError if a host without a service may be in a cell that a worker ignores."""
        name = self._host.name
        status = self._nova.get_host(name).status
        if status != 404:
            raise CloudError(
                f"Nova lists no {COMPUTE} of {name}, but answered {status} when asked for the host "
                "directly. Nothing was deleted: if the API workers do not all know the same cells, "
                "restart every nova-api. If the host is gone, run nova-manage cell_v2 delete_host."
            )

    def _require_unused(self, service: Service) -> None:
        """Raise CloudError if something came to the host since its report.

        Nova would delete the service, and only log that Placement refuses to delete a provider with
        allocations (nova/api/openstack/compute/services.py, delete).
        """
        listed = get_listed_services(self._nova.list_services())
        # In a cell that does not answer, a service has no ID.
        if [entry.state for entry in listed if entry.id == service.id] != ["down"]:
            raise CloudError(
                f"Nova does not list the nova-compute of {self._host.name} as down any more. "
                "Nothing more was deleted: check that it is stopped and that every cell answers, "
                "and run again."
            )
        self._require_no_consumers(self._report.providers)

    def _require_no_consumers(self, tree: Iterable[Provider]) -> None:
        uuids = [provider.uuid for provider in tree]
        late = self._placement.list_allocations_on_providers(uuids)
        for occupant in list_occupants(Contents(self._host, late=late)):
            raise CloudError(f"{occupant.reason} Nothing more was deleted: run again.")

    def _delete_providers(self) -> None:
        """Delete the providers of the host that Nova has left behind, each with its tree."""
        left = self._placement.list_providers()
        for provider in self._report.providers:
            if provider.uuid not in left:
                self._deleted.providers.append(provider)
        for root in self._host.roots:
            if root.uuid in left:
                self._delete_tree(root, left)

    def _delete_tree(self, root: Provider, providers: Mapping[str, Provider]) -> None:
        tree = sort_children_first(root.uuid, providers.values())
        self._require_no_consumers(tree)
        self._reader.require_no_compute_node(root, self._host, providers)
        gone, refusal = ProviderWriter(self._session.placement).delete_tree(tree)
        self._deleted.providers += gone
        if refusal:
            raise CloudError(refusal)

    def _delete_agents(self) -> None:
        reader = make_agent_reader(self._session)
        if reader is None or self._session.network is None:
            return
        writer = AgentWriter(self._session.network)
        for listed in self._report.parts.network.agents:
            agent = reader.get_agent(listed.uuid)
            # With the chassis of OVN, Neutron deletes all agents on it.
            if agent is None:
                continue
            refusal = explain_refusal(
                f"The {agent.type}",
                [
                    *find_agent_blockers(agent, self._policy.delete_running_agents),
                    *map(make_port_blocker, find_used_ports(agent.host, reader, self._nova)),
                ],
                "deleted",
            )
            if refusal:
                raise CloudError(refusal)
            writer.delete_agent(agent)
            self._deleted.agents.append(agent)
