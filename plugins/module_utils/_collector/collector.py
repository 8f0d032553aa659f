# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""One reading of a cloud: first Placement, then Nova, then direct questions about each candidate.

The order is what makes a reading safe: what appears after Placement was read is not in it, and
Nova, asked later, knows everything from which Placement's answers can stem. The two long listings
are read side by side, for they only name candidates: each candidate is read again, in that order.
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

# How many servers are read directly to see what these credentials may, of how many hosts they are
# taken, and from how many servers of each.
_SAMPLES = 3
_SAMPLED_HOSTS = 3
_SAMPLED_FROM = 20
# The pause in seconds before a cell that did not answer is asked once more.
_RETRY_PAUSE = 1.0
# With the wrong region every consumer is a candidate, and nothing may be changed whatever they are:
# enough to show what such a reading is like.
_MAX_CANDIDATES_WHEN_UNSOUND = 100
# How many rows of the listing of all migrations cost Nova what one request for those of one server
# does (docs/benchmark.md).
_ROWS_PER_REQUEST = 40
# Of how many providers the inventory is read only to be shown.
_MAX_DETAILED_PROVIDERS = 100


@d.dataclass(frozen=True)
class _AllocationListing:
    """The allocations that were read, by consumer.

    trees: the roots of the trees of which they were read, None for all.
    usages: what is in use of each provider, where only that was asked for.
    """

    allocations: Mapping[str, Allocations] = d.field(default_factory=dict)
    trees: Collection[str] | None = None
    usages: Mapping[str, Resources] = d.field(default_factory=dict)

    @property
    def sorted_trees(self) -> tuple[str, ...] | None:
        """The trees in order, as a snapshot keeps them."""
        if self.trees is None:
            return None
        return tuple(sorted(self.trees))


