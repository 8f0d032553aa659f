# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything that is read about the candidates of one reading, after its listings."""

from __future__ import annotations

import dataclasses as d
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ..._common.clock import get_utc_now
from ..._common.parallel import map_parallel, run_parallel
from ..facts.agreement import list_hosts_to_look_up
from ..facts.index import ListingsIndex, MigrationListing, find_nova_roots
from ..facts.services import is_same_listing
from ..facts.soundness import list_failed_checks
from ..models.nova import Migration, Server
from ..models.placement import Allocation, Provider, ProviderDetails
from ..models.snapshot import (
    ALLOCATION,
    MISSING_PROVIDERS,
    NOT_ASKED,
    Answer,
    Evidence,
    ListedAmounts,
    Listings,
    Snapshot,
)
from ..options.scope import is_needed
from . import order
from .allocations import find_owning_root
from .compute_nodes import add_servers, list_services
from .listings import HostLookups, find_roots_without_node
from .others import MirrorReader
from .providers import (
    add_inventories,
    list_covered_roots_without_node,
    read_details,
    read_missing_traits,
)
from .servers import Context, Look, merge_evidence
from .sources import Clients, Sources

# How many rows of the listing of all migrations cost Nova what one request for those of one server
# does (docs/benchmark.md).
_ROWS_PER_REQUEST = 40
# For more compute nodes without a provider all providers are listed again.
_MAX_LACKING = 100


