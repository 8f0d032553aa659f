# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads everything that decides how a host can be drained, from Nova, Placement and Neutron.

The number of requests grows with the number of flavors and of server groups on the host, and not
with that of its servers, except for ports and for servers that are not plain.
"""

from __future__ import annotations

import dataclasses as d
import functools
from collections.abc import Iterable, Sequence

from .._common.parallel import map_parallel
from .._core.clients.nova import NovaReader
from .._core.clients.other_services import NeutronReader
from .._core.clients.placement import PlacementReader
from .._core.clients.session import Session
from .._core.facts.services import COMPUTE, get_listed_services, require_answer, require_service
from .._core.facts.trees import require_compute_nodes
from .._core.models.nova import Hypervisor, Migration, Service
from .._core.models.other_services import ServerPort
from .._core.models.placement import AllocationCandidates
from .drain_plan import HostReading, is_selectable, list_offers
from .draining import DrainServer, MoveNeed, ServerGroup, Way
from .migrations import (
    UnfinishedEvacuations,
    find_returning_hosts,
    list_evacuation_sources,
    list_evacuations,
    read_unfinished_evacuations,
)
from .move_ways import BARE_METAL, build_candidate_query, judge_allocation
from .nova_client import MoveReader


class DrainReader:
    """Reads one host with its servers, and what Placement offers them."""

    def __init__(self, session: Session) -> None:
        self._nova = NovaReader(session.compute)
        self._moves = MoveReader(session.compute)
        self._placement = PlacementReader(session.placement)
        self._neutron = NeutronReader(session.network, session.project, session.roles)
        self._has_network = session.network is not None

    def read_service(self, host: str) -> Service:
        """Return the compute service of a host. Raises InvalidInput if Nova has none."""
        return require_service(host, self.list_services()[0])

    def list_services(self) -> tuple[tuple[Service, ...], str]:
        """Return all services, and when Nova listed them."""
        answer = self._nova.list_services()
        return get_listed_services(answer), answer.at

    def has_host_answered(self, host: str) -> bool:
        """Return whether the nova-compute of a host answers about one of the servers there."""
        servers = self.list_servers(host)
        return bool(servers) and self._moves.has_host_answered(servers[0].uuid)

    def list_labels(self, host: str) -> set[str]:
        """Return all names and UUIDs by which a host and its compute nodes are known."""
        own = [node for node in self._nodes if node.host == host]
        return {host, *(node.uuid for node in own), *(node.name for node in own)}

    def read_unfinished_evacuations(self, host: str) -> UnfinishedEvacuations:
        """Return the evacuations from a host that its nova-compute has not completed."""
        listed = require_compute_nodes(self._nova.list_hypervisors(with_servers=False))
        nodes = {node.uuid: node.name for node in listed if node.host == host}
        # The provider of a renamed host keeps the former name.
        trees = self._placement.list_providers_in_trees(nodes)
        names = {host, *nodes.values(), *(provider.name for provider in trees.values())}
        return read_unfinished_evacuations(self._nova, host, names, nodes.values())

    def list_servers(self, host: str) -> tuple[DrainServer, ...]:
        """Return the servers on a host.

        Raises CloudError when Nova does not list them, because the host would look empty.
        """
        return require_answer(self._moves.list_servers(host), f"the servers on {host}")

    def list_open_migrations(self, host: str) -> tuple[list[Migration], str]:
        """Return the migrations from or to a host that have not ended, and when Nova listed them.

        Raises CloudError when Nova does not list them.
        """
        answer = self._nova.list_migrations_of_host(host)
        migrations = require_answer(answer, f"the migrations of {host}")
        return [entry for entry in migrations if not entry.ended], answer.at

    def list_other_migrations(self, migration: Migration) -> list[str]:
        """Return the UUIDs of the other migrations of the same server."""
        answer = self._nova.list_migrations_of_server(migration.server)
        return [entry.uuid for entry in answer.value or () if entry.uuid != migration.uuid]

    def find_server(self, uuid: str) -> DrainServer | None:
        """Return a server, None if Nova does not show it."""
        return self._moves.get_server(uuid).value

    def explain_allocation(self, server: DrainServer) -> Way | None:
        """Return why a server must not be moved because of its allocation, None if it may be."""
        place = (server.server.host, server.server.node)
        own_roots = {node.uuid for node in self._nodes if (node.host, node.name) == place}
        allocation = self._placement.get_allocation(server.uuid).value
        held = allocation.resources if allocation else {}
        trees = self._placement.list_providers_in_trees(held)
        held_roots = {
            trees[uuid].root for uuid in held if uuid in trees and not trees[uuid].sharing
        }
        way = judge_allocation(server, own_roots, held_roots)
        classes = {cls for amounts in held.values() for cls in amounts}
        if way is None and not classes & {"VCPU", "PCPU", "MEMORY_MB"}:
            return BARE_METAL
        if way is None or not own_roots & held_roots:
            return way
        answer = self._nova.list_migrations_of_server(server.uuid)
        listed = require_answer(answer, f"the migrations of {server.uuid}")
        sources = list_evacuation_sources(listed)
        evacuated_roots = {node.uuid for node in self._nodes if (node.host, node.name) in sources}
        return judge_allocation(server, own_roots, held_roots, evacuated_roots)

    @functools.cached_property
    def _nodes(self) -> Sequence[Hypervisor]:
        return require_compute_nodes(self._nova.list_hypervisors(with_servers=False))

    def read(self, host: str) -> HostReading:
        """Return everything about a host that decides how it can be drained."""
        services, _at = self.list_services()
        service = require_service(host, services)
        servers = self.list_servers(host)
        migrations: dict[str, list[Migration]] = {}
        listed_migrations, at = self.list_open_migrations(host)
        for migration in listed_migrations:
            migrations.setdefault(migration.server, []).append(migration)
        uuids = {server.uuid for server in servers}
        listed = self._moves.list_groups() if servers else ()
        groups = [group for group in listed if uuids & set(group.members)]
        ways = map_parallel(self.explain_allocation, servers)
        # One request for each server, so only for those whose flavor does not say all they need.
        special = self._placement.get_allocations(
            [server.uuid for server in servers if not server.is_plain]
        )
        reading = HostReading(
            host=host,
            service=service,
            services=[entry for entry in services if entry.binary == COMPUTE],
            servers=servers,
            nodes={node.uuid: node.host for node in self._nodes},
            allocations={allocation.consumer: allocation.resources for allocation in special},
            ports=self._read_ports(servers),
            migrations=migrations,
            obstacles={server.uuid: way for server, way in zip(servers, ways, strict=True) if way},
            groups=groups,
            places=self._read_places(groups, servers),
            aggregates=self._nova.list_aggregates(),
            returning=self._find_returning_hosts(host, servers, services),
            at=at,
        )
        return self._add_candidates(reading)

    def _find_returning_hosts(
        self, host: str, servers: Sequence[DrainServer], services: Iterable[Service]
    ) -> dict[str, list[str]]:
        """Return by server on `host` where Nova may send it and a start would destroy it."""
        if not servers:
            return {}
        names = {service.host: {service.host} for service in services if is_selectable(service)}
        for node in self._nodes:
            if node.host in names:
                names[node.host].add(node.name)
        # Nova moves no server to another cell.
        listed, _moves = list_evacuations(self._nova, host)
        own = {
            server.uuid: [one for one in listed if one.server == server.uuid] for server in servers
        }
        return {uuid: find_returning_hosts(entries, names) for uuid, entries in own.items()}

    def _read_places(
        self, groups: Iterable[ServerGroup], servers: Iterable[DrainServer]
    ) -> dict[str, str]:
        """Return the hosts of the members of groups, those left out that have no host."""
        places = {server.uuid: server.server.host or "" for server in servers}
        members = {member for group in groups for member in group.members}
        # A member that was deleted, or that has no host, is in nobody's way.
        elsewhere = sorted(members - places.keys())
        answers = map_parallel(self._moves.get_server, elsewhere)
        for uuid, answer in zip(elsewhere, answers, strict=True):
            if answer.value is not None and answer.value.server.host:
                places[uuid] = answer.value.server.host
        return places

    def _read_ports(self, servers: Sequence[DrainServer]) -> dict[str, Sequence[ServerPort]]:
        if not self._has_network:
            return {}
        uuids = [server.uuid for server in servers]
        answers = map_parallel(self._neutron.list_ports, uuids)
        return {uuid: answer.value or () for uuid, answer in zip(uuids, answers, strict=True)}

    def _add_candidates(self, reading: HostReading) -> HostReading:
        """Return the reading with what Placement offers, from one request for each need."""
        found = map(reading.get_need, reading.servers)
        needs = list(dict.fromkeys(need for need in found if need is not None))
        answers = map_parallel(self._ask_for, needs, stage="room on other hosts", unit="needs")
        candidates = dict(zip(needs, answers, strict=True))
        reading = d.replace(reading, candidates=candidates)
        # Only where no host has room is it worth asking what is missing.
        short = [need for need in needs if not list_offers(need, reading)]
        shortages = {need: self._find_shortages(need, reading) for need in short}
        return d.replace(reading, shortages=shortages, last_traits=self._find_last_traits(reading))

    def _ask_for(self, need: MoveNeed) -> AllocationCandidates:
        return self._placement.list_allocation_candidates(build_candidate_query(need))

    def _find_shortages(self, need: MoveNeed, reading: HostReading) -> list[str]:
        """Return the classes of which no other host has enough, each asked for alone.

        There are none if only the traits, the zone or the combination of the classes is missing.
        """
        short = []
        for cls, amount in need.resources:
            alone = MoveNeed(((cls, amount),), forbidden=need.forbidden)
            answer = self._ask_for(alone)
            if not list_offers(alone, d.replace(reading, candidates={alone: answer})):
                short.append(cls)
        return short

    def _find_last_traits(self, reading: HostReading) -> dict[str, list[str]]:
        """Return the traits of the host that flavors require and no other host has."""
        flavors = self._moves.list_flavors_by_trait()
        own_roots = [root for root, host in reading.nodes.items() if host == reading.host]
        own_traits = {
            trait for root in own_roots for trait in self._placement.get_part(root, "traits") or ()
        }
        others = reading.other_hosts
        last = {}
        for trait in sorted(own_traits & flavors.keys()):
            # A child of the root may have the trait, and Nova counts it for the whole host.
            roots = self._placement.list_roots_with_trait(trait)
            if not any(reading.nodes.get(root) in others for root in roots):
                last[trait] = flavors[trait]
        return last
