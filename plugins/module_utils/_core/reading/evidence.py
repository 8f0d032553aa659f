# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything that is read about the candidates of one reading, after its listings."""

from __future__ import annotations

import dataclasses as d
import functools
from collections.abc import Callable, Mapping, Sequence

from ..._common.clock import get_utc_now
from ..._common.parallel import ReadOnce, map_parallel, run_parallel
from ..clients.nova import NovaReader
from ..clients.placement import PlacementReader
from ..facts.agreement import list_hosts_to_look_up
from ..facts.index import find_nova_roots
from ..facts.listings_index import ListingsIndex, MigrationListing
from ..facts.soundness import is_same_listing
from ..models.nova import Migration, Server
from ..models.placement import Allocation, Allocations, ProviderDetails
from ..models.resource_request import PciAlias
from ..models.snapshot import Answer, Evidence, ListedAmounts, Listings, Scope, Snapshot
from .candidates import UnlistedMovesReader
from .compute_nodes import add_servers, list_services
from .hosts_to_ask import choose_nodes_for_absence_proof
from .listings import HostLookups, find_roots_without_node, read_host_allocations
from .mirror import MirrorReader
from .providers import (
    add_inventories,
    list_covered_roots_without_node,
    read_details,
    read_former_tree,
    read_missing_traits,
)
from .servers import LookupContext, Lookups, MigrationsAtHosts, merge_evidence
from .shards import find_owning_root

# How many rows of the listing of all migrations cost Nova what one request for those of one server
# does (docs/benchmark.md).
_ROWS_PER_REQUEST = 40