class Collector:
    """Reads snapshots from one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._placement = PlacementReader(session.placement)
        self._nova = NovaReader(session.compute)
        self._lookups = Lookups(self._placement, self._nova, NeutronReader(session.network))

    def collect(self, scope: Scope) -> Snapshot:
        """Return a snapshot of what `scope` names, with evidence about each candidate.

        Raises CloudError when the listings cannot be read.
        """
        with_servers = scope.mode == "full" and not scope.is_narrow
        listed = self._read_listings(scope, with_servers)
        listed = self.add_servers(listed, choose_nodes_for_server_listing(listed))
        server_details = self._read_server_details(listed)
        living: Collection[str] = ()
        if listed.hypervisors.value is None:
            living = self._nova.list_server_uuids()
        candidates = find_candidates(listed, server_details, living)
        kept = limit_candidates(candidates, listed, _MAX_CANDIDATES_WHEN_UNSOUND)
        left_out = len(candidates) - len(kept)
        listed = d.replace(listed, candidates=tuple(kept), left_out=left_out)
        return self._add_evidence(self._add_details(listed), kept, server_details=server_details)

    def _read_server_details(self, snapshot: Snapshot) -> dict[str, Server]:
        """Return the servers, by uuid, of the hosts where the listings alone do not settle them."""
        hosts = choose_hosts_for_server_details(snapshot)
        details = {}
        for servers in map_parallel(self._nova.list_servers_on_host, hosts):
            for server in servers:
                details[server.uuid] = server
        return details

    def collect_listings(self, with_servers: bool) -> Snapshot:
        """Return what concerns the cloud as a whole, and no consumer.

        with_servers: whether the compute nodes come with the servers of their hosts.
        """
        return self._read_listings(None, with_servers)

    def refresh_evidence(self, listings: Snapshot, consumers: Sequence[str]) -> Snapshot:
        """Return the snapshot with every direct question about `consumers` asked again.

        Whether all cells still answer is asked again too; the listings stay.
        """
        # A consumer that is asked for by uuid is named, as in a detection whose scope names
        # consumers.
        scope = Scope(consumers=tuple(consumers))
        renewed = d.replace(listings, started_at=get_utc_now(), scope=scope)
        return self._add_evidence(renewed, consumers, fresh=True)

    def _read_listings(self, scope: Scope | None, with_servers: bool) -> Snapshot:
        """Read all listings, and the allocations in `scope`; no allocations without a scope."""
        started = get_utc_now()
        services = self._list_services_with_retry()
        providers = self._placement.list_providers()
        hypervisors, listing = self._read_allocations(
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
            allocations=listing.allocations,
            trees=listing.sorted_trees,
            usages=listing.usages,
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
        """List the services before anything else is read.

        A cell that does not answer is asked once more before it counts as down.
        """
        answer = self._list_services()
        if has_every_cell_answered(answer):
            return answer
        time.sleep(_RETRY_PAUSE)
        return self._list_services()

    def _list_services(self) -> Answer[tuple[Service, ...]]:
        """List the services. While a cell is down, a 500 of Nova is taken for an answer at once.

        Once something was read, a cell that did not answer counts: it was left out of what was read
        before.
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
        """List the compute nodes of all cells or, while one is down, of those that answer."""
        roots = [uuid for uuid, provider in providers.items() if provider.is_host]
        listing = self._nova.list_hypervisors(with_servers, roots)
        if listing.value is not None or listing.status < 500:
            return listing
        # The cell may have gone down since the services were listed.
        latest = services
        if has_every_cell_answered(services):
            latest = self._list_services()
        if latest.value is None or not have_same_compute_hosts(services, latest):
            # Workers that do not know the same cells: which hosts are left out is uncertain then.
            return listing
        if has_every_cell_answered(latest):
            # It is back, and if it was away while something else was read, the answers of others
            # will show it.
            return self._nova.list_hypervisors(with_servers, roots)
        return answering_cells.list_compute_nodes(self._nova, latest, providers, with_servers)

    def _read_allocations(
        self,
        scope: Scope | None,
        providers: Mapping[str, Provider],
        list_nodes: Callable[[], Answer[tuple[Hypervisor, ...]]],
    ) -> tuple[Answer[tuple[Hypervisor, ...]], _AllocationListing]:
        """Read the allocations in `scope`, and list Nova's compute nodes.

        The nodes are listed meanwhile, or before where they say what to read.
        """
        if scope is None:
            return list_nodes(), _AllocationListing()
        if scope.is_narrow:
            hypervisors = list_nodes()
            return hypervisors, self._read_named_allocations(scope, hypervisors, providers)
        if scope.mode == "triage":
            usages, hypervisors = run_parallel(
                lambda: self._placement.list_usages(providers), list_nodes
            )
            return hypervisors, self._read_mismatched_allocations(usages, hypervisors, providers)
        shard = scope.shard
        wanted: Iterable[str] = providers
        if shard:
            wanted = list_providers_to_read(shard, providers)
        allocations_by_consumer, hypervisors = run_parallel(
            lambda: self._placement.list_allocations_on_providers(wanted), list_nodes
        )
        if shard is None:
            return hypervisors, _AllocationListing(allocations_by_consumer)
        return hypervisors, _AllocationListing(
            select_allocations(shard, allocations_by_consumer, providers),
            list_roots_in_shard(shard, providers, hypervisors.value or ()),
        )

    def _read_named_allocations(
        self,
        scope: Scope,
        hypervisors: Answer[tuple[Hypervisor, ...]],
        providers: Mapping[str, Provider],
    ) -> _AllocationListing:
        """Read the allocations of the hosts and of the consumers that a narrow scope names."""
        trees = self._find_named_roots(scope, hypervisors, providers)
        in_trees = self._read_allocations_in_trees(trees, providers)
        # What a named consumer holds was read as a whole, and in the trees only in part.
        return _AllocationListing({**in_trees, **self._read_named_consumers(scope)}, trees)

    def _read_mismatched_allocations(
        self,
        usages: Mapping[str, Resources],
        hypervisors: Answer[tuple[Hypervisor, ...]],
        providers: Mapping[str, Provider],
    ) -> _AllocationListing:
        """Read the allocations of the trees whose usages are not what nova-compute reports."""
        nodes = {node.uuid: node for node in hypervisors.value or ()}
        trees = set(find_mismatched_nodes(nodes, sum_by_tree(usages.items(), providers)))
        # A root without a compute node has nothing to be compared with.
        for uuid, provider in providers.items():
            if provider.is_host and uuid not in nodes:
                trees.add(uuid)
        allocations = self._read_allocations_in_trees(trees, providers)
        return _AllocationListing(allocations, trees, usages)

    @staticmethod
    def _find_named_roots(
        scope: Scope, nodes: Answer[tuple[Hypervisor, ...]], providers: Mapping[str, Provider]
    ) -> frozenset[str]:
        """Return the roots of the named hosts. Raises CloudError while a cell is down."""
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
        consumers = set(scope.consumers)
        for answer in map_parallel(self._nova.list_migrations_of_server, scope.consumers):
            consumers.update(migration.uuid for migration in answer.value or ())
        return {
            allocation.consumer: allocation.resources
            for allocation in self._placement.get_allocations(consumers)
        }

    def add_servers(self, snapshot: Snapshot, nodes: Collection[str]) -> Snapshot:
        """Return the snapshot with the servers of `nodes`, asked for where that was not done yet.

        nodes: compute nodes by uuid.
        """
        listed = snapshot.hypervisors.value or ()
        wanted = [node for node in listed if node.servers is None and node.uuid in nodes]
        if not wanted:
            return snapshot
        ask = self._list_servers_at_host
        if snapshot.every_cell_listed:
            ask = self._list_servers_on_node
        servers_by_node = {}
        for node, servers in zip(wanted, map_parallel(ask, wanted), strict=True):
            servers_by_node[node.uuid] = servers
        completed = []
        for node in listed:
            if node.uuid in servers_by_node:
                completed.append(d.replace(node, servers=servers_by_node[node.uuid]))
            else:
                completed.append(node)
        hypervisors = d.replace(snapshot.hypervisors, value=tuple(completed))
        return d.replace(snapshot, hypervisors=hypervisors)

    def _list_servers_on_node(self, node: Hypervisor) -> tuple[str, ...] | None:
        try:
            return self._nova.list_hypervisor_servers(node.uuid)
        except CloudError:
            # Nova searches for a compute node in one cell after the other, and so does not find it
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
        """Return the snapshot with evidence about `consumers`, and the services listed after that.

        Placement, then the migrations, then the server: an evacuation finishes in this order, and
        read the other way round it shows the old host together with a finished evacuation.

        fresh: whether nothing that a listing said may replace a direct answer.
        server_details: as `_collector.shards.find_owning_root` takes them: of a shard, only what it
            owns is asked about.
        """
        index = SnapshotIndex(snapshot)
        answers = self._read_allocations_of(consumers, index)
        if snapshot.scope.shard:
            details = server_details or {}
            consumers = [uuid for uuid in consumers if _is_in_shard(answers[uuid], index, details)]
        allocations = [answer.value.resources for answer in answers.values() if answer.value]
        snapshot = self._add_traits(snapshot, allocations)
        roots = find_roots_without_node(index, allocations)
        snapshot = self._add_host_lookups_of_roots(snapshot, roots)
        snapshot = self._look_up_consumers(snapshot, consumers, answers, fresh)
        snapshot = self.add_servers(snapshot, choose_nodes_for_absence_proof(snapshot, fresh))
        snapshot = self._add_host_lookups(snapshot, list_hosts_to_look_up(snapshot))
        # An answer that differs from the first stays: nothing that follows makes it good.
        services_after = snapshot.services_after
        if is_same_listing(snapshot.services, services_after):
            services_after = self._list_services()
        return d.replace(
            snapshot,
            services_after=services_after,
            retried=self._count_retries(),
            finished_at=get_utc_now(),
        )

    def _read_allocations_of(
        self, consumers: Sequence[str], index: SnapshotIndex
    ) -> dict[str, Answer[Allocation]]:
        """Return the allocations of the consumers, and of the servers of those that migrate."""
        servers = set()
        for uuid in consumers:
            if uuid in index.migrations:
                servers.add(index.migrations[uuid].server)
        uuids = [*consumers, *sorted(servers - set(consumers))]
        answers = map_parallel(self._placement.get_allocation, uuids)
        return dict(zip(uuids, answers, strict=True))

    def _look_up_consumers(
        self,
        snapshot: Snapshot,
        consumers: Sequence[str],
        allocations: Mapping[str, Answer[Allocation]],
        fresh: bool,
    ) -> Snapshot:
        """Ask about each of the consumers; those of which there is evidence are the candidates."""
        index = SnapshotIndex(snapshot)
        migrations_of = self._nova.list_migrations_of_server
        # One listing of all migrations may cost less than a request for each consumer.
        if not fresh and len(index.migrations) <= _ROWS_PER_REQUEST * len(allocations):
            relisted = d.replace(snapshot, migrations=self._nova.list_migrations())
            migrations_of = SnapshotIndex(relisted).get_listed_migrations
        context = LookupContext(
            index, allocations, migrations_of, fresh, MigrationsAtHosts(self._nova)
        )
        candidates = []
        evidence_by_uuid: dict[str, Evidence] = {}
        for collected in map_parallel(
            lambda consumer: self._lookups.collect_evidence(consumer, context), consumers
        ):
            if collected:
                candidates.append(collected[0].uuid)
            # Two migrations may have the same server, each with questions of its own.
            for evidence in collected:
                merged = merge_evidence(evidence_by_uuid.get(evidence.uuid), evidence)
                evidence_by_uuid[evidence.uuid] = merged
        return d.replace(snapshot, candidates=tuple(candidates), evidence=evidence_by_uuid)

    def _count_retries(self) -> int:
        return self._placement.retried + self._nova.retried

    def _add_host_lookups_of_roots(self, snapshot: Snapshot, roots: Iterable[str]) -> Snapshot:
        """Ask directly for the hosts that may stand behind root providers without a node."""
        index = SnapshotIndex(snapshot)
        # With an unsound reading every root may seem to have none.
        if index.failed_checks:
            return snapshot
        names: set[str] = set()
        for root in roots:
            names.update(list_host_names(index.get_name(root)))
        return self._add_host_lookups(snapshot, names - index.hosts_listed)

    def _add_host_lookups(self, snapshot: Snapshot, names: Iterable[str]) -> Snapshot:
        """Ask directly for the hosts of those names that were not asked for yet."""
        wanted = sorted(set(names) - set(snapshot.host_lookups))
        if not wanted:
            return snapshot
        answers = map_parallel(self._nova.get_host, wanted)
        host_lookups = {**snapshot.host_lookups, **dict(zip(wanted, answers, strict=True))}
        return d.replace(snapshot, host_lookups=host_lookups)

    def _add_details(self, snapshot: Snapshot) -> Snapshot:
        """Add the inventories and traits of the providers that a rule has to know.

        Those are roots without a compute node, compute nodes whose capacity was asked for, and what
        the candidates hold. The last only if they are few: what they have explains nothing, and
        costs a request each.
        """
        if snapshot.hypervisors.value is None:
            return snapshot
        index, scope = SnapshotIndex(snapshot), snapshot.scope
        covered = {root.uuid for root in index.roots if index.covers(root.uuid)}
        without_node: set[str] = set()
        if scope.includes_any("orphaned_provider", "name_conflict"):
            without_node = covered - set(index.nodes)
        if without_node and not snapshot.cloud.other_novas:
            # All of them, in scope or not: one whose host goes by another name is given away by its
            # neighbours.
            all_without_node = {root.uuid for root in index.roots} - set(index.nodes)
            snapshot = self._add_host_lookups_of_roots(snapshot, all_without_node)
        wanted = _list_allocated_providers(snapshot, index)
        if len(wanted) > _MAX_DETAILED_PROVIDERS:
            wanted = set()
        if scope.is_narrow or "capacity_mismatch" in scope.kinds:
            wanted |= covered & set(index.nodes)
        wanted &= set(snapshot.providers)
        details = {
            **self._placement.get_details(sorted(wanted), ("inventories",)),
            **self._placement.get_details(sorted(without_node), ("inventories", "traits")),
        }
        return d.replace(snapshot, details=details)

    def _add_traits(
        self, snapshot: Snapshot, allocations_by_consumer: Iterable[Allocations]
    ) -> Snapshot:
        """Add the traits of the allocated roots that are not a compute node's.

        They say whether a root was a compute node's.
        """
        index = SnapshotIndex(snapshot)
        if snapshot.hypervisors.value is None:
            return snapshot
        roots = set()
        for allocations in allocations_by_consumer:
            for uuid in allocations:
                provider = snapshot.providers.get(uuid)
                if provider is not None and not provider.sharing:
                    roots.add(provider.root)
        wanted = sorted(
            root for root in roots if root not in index.nodes and not index.has_nova_trait(root)
        )
        if not wanted:
            return snapshot
        details = dict(snapshot.details)
        for root, read in self._placement.get_details(wanted, ("traits",)).items():
            # The inventories that were read before stay.
            before = snapshot.details.get(root, ProviderDetails())
            details[root] = d.replace(before, traits=read.traits)
        return d.replace(snapshot, details=details)

    def _read_control(self, samples: Sequence[Answer[Server]]) -> Answer[tuple[Server, ...]] | None:
        """Ask the listing of the deleted for a live server, which must not be in it.

        A server that was deleted meanwhile proves nothing, so the next one is taken.
        """
        control = None
        for sample in samples:
            if not sample.value:
                continue
            control = self._nova.find_deleted_server(sample.value.uuid)
            if not control.value or self._nova.get_server(sample.value.uuid).status != 404:
                break
        return control

    def _read_samples(
        self, hypervisors: Answer[tuple[Hypervisor, ...]]
    ) -> tuple[tuple[Answer[Server], ...], tuple[str | None, ...]]:
        """Read some servers directly, those of other projects first, and return their projects too.

        They are taken of hosts that have any. The newest servers of the cloud are taken only where
        no host shows one: they may be failed boots, which have no host. Raises CloudError when no
        listing can be read.
        """
        servers = self._list_servers_to_sample(_choose_hosts_to_sample(hypervisors.value or ()))
        placed = [server for server in servers if server.host]
        chosen = choose_samples(placed, self._session.project, _SAMPLES)
        looked_up = map_parallel(lambda server: self._nova.get_server(server.uuid), chosen)
        return tuple(looked_up), tuple(server.project for server in chosen)

    def _list_servers_to_sample(self, hosts: Sequence[str]) -> list[Server]:
        """Return the newest servers of the hosts or, where these have none, of the cloud."""
        answers = map_parallel(
            lambda host: self._nova.list_newest_servers_on_host(host, _SAMPLED_FROM), hosts
        )
        servers: list[Server] = []
        for answer in answers:
            servers.extend(answer.value or ())
        if servers:
            return servers
        newest = self._nova.list_newest_servers(_SAMPLED_FROM)
        if newest.value:
            return list(newest.value)
        unread = [answer for answer in (*answers, newest) if answer.value is None]
        if unread:
            raise CloudError(
                f"Nova answered {unread[0].status} when asked for some servers to look at "
                f"({unread[0].request})."
            )
        return []