@d.dataclass
class EvidenceReader:
    """Reads one snapshot to its end, from the index of its listings.

    context: what is looked up, without what is read here.
    started_at: of the snapshot; a renewed proof has its own, and its own scope, whatever the
        listings have.
    """

    clients: Clients
    mirror: MirrorReader
    context: Context
    started_at: str

    def __post_init__(self) -> None:
        self.placement, self.nova = self.clients.placement, self.clients.nova
        self.index, self.scope = self.context.index, self.context.scope
        self._hosts = HostLookups(self.nova, self.index.listings)
        self._details: dict[str, ProviderDetails] = {}

    def read_providers(self) -> None:
        """Read what a rule has to know of the providers in scope."""
        index = self.index
        if index.listings.hypervisors.value is None:
            return
        without_node = list_covered_roots_without_node(index)
        if without_node and not index.listings.cloud.other_novas:
            # All of them, in scope or not: if the listings leave out a cell, the lookup of any host
            # there shows it, also for a provider that has another name than its host.
            self._hosts.look_up_roots(index, {root.uuid for root in index.roots} - set(index.nodes))
        self._details = read_details(self.placement, index, without_node)

    def finish(
        self,
        consumers: Sequence[str],
        server_details: Mapping[str, Server] | None = None,
        left_out: int = 0,
        listed_amounts: ListedAmounts | None = None,
    ) -> Snapshot:
        """Look up `consumers`, list the services again, and return the finished snapshot.

        server_details: as `reading.allocations.find_owning_root` takes them. A shard looks up only
            the consumers that it reports.
        left_out: how many more candidates there would have been.
        listed_amounts: what the listings say of the amounts of servers.
        """
        listed_amounts = listed_amounts or ListedAmounts()
        self.context = d.replace(self.context, listed_amounts=listed_amounts)
        uuids = self._list_uuids(consumers)
        sources = Sources(self.clients, self.index, uuids)
        answers = self._read_allocations(sources, uuids)
        named = consumers
        if self.scope.shard:
            consumers = self._select_in_shard(consumers, answers, server_details or {})
        allocations = [answer.value.resources for answer in answers.values() if answer.value]
        # Without a listing of compute nodes, every root would seem to be without one.
        has_nodes = self.index.listings.hypervisors.value is not None
        if has_nodes:
            self._details = read_missing_traits(
                self.placement, self.index, allocations, self._details
            )
        without_node = find_roots_without_node(self.index, allocations)
        self._hosts.look_up_roots(self.index, without_node)
        nova_roots = find_nova_roots(self._details).difference(self.index.nodes)
        other_novas: Answer[tuple[str, ...]] = NOT_ASKED
        # Beside a Nova of the catalogue, whose compute nodes they may be, nothing more decides.
        if has_nodes and nova_roots and not self.index.listings.cloud.other_novas:
            other_novas = self.clients.query_other_novas()
            self._hosts.search_roots(self.index, nova_roots)
        # In parallel, because no proof that an allocation is orphaned rests on the inventories.
        (candidates, evidence), details = run_parallel(
            lambda: self._look_up_consumers(sources, consumers, answers),
            lambda: (
                add_inventories(self.placement, self.index, named, self._details)
                if has_nodes and not self.context.fresh
                else self._details
            ),
        )
        return Snapshot(
            **vars(self._read_last_listings(evidence)),
            candidates=candidates,
            evidence=evidence,
            details=details,
            host_trees=dict(sorted(sources.host_trees.answers.items())),
            host_allocations=dict(sorted(sources.host_allocations.answers.items())),
            host_totals=dict(sorted(sources.host_totals.answers.items())),
            unlisted_moves=next(iter(sources.unlisted_moves.answers.values()), NOT_ASKED),
            listed_amounts=listed_amounts,
            other_novas=other_novas,
            providers_again=self._read_missing_providers(),
            left_out=left_out,
            retried=self.placement.retried + self.nova.retried,
            finished_at=get_utc_now(),
            mirror_again=self.mirror.read_again(self.index),
        )

    def _read_missing_providers(self) -> dict[str, Provider] | None:
        """Read again the providers that compute nodes lack; None where none is, or may be, lacking.

        nova-compute may have created them since the providers were listed.
        """
        index = self.index
        lacking = [node for node in index.nodes.values() if node.uuid not in index.providers]
        is_wanted = is_needed(MISSING_PROVIDERS, self.scope) and not self.context.fresh
        if not lacking or not is_wanted or list_failed_checks(index.listings):
            return None
        if len(lacking) > _MAX_LACKING:
            return self.placement.list_providers()
        wanted = {name for node in lacking for name in (node.uuid, node.name)}
        return self.placement.list_providers_in_trees(sorted(wanted))

    def _read_last_listings(self, evidence: Mapping[str, Evidence]) -> Listings:
        """Return the listings as they are at the end of the reading.

        The evidence says which hosts have to be asked for their servers and looked up. The services
        are listed last, because a cell may have gone down during the lookups.
        """
        listings = self.index.listings
        nodes = choose_nodes_for_absence_proof(self.index, evidence)
        hypervisors = add_servers(self.nova, listings.hypervisors, nodes)
        self._hosts.look_up(list_hosts_to_look_up(listings, evidence.values()))
        services_after = listings.services_after
        # An answer that differs from the first stays: nothing that follows makes it good.
        if is_same_listing(listings.services, services_after):
            services_after = list_services(self.nova)
        return d.replace(
            self._hosts.add_to(listings),
            started_at=self.started_at,
            scope=self.scope,
            hypervisors=hypervisors,
            services_after=services_after,
        )

    def _list_uuids(self, consumers: Sequence[str]) -> list[str]:
        """Return the consumers, and the servers of those that are migrations."""
        migrations = self.index.migrations
        servers = {migrations[uuid].server for uuid in consumers if uuid in migrations}
        return [*consumers, *sorted(servers - set(consumers))]

    def _read_allocations(
        self, sources: Sources, uuids: Sequence[str]
    ) -> dict[str, Answer[Allocation]]:
        """Return the allocation of each consumer: the first row of the table."""
        answers = map_parallel(
            lambda uuid: order.ask(ALLOCATION, sources, None, uuid),
            uuids,
            self.placement.workers,
            stage="allocations",
            unit="candidates",
        )
        return dict(zip(uuids, answers, strict=True))

    def _select_in_shard(
        self,
        consumers: Sequence[str],
        answers: Mapping[str, Answer[Allocation]],
        server_details: Mapping[str, Server],
    ) -> list[str]:
        """Return those of the consumers that the shard which is being read reports."""

        def is_in_shard(uuid: str) -> bool:
            allocation = answers[uuid].value
            if allocation is None:
                return False
            root = find_owning_root(uuid, allocation.resources, self.index, server_details)
            return root is not None and self.index.covers(root)

        return list(filter(is_in_shard, consumers))

    def _look_up_consumers(
        self,
        sources: Sources,
        consumers: Sequence[str],
        allocations: Mapping[str, Answer[Allocation]],
    ) -> tuple[tuple[str, ...], dict[str, Evidence]]:
        """Look up each of the consumers; those with evidence are the candidates."""
        context = d.replace(self.context, nova_roots=find_nova_roots(self._details))
        sources.list_migrations = self._choose_migration_source(len(allocations))
        owned = self._list_servers_in_scope(allocations.values())
        candidates = []
        evidence_by_uuid: dict[str, Evidence] = {}
        for collected in map_parallel(
            lambda consumer: look_up(consumer, context, sources, allocations, owned),
            consumers,
            self.nova.workers,
            stage="lookups",
            unit="candidates",
        ):
            if collected:
                candidates.append(collected[0].uuid)
            # Two migrations may have the same server, each with lookups of its own.
            for evidence in collected:
                merged = merge_evidence(evidence_by_uuid.get(evidence.uuid), evidence)
                evidence_by_uuid[evidence.uuid] = merged
        return tuple(candidates), evidence_by_uuid

    def _list_servers_in_scope(self, allocations: Iterable[Answer[Allocation]]) -> frozenset[str]:
        """Return the servers of the projects in scope, if Placement has others for a consumer.

        Nova's project counts, which is only known of a server that is looked up.
        """
        projects = self.context.scope.projects
        held = [answer.value for answer in allocations if answer.value and answer.value.resources]
        if not projects or all(one.project in projects for one in held):
            return frozenset()
        return frozenset().union(*map(self.nova.list_server_uuids, projects))

    def _choose_migration_source(
        self, lookups: int
    ) -> Callable[[str], Answer[tuple[Migration, ...]]]:
        """Return what answers which migrations a server has.

        lookups: for how many servers it is asked at most.
        """
        # One listing of all migrations may cost less than a request for each consumer. It is a new
        # one, because the first was read before the allocations of the consumers.
        few = _ROWS_PER_REQUEST * lookups
        if lookups and not self.context.fresh and len(self.index.migrations) <= few:
            return MigrationListing(self.nova.list_migrations()).get_part
        return self.nova.list_migrations_of_server


