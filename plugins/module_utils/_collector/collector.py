# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""One reading of a cloud: first Placement, then Nova, then a closer look at what the listings
nominate.

The order is what makes a reading safe: what appears after Placement was read is not in it, and
Nova, asked later, knows everything that Placement's answers can stem from. The two long listings
are read side by side, for they only nominate: each nominated consumer is read again, in that order.
Nothing here concludes anything: `_rules.engine` does.
"""

from __future__ import annotations

import dataclasses as d
import time
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._clients.neutron import NeutronReader
from ansible_collections.osops.placement.plugins.module_utils._clients.nova import NovaReader
from ansible_collections.osops.placement.plugins.module_utils._clients.placement import (
    PlacementReader,
)
from ansible_collections.osops.placement.plugins.module_utils._collector import answering_cells
from ansible_collections.osops.placement.plugins.module_utils._collector.lookups import (
    LookupContext,
    Lookups,
    MigrationsAtHosts,
    merge_evidence,
)
from ansible_collections.osops.placement.plugins.module_utils._collector.nomination import (
    choose_hosts_for_server_details,
    choose_nodes_for_absence_proof,
    choose_nodes_for_server_listing,
    choose_samples,
    find_candidates,
    find_mismatched_nodes,
    find_roots_without_node,
    limit_candidates,
    sum_by_tree,
)
from ansible_collections.osops.placement.plugins.module_utils._collector.shards import (
    find_owning_root,
    list_providers_to_read,
    list_roots_in_shard,
    select_allocations,
)
from ansible_collections.osops.placement.plugins.module_utils._common.clock import get_utc_now
from ansible_collections.osops.placement.plugins.module_utils._common.errors import CloudError
from ansible_collections.osops.placement.plugins.module_utils._common.parallel import (
    map_parallel,
    run_parallel,
)
from ansible_collections.osops.placement.plugins.module_utils._models.nova import Server
from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
    ProviderDetails,
)
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import (
    Evidence,
    Scope,
    Snapshot,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.agreement import (
    have_same_compute_hosts,
    list_host_names,
    list_hosts_to_look_up,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import (
    SnapshotIndex,
    find_roots_of_hosts,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.soundness import (
    has_every_cell_answered,
    is_same_listing,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._clients.session import Session
    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Hypervisor,
        Service,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Allocation,
        Allocations,
        Provider,
        Resources,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Answer

# How many servers are looked at to see what these credentials may, and of how many hosts they are
# taken.
_SAMPLES = 3
_SAMPLED_HOSTS = 3
_SAMPLED_FROM = 20
# The pause in seconds before a cell that did not answer is asked once more.
_RETRY_PAUSE = 1.0
# With the wrong region everybody is nominated, and nothing may be changed whatever is found: enough
# to show what it looks like.
_MAX_CANDIDATES_WHEN_UNSOUND = 100
# How many rows of the listing of all migrations cost Nova what one request for those of one server
# does (docs/benchmark.md).
_ROWS_PER_REQUEST = 40
# Of how many providers the inventory is read only to be shown.
_MAX_DETAILED_PROVIDERS = 100


@d.dataclass(frozen=True)
class _AllocationListing:
    """Who holds what, of which trees (None: of all), and where only that was asked what is in use
    of each provider.
    """

    allocations: Mapping[str, Allocations] = d.field(default_factory=dict)
    trees: Collection[str] | None = None
    usages: Mapping[str, Resources] = d.field(default_factory=dict)


class Collector:
    """Reads snapshots from one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._placement = PlacementReader(session.placement)
        self._nova = NovaReader(session.compute)
        self._lookups = Lookups(self._placement, self._nova, NeutronReader(session.network))

    def collect(self, scope: Scope) -> Snapshot:
        """Read what `parse_scope` names, and look closely at each consumer that the listings
        nominate.
        """
        listed = self._read_listings(
            scope, with_servers=scope.mode == "full" and not scope.is_narrow
        )
        listed = self.add_servers(listed, choose_nodes_for_server_listing(listed))
        glances = {
            server.uuid: server
            for servers in map_parallel(
                self._nova.list_servers_on_host, choose_hosts_for_server_details(listed)
            )
            for server in servers
        }
        living = self._nova.list_server_uuids() if listed.hypervisors.value is None else ()
        candidates = find_candidates(listed, glances, living)
        looked_at = limit_candidates(candidates, listed, _MAX_CANDIDATES_WHEN_UNSOUND)
        listed = d.replace(
            listed, candidates=tuple(looked_at), left_out=len(candidates) - len(looked_at)
        )
        return self._add_evidence(self._add_details(listed), looked_at, server_details=glances)

    def collect_listings(self, with_servers: bool) -> Snapshot:
        """Read what concerns the cloud as a whole, and no consumer; if wanted with the servers of
        every host.
        """
        return self._read_listings(None, with_servers)

    def refresh_evidence(self, listings: Snapshot, consumers: Sequence[str]) -> Snapshot:
        """Ask every direct question about `consumers` anew, and whether all cells still answer;
        keep the listings.
        """
        # Whoever is asked for by uuid is named, as in a detection whose scope names consumers.
        return self._add_evidence(
            d.replace(listings, started_at=get_utc_now(), scope=Scope(consumers=tuple(consumers))),
            consumers,
            fresh=True,
        )

    def _read_listings(self, scope: Scope | None, with_servers: bool) -> Snapshot:
        """Read all listings, and of the claims those in `parse_scope`; none of them without a
        scope.
        """
        started = get_utc_now()
        services = self._list_services_with_retry()
        providers = self._placement.list_providers()
        hypervisors, claims = self._read_allocations(
            scope, providers, lambda: self._list_compute_nodes(services, providers, with_servers)
        )
        migrations = self._nova.list_migrations()
        # A dead cell is left out of that listing without a word.
        services_after = self._list_services()
        samples, projects = self._read_samples(hypervisors)
        if hypervisors.value and not with_servers and not any(sample.value for sample in samples):
            # Whether there is no live server, or these credentials see none, the hosts must say:
            # nova-compute writes only now and then how many servers it has.
            hypervisors = self._list_compute_nodes(services, providers, True)
            if any(node.servers for node in hypervisors.value or ()):
                samples, projects = self._read_samples(hypervisors)
        snapshot = Snapshot(
            cloud=self._session.cloud,
            scope=scope or Scope(),
            started_at=started,
            finished_at=get_utc_now(),
            providers=providers,
            allocations=claims.allocations,
            trees=None if claims.trees is None else tuple(sorted(claims.trees)),
            usages=claims.usages,
            services=services,
            hypervisors=hypervisors,
            migrations=migrations,
            samples=samples,
            control=self._read_control(samples),
            candidates=(),
            evidence={},
            services_after=services_after,
            aggregates=self._nova.list_aggregates(),
            sampled_projects=projects,
        )
        return self._add_host_lookups(snapshot, list_hosts_to_look_up(snapshot))

    def _list_services_with_retry(self) -> Answer[tuple[Service, ...]]:
        """List the services before anything else is read; a cell that does not answer is asked once
        more before it counts as down.
        """
        answer = self._list_services()
        if has_every_cell_answered(answer):
            return answer
        time.sleep(_RETRY_PAUSE)
        return self._list_services()

    def _list_services(self) -> Answer[tuple[Service, ...]]:
        """List the services. Once something was read, a cell that did not answer counts: it was
        left out of what was read before.
        """
        answer = self._nova.list_services()
        self._nova.believe_errors(not has_every_cell_answered(answer))
        return answer

    def _list_compute_nodes(
        self,
        services: Answer[tuple[Service, ...]],
        providers: Mapping[str, Provider],
        with_servers: bool,
    ) -> Answer[tuple[Hypervisor, ...]]:
        """List the compute nodes of all cells or, while one of them is down, of those that answer."""
        roots = [uuid for uuid, provider in providers.items() if provider.is_host]
        listing = self._nova.list_hypervisors(with_servers, roots)
        if listing.value is not None or listing.status < 500:
            return listing
        # The cell may have gone down since the services were listed.
        known = services if not has_every_cell_answered(services) else self._list_services()
        if known.value is None or not have_same_compute_hosts(services, known):
            # Workers that do not know the same cells: which hosts are left out is not known then.
            return listing
        if has_every_cell_answered(known):
            # It is back, and if it was away while something else was read, the answers of others
            # will show it.
            return self._nova.list_hypervisors(with_servers, roots)
        return answering_cells.list_compute_nodes(self._nova, known, providers, with_servers)

    def _read_allocations(
        self,
        scope: Scope | None,
        providers: Mapping[str, Provider],
        list_nodes: Callable[[], Answer[tuple[Hypervisor, ...]]],
    ) -> tuple[Answer[tuple[Hypervisor, ...]], _AllocationListing]:
        """Read who holds what in `parse_scope`; Nova's compute nodes are listed meanwhile, or
        before where they say what to read.
        """
        if scope is None:
            return list_nodes(), _AllocationListing()
        if scope.is_narrow:
            hypervisors = list_nodes()
            trees: Collection[str] = self._find_named_roots(scope, hypervisors, providers)
            return hypervisors, _AllocationListing(
                {
                    **self._read_allocations_in_trees(trees, providers),
                    **self._read_named_consumers(scope),
                },
                trees,
            )
        if scope.mode == "triage":
            usages, hypervisors = run_parallel(
                lambda: self._placement.list_usages(providers), list_nodes
            )
            nodes = {node.uuid: node for node in hypervisors.value or ()}
            strangers = {uuid for uuid, provider in providers.items() if provider.is_host} - set(
                nodes
            )
            trees = {
                *find_mismatched_nodes(nodes, sum_by_tree(usages.items(), providers)),
                *strangers,
            }
            return hypervisors, _AllocationListing(
                self._read_allocations_in_trees(trees, providers), trees, usages
            )
        shard = scope.shard
        wanted = list_providers_to_read(shard, providers) if shard else providers
        allocations_by_consumer, hypervisors = run_parallel(
            lambda: self._placement.list_allocations_on_providers(wanted), list_nodes
        )
        if shard is None:
            return hypervisors, _AllocationListing(allocations_by_consumer)
        return hypervisors, _AllocationListing(
            select_allocations(shard, allocations_by_consumer, providers),
            list_roots_in_shard(shard, providers, hypervisors.value or ()),
        )

    @staticmethod
    def _find_named_roots(
        scope: Scope, nodes: Answer[tuple[Hypervisor, ...]], providers: Mapping[str, Provider]
    ) -> frozenset[str]:
        if scope.hosts and nodes.value is None:
            raise CloudError(
                f"Nova answered {nodes.status} when asked for its compute nodes, so hosts cannot "
                "be found: a cell is not answering."
            )
        return find_roots_of_hosts(scope.hosts, nodes.value or (), providers)

    def _read_allocations_in_trees(
        self, trees: Collection[str], providers: Mapping[str, Provider]
    ) -> dict[str, Allocations]:
        return self._placement.list_allocations_on_providers(
            uuid for uuid, provider in providers.items() if provider.root in trees
        )

    def _read_named_consumers(self, scope: Scope) -> dict[str, Allocations]:
        """Return what the named consumers hold, and the migrations of those that are servers."""
        moves = map_parallel(self._nova.list_migrations_of_server, scope.consumers)
        consumers = {
            *scope.consumers,
            *(move.uuid for answer in moves for move in answer.value or ()),
        }
        return {
            allocation.consumer: allocation.resources
            for allocation in self._placement.get_allocations(consumers)
        }

    def add_servers(self, snapshot: Snapshot, nodes: Collection[str]) -> Snapshot:
        """Ask for the servers of those compute nodes that were not yet asked for them."""
        listed = snapshot.hypervisors.value or ()
        wanted = [node for node in listed if node.servers is None and node.uuid in nodes]
        ask = (
            self._list_servers_on_node if snapshot.every_cell_listed else self._list_servers_at_host
        )
        found = dict(zip((node.uuid for node in wanted), map_parallel(ask, wanted), strict=True))
        asked = tuple(
            d.replace(node, servers=found[node.uuid]) if node.uuid in found else node
            for node in listed
        )
        return (
            d.replace(snapshot, hypervisors=d.replace(snapshot.hypervisors, value=asked))
            if wanted
            else snapshot
        )

    def _list_servers_on_node(self, node: Hypervisor) -> tuple[str, ...] | None:
        try:
            return self._nova.list_hypervisor_servers(node.uuid)
        except CloudError:
            # Nova looks for a compute node in one cell after the other, and so does not find it
            # beyond one that is down.
            if has_every_cell_answered(self._nova.list_services()):
                raise
            return self._list_servers_at_host(node)

    def _list_servers_at_host(self, node: Hypervisor) -> tuple[str, ...] | None:
        return self._nova.list_server_uuids_on_host(node.host).value

    def _add_evidence(
        self,
        snapshot: Snapshot,
        consumers: Sequence[str],
        fresh: bool = False,
        server_details: Mapping[str, Server] | None = None,
    ) -> Snapshot:
        """Add the dossiers of `consumers`, and whether all cells still answer after that.

        Placement, then the migrations, then the server: an evacuation finishes in this order, and
        read the other way round it shows the old host together with a finished evacuation.

        fresh: whether nothing that a listing said may stand for a direct answer.
        server_details: as `_collector.shards.find_owning_root` takes them: of a shard, only what it
            owns is looked at.
        """
        index = SnapshotIndex(snapshot)
        subjects = {index.migrations[uuid].server for uuid in consumers if uuid in index.migrations}
        everybody = [*consumers, *sorted(subjects - set(consumers))]
        allocations = dict(
            zip(everybody, map_parallel(self._placement.get_allocation, everybody), strict=True)
        )
        if snapshot.scope.shard:
            consumers = [
                uuid
                for uuid in consumers
                if _is_in_shard(allocations[uuid], index, server_details or {})
            ]
        allocations_by_consumer = [
            answer.value.resources for answer in allocations.values() if answer.value
        ]
        snapshot = self._add_traits(snapshot, allocations_by_consumer)
        snapshot = self._add_host_lookups_of_roots(
            snapshot, find_roots_without_node(index, allocations_by_consumer)
        )
        index = SnapshotIndex(snapshot)
        migrations_of = self._nova.list_migrations_of_server
        if not fresh and len(index.migrations) <= _ROWS_PER_REQUEST * len(everybody):
            migrations_of = SnapshotIndex(
                d.replace(snapshot, migrations=self._nova.list_migrations())
            ).get_listed_migrations
        look = LookupContext(
            index, allocations, migrations_of, fresh, MigrationsAtHosts(self._nova)
        )
        asked = [
            some
            for some in map_parallel(
                lambda consumer: self._lookups.collect_evidence(consumer, look), consumers
            )
            if some
        ]
        evidence_by_uuid: dict[str, Evidence] = {}
        for evidence in (known for some in asked for known in some):
            evidence_by_uuid[evidence.uuid] = merge_evidence(
                evidence_by_uuid.get(evidence.uuid), evidence
            )
        looked_at = d.replace(
            snapshot,
            candidates=tuple(own.uuid for own, *_others in asked),
            evidence=evidence_by_uuid,
        )
        looked_at = self.add_servers(looked_at, choose_nodes_for_absence_proof(looked_at, fresh))
        looked_at = self._add_host_lookups(looked_at, list_hosts_to_look_up(looked_at))
        # An answer that differs from the first stays: nothing that follows makes it good.
        unchanged = is_same_listing(snapshot.services, snapshot.services_after)
        after = self._list_services() if unchanged else snapshot.services_after
        return d.replace(
            looked_at,
            services_after=after,
            retried=self._count_retries(),
            finished_at=get_utc_now(),
        )

    def _count_retries(self) -> int:
        return self._placement.retried + self._nova.retried

    def _add_host_lookups_of_roots(self, snapshot: Snapshot, roots: Iterable[str]) -> Snapshot:
        """Look directly for the hosts that may stand behind root providers without a compute node."""
        index = SnapshotIndex(snapshot)
        if index.failed_checks:
            return snapshot
        names = {name for root in roots for name in list_host_names(index.get_name(root))}
        return self._add_host_lookups(snapshot, names - index.hosts_listed)

    def _add_host_lookups(self, snapshot: Snapshot, names: Iterable[str]) -> Snapshot:
        wanted = sorted(set(names) - set(snapshot.host_lookups))
        found = dict(zip(wanted, map_parallel(self._nova.get_host, wanted), strict=True))
        return (
            d.replace(snapshot, host_lookups={**snapshot.host_lookups, **found})
            if wanted
            else snapshot
        )

    def _add_details(self, snapshot: Snapshot) -> Snapshot:
        """Add what those providers have that are no compute node, whose capacity was asked for, or
        that a nominated consumer holds.

        Of the last only if they are few: what they have explains nothing, and costs a request each.
        """
        if snapshot.hypervisors.value is None:
            return snapshot
        index, scope = SnapshotIndex(snapshot), snapshot.scope
        named = {root.uuid for root in index.roots if index.covers(root.uuid)}
        strangers = (
            named - set(index.nodes)
            if scope.includes_any("orphaned_provider", "name_conflict")
            else set()
        )
        if strangers and not snapshot.cloud.other_novas:
            # All of them, in scope or not: one whose host goes by another name is given away by its
            # neighbours.
            snapshot = self._add_host_lookups_of_roots(
                snapshot, {root.uuid for root in index.roots} - set(index.nodes)
            )
        asked_for = (
            named & set(index.nodes)
            if scope.is_narrow or "capacity_mismatch" in scope.kinds
            else set()
        )
        held = {
            provider
            for uuid in snapshot.candidates
            for provider in snapshot.allocations.get(uuid, ())
        }
        if scope.shard:
            held = {
                provider for provider in held if index.covers(snapshot.providers[provider].root)
            }
        wanted = (asked_for | (held if len(held) <= _MAX_DETAILED_PROVIDERS else set())) & set(
            snapshot.providers
        )
        details = self._placement.get_details(sorted(wanted), ("inventories",))
        return d.replace(
            snapshot,
            details={
                **details,
                **self._placement.get_details(sorted(strangers), ("inventories", "traits")),
            },
        )

    def _add_traits(
        self, snapshot: Snapshot, allocations_by_consumer: Iterable[Allocations]
    ) -> Snapshot:
        """Add the traits of those roots of `holdings` that are no compute node's: whether they were
        one's, these say.
        """
        index = SnapshotIndex(snapshot)
        if snapshot.hypervisors.value is None:
            return snapshot
        held = (
            snapshot.providers[provider]
            for allocations in allocations_by_consumer
            for provider in allocations
            if provider in snapshot.providers
        )
        roots = {provider.root for provider in held if not provider.sharing}
        wanted = sorted(
            root for root in roots if root not in index.nodes and not index.has_nova_trait(root)
        )
        if not wanted:
            return snapshot
        told = self._placement.get_details(wanted, ("traits",))
        known = {root: snapshot.details.get(root, ProviderDetails()) for root in told}
        return d.replace(
            snapshot,
            details={
                **snapshot.details,
                **{
                    root: d.replace(known[root], traits=details.traits)
                    for root, details in told.items()
                },
            },
        )

    def _read_control(self, samples: Sequence[Answer[Server]]) -> Answer[tuple[Server, ...]] | None:
        """Ask the listing of the deleted for a live server, which must not be in it; one that was
        deleted just then tells nothing.
        """
        control = None
        for server in (sample.value for sample in samples if sample.value):
            control = self._nova.find_deleted_server(server.uuid)
            if not control.value or self._nova.get_server(server.uuid).status != 404:
                break
        return control

    def _read_samples(
        self, hypervisors: Answer[tuple[Hypervisor, ...]]
    ) -> tuple[tuple[Answer[Server], ...], tuple[str | None, ...]]:
        """Look directly at some servers of hosts that have any, those of other projects first;
        return also their projects.

        The newest servers of the cloud are taken only where no host shows one: they may be failed
        boots, which have no host.
        """
        hosts = sorted(
            {
                node.host
                for node in hypervisors.value or ()
                if node.servers or (node.servers is None and node.running_vms)
            }
        )
        apart = hosts[:: max(1, len(hosts) // _SAMPLED_HOSTS)][:_SAMPLED_HOSTS]
        of_hosts = map_parallel(
            lambda host: self._nova.list_newest_servers_on_host(host, _SAMPLED_FROM), apart
        )
        listed = [server for answer in of_hosts for server in answer.value or ()]
        if not listed:
            newest = self._nova.list_newest_servers(_SAMPLED_FROM)
            listed = list(newest.value or ())
            unread = [answer for answer in (*of_hosts, newest) if answer.value is None]
            if not listed and unread:
                raise CloudError(
                    f"Nova answered {unread[0].status} when asked for some servers to look at "
                    f"({unread[0].request})."
                )
        placed = [server for server in listed if server.host]
        chosen = choose_samples(placed, self._session.project, _SAMPLES)
        looked_up = map_parallel(lambda server: self._nova.get_server(server.uuid), chosen)
        return tuple(looked_up), tuple(server.project for server in chosen)


def _is_in_shard(
    answer: Answer[Allocation], index: SnapshotIndex, server_details: Mapping[str, Server]
) -> bool:
    """Tell whether what is found out about a consumer is told by the shard that is being read."""
    allocation = answer.value
    root = (
        find_owning_root(allocation.consumer, allocation.resources, index, server_details)
        if allocation
        else None
    )
    return root is not None and index.covers(root)