@d.dataclass
class EvidenceReader:
    """Reads one snapshot to its end, from the index of its listings.

    started_at, scope: of the snapshot; a renewed proof has its own, whatever the listings have.
    fresh: whether nothing that a listing said may replace a direct answer.
    pci_aliases: as in the policy.
    with_amounts: whether the amounts of every server are compared.
    """

    placement: PlacementReader
    nova: NovaReader
    lookups: Lookups
    mirror: MirrorReader
    index: ListingsIndex
    started_at: str
    scope: Scope
    fresh: bool
    pci_aliases: Mapping[str, PciAlias]
    with_amounts: bool

    def __post_init__(self) -> None:
        self._host_trees = ReadOnce(self.placement.query_host_tree)
        self._host_allocations = ReadOnce(
            functools.partial(read_host_allocations, self.placement, self.nova, self.index)
        )
        self._unlisted_moves = UnlistedMovesReader(self.nova)
        self._hosts = HostLookups(self.nova, self.index)
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
            self._hosts.look_up_roots({root.uuid for root in index.roots} - set(index.nodes))
        self._details = read_details(self.placement, index, without_node)

    def finish(
        self,
        consumers: Sequence[str],
        server_details: Mapping[str, Server] | None = None,
        left_out: int = 0,
        listed_amounts: ListedAmounts | None = None,
    ) -> Snapshot:
        """Look up `consumers`, list the services again, and return the finished snapshot.

        server_details: as `reading.shards.find_owning_root` takes them. A shard looks up only
            the consumers that it reports.
        left_out: how many more candidates there would have been.
        listed_amounts: what the listings say of the amounts of servers.
        """
        listed_amounts = listed_amounts or ListedAmounts()
        answers = self._read_allocations_of(consumers)
        named = consumers
        if self.scope.shard:
            consumers = self._select_in_shard(consumers, answers, server_details or {})
        allocations = [answer.value.resources for answer in answers.values() if answer.value]
        self._read_traits(allocations)
        self._hosts.look_up_roots(find_roots_without_node(self.index, allocations))
        # In parallel, because no proof that an allocation is orphaned rests on the inventories.
        (candidates, evidence), details = run_parallel(
            lambda: self._look_up_consumers(consumers, answers, listed_amounts),
            lambda: self._read_inventories(named),
        )
        return Snapshot(
            **vars(self._read_last_listings(evidence)),
            candidates=candidates,
            evidence=evidence,
            details=details,
            host_trees=dict(sorted(self._host_trees.answers.items())),
            host_allocations=dict(sorted(self._host_allocations.answers.items())),
            unlisted_moves=self._unlisted_moves.answer,
            listed_amounts=listed_amounts,
            left_out=left_out,
            retried=self.placement.retried + self.nova.retried,
            finished_at=get_utc_now(),
            mirror_again=self.mirror.read_again(self.index),
        )

    def _read_traits(self, allocations: Sequence[Allocations]) -> None:
        """Add the traits of the roots in `allocations` that are not a compute node's."""
        # Without a listing of compute nodes, every root would seem to be without one.
        if self.index.listings.hypervisors.value is None:
            return
        self._details = read_missing_traits(self.placement, self.index, allocations, self._details)

    def _read_inventories(self, consumers: Sequence[str]) -> dict[str, ProviderDetails]:
        """Return the details, with the inventories of the providers that consumers name."""
        if self.fresh or self.index.listings.hypervisors.value is None:
            return self._details
        return add_inventories(self.placement, self.index, consumers, self._details)

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
            listings,
            started_at=self.started_at,
            scope=self.scope,
            hypervisors=hypervisors,
            host_lookups=self._hosts.answers,
            services_after=services_after,
        )

    def _read_allocations_of(self, consumers: Sequence[str]) -> dict[str, Answer[Allocation]]:
        """Return the allocations of the consumers, and of the servers of those that migrate."""
        servers = set()
        for uuid in consumers:
            if uuid in self.index.migrations:
                servers.add(self.index.migrations[uuid].server)
        uuids = [*consumers, *sorted(servers - set(consumers))]
        answers = map_parallel(
            self.placement.get_allocation,
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
        selected = []
        for uuid in consumers:
            allocation = answers[uuid].value
            if allocation is None:
                continue
            root = find_owning_root(uuid, allocation.resources, self.index, server_details)
            if root is not None and self.index.covers(root):
                selected.append(uuid)
        return selected

    def _look_up_consumers(
        self,
        consumers: Sequence[str],
        allocations: Mapping[str, Answer[Allocation]],
        listed_amounts: ListedAmounts,
    ) -> tuple[tuple[str, ...], dict[str, Evidence]]:
        """Look up each of the consumers; those with evidence are the candidates."""
        context = LookupContext(
            index=self.index,
            scope=self.scope,
            allocations=allocations,
            migrations_of=self._choose_migration_source(len(allocations)),
            at_hosts=MigrationsAtHosts(self.nova),
            former_trees=ReadOnce(
                functools.partial(read_former_tree, self.placement, self.nova, self.index)
            ),
            host_trees=self._host_trees,
            host_allocations=self._host_allocations,
            unlisted_moves=self._unlisted_moves,
            device_profiles=self.lookups.start_device_profiles(),
            nova_roots=find_nova_roots(self._details),
            fresh=self.fresh,
            listed_amounts=listed_amounts,
            with_amounts=self.with_amounts,
            pci_aliases=self.pci_aliases,
        )
        candidates = []
        evidence_by_uuid: dict[str, Evidence] = {}
        for collected in map_parallel(
            lambda consumer: self.lookups.collect_evidence(consumer, context),
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

    def _choose_migration_source(
        self, lookups: int
    ) -> Callable[[str], Answer[tuple[Migration, ...]]]:
        """Return what answers which migrations a server has.

        lookups: for how many servers it is asked at most.
        """
        # One listing of all migrations may cost less than a request for each consumer. It is a new
        # one, because the first was read before the allocations of the consumers.
        if not self.fresh and len(self.index.migrations) <= _ROWS_PER_REQUEST * lookups:
            return MigrationListing(self.nova.list_migrations()).get_part
        return self.nova.list_migrations_of_server