def look_up(
    consumer: str,
    context: Context,
    sources: Sources,
    allocations: Mapping[str, Answer[Allocation]],
    owned: Collection[str] = (),
) -> list[Evidence]:
    """Look up one consumer, and the server whose migration it is or its migrations.

    Return the evidence about each of them, that about the consumer first; [] when it is out of
    scope.

    allocations: the answers by consumer, all read before the first request to Nova.
    owned: the servers of the projects in scope for which Placement may have another project.
    """
    allocation, projects = allocations[consumer].value, context.scope.projects
    holds = allocation is not None and bool(allocation.resources)
    migration = context.index.migrations.get(consumer)
    subject = migration.server if migration else consumer
    charged = allocation.project if allocation and holds else None
    if projects and holds and charged not in projects and subject not in owned:
        return []
    # A migration without an allocation is not judged.
    if migration and not holds:
        return []
    look = Look(context, subject, allocations[subject], migration, allocation)
    order.walk(order.PROOF[1:], sources, look)
    # Placement has no project of a consumer without an allocation, and may have a wrong one.
    server = look.evidence.server.value
    if projects and (server.project if server else charged) not in projects:
        return []
    if migration:
        order.walk(order.PROOF_OF_MIGRATION, sources, look)
        return [Evidence(consumer, allocations[consumer]), look.evidence]
    order.walk(order.PROOF_OF_SERVER, sources, look)
    return [look.evidence, *look.of_migrations]


def choose_nodes_for_absence_proof(
    index: ListingsIndex, evidence_by_uuid: Mapping[str, Evidence]
) -> Collection[str]:
    """Return the compute nodes to be asked for their servers before a server counts as absent.

    A search of the cells does not replace this: Nova says nothing when it leaves out a cell whose
    servers it cannot read (nova/compute/multi_cell_list.py). A request for a host of that cell
    fails.
    """
    absent = [
        evidence
        for evidence in evidence_by_uuid.values()
        if evidence.server.status == 404 or _has_no_host(evidence.server.value)
    ]
    # It may be where it or a migration of it has an allocation, and at both ends of each.
    migrations: list[Migration] = []
    for evidence in absent:
        migrations += index.get_listed_migrations(evidence.uuid).value or ()
    looked_up = {row.uuid for row in migrations} & evidence_by_uuid.keys()
    roots: set[str | None] = set()
    for evidence in (*absent, *(evidence_by_uuid[uuid] for uuid in looked_up)):
        if evidence.allocation.value:
            roots.update(map(index.get_root, evidence.allocation.value.resources))
    ends = {host for row in migrations for host in (row.source_compute, row.dest_compute)}
    return {root for root, node in index.nodes.items() if root in roots or node.host in ends}


def _has_no_host(server: Server | None) -> bool:
    return server is not None and not server.host