def _choose_hosts_to_sample(nodes: Iterable[Hypervisor]) -> list[str]:
    """Return some hosts that have servers, far apart in the order of their names."""
    with_servers = set()
    for node in nodes:
        # Where the servers were not asked for, what nova-compute last wrote has to do.
        if node.servers or (node.servers is None and node.running_vms):
            with_servers.add(node.host)
    hosts = sorted(with_servers)
    step = max(1, len(hosts) // _SAMPLED_HOSTS)
    return hosts[::step][:_SAMPLED_HOSTS]


def _list_allocated_providers(snapshot: Snapshot, index: SnapshotIndex) -> set[str]:
    """Return the providers that the candidates hold, of a shard only those in it."""
    providers: set[str] = set()
    for uuid in snapshot.candidates:
        providers.update(snapshot.allocations.get(uuid, ()))
    if not snapshot.scope.shard:
        return providers
    return {uuid for uuid in providers if index.covers(snapshot.providers[uuid].root)}


def _is_in_shard(
    answer: Answer[Allocation], index: SnapshotIndex, server_details: Mapping[str, Server]
) -> bool:
    """Return whether the shard that is being read reports a consumer."""
    allocation = answer.value
    if allocation is None:
        return False
    root = find_owning_root(allocation.consumer, allocation.resources, index, server_details)
    return root is not None and index.covers(root)
