# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""One reading of a cloud: first Placement, then Nova, then a closer look at what the listings nominate.

The order is what makes a reading safe: what appears after Placement was read is not in it, and Nova, asked later, knows
everything that Placement's answers can stem from. The two long listings are read side by side, for they only nominate: each
nominated consumer is read again, in that order. Nothing here concludes anything: `_judge` does.
"""

from __future__ import annotations

import dataclasses as d
import time
import typing as t

from ansible_collections.osops.placement.plugins.module_utils import _answering_cells
from ansible_collections.osops.placement.plugins.module_utils._agreement import agree, names_of_root, names_to_look_up
from ansible_collections.osops.placement.plugins.module_utils._clock import now
from ansible_collections.osops.placement.plugins.module_utils._concurrent import each, together
from ansible_collections.osops.placement.plugins.module_utils._errors import CloudError
from ansible_collections.osops.placement.plugins.module_utils._gates import all_answer, as_before
from ansible_collections.osops.placement.plugins.module_utils._landscape import Landscape, roots_of
from ansible_collections.osops.placement.plugins.module_utils._model import (
    Details,
    Dossier,
    Scope,
    Server,
    Snapshot,
)
from ansible_collections.osops.placement.plugins.module_utils._neutron import NeutronReader
from ansible_collections.osops.placement.plugins.module_utils._nominate import (
    by_tree,
    choose_samples,
    hosts_of_interest,
    nominate,
    odd_nodes,
    roots_without_node,
    where_to_be_sighted,
    worth_a_glance,
    worth_looking_at,
)
from ansible_collections.osops.placement.plugins.module_utils._nova import NovaReader
from ansible_collections.osops.placement.plugins.module_utils._placement import PlacementReader
from ansible_collections.osops.placement.plugins.module_utils._questions import Look, MigrationsAtHosts, Questions, both
from ansible_collections.osops.placement.plugins.module_utils._shards import owner, read_by, seen_by, trees_of

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._model import (
        Allocation,
        Answer,
        Holding,
        Hypervisor,
        Provider,
        Resources,
        Service,
    )
    from ansible_collections.osops.placement.plugins.module_utils._session import Session

# How many servers are looked at to see what these credentials may, and of how many hosts they are taken.
_SAMPLES = 3
_SAMPLED_HOSTS = 3
_SAMPLED_FROM = 20
# The pause in seconds before a cell that did not answer is asked once more.
_SECOND_LOOK = 1.0
# With the wrong region everybody is nominated, and nothing may be changed whatever is found: enough to show what it looks like.
_LOOKED_AT_WHEN_CLOSED = 100
# How many rows of the listing of all migrations cost Nova what one request for those of one server does (docs/benchmark.md).
_ROWS_A_REQUEST = 40
# Of how many providers the inventory is read only to be shown.
_DETAILED = 100


@d.dataclass(frozen=True)
class _Claims:
    """Who holds what, of which trees (None: of all), and where only that was asked what is in use of each provider."""

    holdings: Mapping[str, Holding] = d.field(default_factory=dict)
    trees: Collection[str] | None = None
    usages: Mapping[str, Resources] = d.field(default_factory=dict)


class Reading:
    """Reads snapshots from one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._placement = PlacementReader(session.placement)
        self._nova = NovaReader(session.compute)
        self._questions = Questions(self._placement, self._nova, NeutronReader(session.network))

    def of(self, scope: Scope) -> Snapshot:
        """Read what `scope` names, and look closely at each consumer that the listings nominate."""
        listed = self._listed(scope, with_servers=scope.mode == "full" and not scope.narrow)
        listed = self.with_servers(listed, hosts_of_interest(listed))
        glances = {server.uuid: server for servers in each(self._nova.servers_at, worth_a_glance(listed)) for server in servers}
        living = self._nova.server_uuids() if listed.hypervisors.value is None else ()
        nominated = nominate(listed, glances, living)
        looked_at = worth_looking_at(nominated, listed, _LOOKED_AT_WHEN_CLOSED)
        listed = d.replace(listed, nominated=tuple(looked_at), left_out=len(nominated) - len(looked_at))
        return self._looked_at(self._with_details(listed), looked_at, glances=glances)

    def listings(self, with_servers: bool) -> Snapshot:
        """Read what concerns the cloud as a whole, and no consumer; if wanted with the servers of every host."""
        return self._listed(None, with_servers)

    def again(self, listings: Snapshot, consumers: Sequence[str]) -> Snapshot:
        """Ask every direct question about `consumers` anew, and whether all cells still answer; keep the listings."""
        # Whoever is asked for by uuid is named, as in a detection whose scope names consumers.
        return self._looked_at(d.replace(listings, started_at=now(), scope=Scope(consumers=tuple(consumers))), consumers, fresh=True)

    def _listed(self, scope: Scope | None, with_servers: bool) -> Snapshot:
        """Read all listings, and of the claims those in `scope`; none of them without a scope."""
        started = now()
        services = self._services_at_first()
        providers = self._placement.providers()
        hypervisors, claims = self._claims(scope, providers, lambda: self._compute_nodes(services, providers, with_servers))
        migrations = self._nova.migrations()
        # A dead cell is left out of that listing without a word.
        services_after = self._services()
        samples, projects = self._samples(hypervisors)
        if hypervisors.value and not with_servers and not any(sample.value for sample in samples):
            # Whether there is no live server, or these credentials see none, the hosts must say: nova-compute writes only now and then
            # how many servers it has.
            hypervisors = self._compute_nodes(services, providers, True)
            if any(node.servers for node in hypervisors.value or ()):
                samples, projects = self._samples(hypervisors)
        snapshot = Snapshot(
            cloud=self._session.cloud,
            scope=scope or Scope(),
            started_at=started,
            finished_at=now(),
            providers=providers,
            holdings=claims.holdings,
            trees=None if claims.trees is None else tuple(sorted(claims.trees)),
            usages=claims.usages,
            services=services,
            hypervisors=hypervisors,
            migrations=migrations,
            samples=samples,
            control=self._control(samples),
            nominated=(),
            dossiers={},
            services_after=services_after,
            aggregates=self._nova.aggregates(),
            sampled_projects=projects,
        )
        return self._looked_up(snapshot, names_to_look_up(snapshot))

    def _services_at_first(self) -> Answer[tuple[Service, ...]]:
        """List the services before anything else is read; a cell that does not answer is asked once more before it counts as down."""
        answer = self._services()
        if all_answer(answer):
            return answer
        time.sleep(_SECOND_LOOK)
        return self._services()

    def _services(self) -> Answer[tuple[Service, ...]]:
        """List the services. Once something was read, a cell that did not answer counts: it was left out of what was read before."""
        answer = self._nova.services()
        self._nova.believe_errors(not all_answer(answer))
        return answer

    def _compute_nodes(
        self, services: Answer[tuple[Service, ...]], providers: Mapping[str, Provider], with_servers: bool
    ) -> Answer[tuple[Hypervisor, ...]]:
        """List the compute nodes of all cells or, while one of them is down, of those that answer."""
        roots = [uuid for uuid, provider in providers.items() if provider.is_host]
        listing = self._nova.hypervisors(with_servers, roots)
        if listing.value is not None or listing.status < 500:
            return listing
        # The cell may have gone down since the services were listed.
        known = services if not all_answer(services) else self._services()
        if known.value is None or not agree(services, known):
            # Workers that do not know the same cells: which hosts are left out is not known then.
            return listing
        if all_answer(known):
            # It is back, and if it was away while something else was read, the answers of others will show it.
            return self._nova.hypervisors(with_servers, roots)
        return _answering_cells.list_compute_nodes(self._nova, known, providers, with_servers)

    def _claims(
        self, scope: Scope | None, providers: Mapping[str, Provider], list_nodes: Callable[[], Answer[tuple[Hypervisor, ...]]]
    ) -> tuple[Answer[tuple[Hypervisor, ...]], _Claims]:
        """Read who holds what in `scope`; Nova's compute nodes are listed meanwhile, or before where they say what to read."""
        if scope is None:
            return list_nodes(), _Claims()
        if scope.narrow:
            hypervisors = list_nodes()
            trees: Collection[str] = self._named_hosts(scope, hypervisors, providers)
            return hypervisors, _Claims({**self._held_in(trees, providers), **self._named_consumers(scope)}, trees)
        if scope.mode == "triage":
            usages, hypervisors = together(lambda: self._placement.usages_of_all(providers), list_nodes)
            nodes = {node.uuid: node for node in hypervisors.value or ()}
            strangers = {uuid for uuid, provider in providers.items() if provider.is_host} - set(nodes)
            trees = {*odd_nodes(nodes, by_tree(usages.items(), providers)), *strangers}
            return hypervisors, _Claims(self._held_in(trees, providers), trees, usages)
        shard = scope.shard
        wanted = read_by(shard, providers) if shard else providers
        holdings, hypervisors = together(lambda: self._placement.holdings(wanted), list_nodes)
        if shard is None:
            return hypervisors, _Claims(holdings)
        return hypervisors, _Claims(seen_by(shard, holdings, providers), trees_of(shard, providers, hypervisors.value or ()))

    @staticmethod
    def _named_hosts(scope: Scope, nodes: Answer[tuple[Hypervisor, ...]], providers: Mapping[str, Provider]) -> frozenset[str]:
        if scope.hosts and nodes.value is None:
            raise CloudError(
                f"Nova answered {nodes.status} when asked for its compute nodes, so hosts cannot be found: a cell is not answering."
            )
        return roots_of(scope.hosts, nodes.value or (), providers)

    def _held_in(self, trees: Collection[str], providers: Mapping[str, Provider]) -> dict[str, Holding]:
        return self._placement.holdings(uuid for uuid, provider in providers.items() if provider.root in trees)

    def _named_consumers(self, scope: Scope) -> dict[str, Holding]:
        """Return what the named consumers hold, and the migrations of those that are servers."""
        moves = each(self._nova.migrations_of, scope.consumers)
        consumers = {*scope.consumers, *(move.uuid for answer in moves for move in answer.value or ())}
        return {allocation.consumer: allocation.resources for allocation in self._placement.allocations(consumers)}

    def with_servers(self, snapshot: Snapshot, nodes: Collection[str]) -> Snapshot:
        """Ask for the servers of those compute nodes that were not yet asked for them."""
        listed = snapshot.hypervisors.value or ()
        wanted = [node for node in listed if node.servers is None and node.uuid in nodes]
        ask = self._servers_on if snapshot.every_cell_listed else self._servers_at
        found = dict(zip((node.uuid for node in wanted), each(ask, wanted), strict=True))
        asked = tuple(d.replace(node, servers=found[node.uuid]) if node.uuid in found else node for node in listed)
        return d.replace(snapshot, hypervisors=d.replace(snapshot.hypervisors, value=asked)) if wanted else snapshot

    def _servers_on(self, node: Hypervisor) -> tuple[str, ...] | None:
        try:
            return self._nova.servers_on(node.uuid)
        except CloudError:
            # Nova looks for a compute node in one cell after the other, and so does not find it beyond one that is down.
            if all_answer(self._nova.services()):
                raise
            return self._servers_at(node)

    def _servers_at(self, node: Hypervisor) -> tuple[str, ...] | None:
        return self._nova.server_uuids_at(node.host).value

    def _looked_at(
        self, snapshot: Snapshot, consumers: Sequence[str], fresh: bool = False, glances: Mapping[str, Server] | None = None
    ) -> Snapshot:
        """Add the dossiers of `consumers`, and whether all cells still answer after that.

        Placement, then the migrations, then the server: an evacuation finishes in this order, and read the other way round it shows
        the old host together with a finished evacuation.

        fresh: whether nothing that a listing said may stand for a direct answer.
        glances: as `_shards.owner` takes them: of a shard, only what it owns is looked at.
        """
        land = Landscape(snapshot)
        subjects = {land.migrations[uuid].server for uuid in consumers if uuid in land.migrations}
        everybody = [*consumers, *sorted(subjects - set(consumers))]
        allocations = dict(zip(everybody, each(self._placement.allocation, everybody), strict=True))
        if snapshot.scope.shard:
            consumers = [uuid for uuid in consumers if _is_ours(allocations[uuid], land, glances or {})]
        holdings = [answer.value.resources for answer in allocations.values() if answer.value]
        snapshot = self._with_traits(snapshot, holdings)
        snapshot = self._with_hosts_looked_up(snapshot, roots_without_node(land, holdings))
        land = Landscape(snapshot)
        migrations_of = self._nova.migrations_of
        if not fresh and len(land.migrations) <= _ROWS_A_REQUEST * len(everybody):
            migrations_of = Landscape(d.replace(snapshot, migrations=self._nova.migrations())).listed_migrations_of
        look = Look(land, allocations, migrations_of, fresh, MigrationsAtHosts(self._nova))
        asked = [some for some in each(lambda consumer: self._questions.about(consumer, look), consumers) if some]
        dossiers: dict[str, Dossier] = {}
        for dossier in (known for some in asked for known in some):
            dossiers[dossier.uuid] = both(dossiers.get(dossier.uuid), dossier)
        looked_at = d.replace(snapshot, nominated=tuple(own.uuid for own, *_others in asked), dossiers=dossiers)
        looked_at = self.with_servers(looked_at, where_to_be_sighted(looked_at, fresh))
        looked_at = self._looked_up(looked_at, names_to_look_up(looked_at))
        # An answer that differs from the first stays: nothing that follows makes it good.
        unchanged = as_before(snapshot.services, snapshot.services_after)
        after = self._services() if unchanged else snapshot.services_after
        return d.replace(looked_at, services_after=after, retried=self._retried(), finished_at=now())

    def _retried(self) -> int:
        return self._placement.retried + self._nova.retried

    def _with_hosts_looked_up(self, snapshot: Snapshot, roots: Iterable[str]) -> Snapshot:
        """Look directly for the hosts that may stand behind root providers without a compute node."""
        land = Landscape(snapshot)
        if land.closed_gates:
            return snapshot
        names = {name for root in roots for name in names_of_root(land.name(root))}
        return self._looked_up(snapshot, names - land.hosts_listed)

    def _looked_up(self, snapshot: Snapshot, names: Iterable[str]) -> Snapshot:
        wanted = sorted(set(names) - set(snapshot.host_lookups))
        found = dict(zip(wanted, each(self._nova.host, wanted), strict=True))
        return d.replace(snapshot, host_lookups={**snapshot.host_lookups, **found}) if wanted else snapshot

    def _with_details(self, snapshot: Snapshot) -> Snapshot:
        """Add what those providers have that are no compute node, whose capacity was asked for, or that a nominated consumer holds.

        Of the last only if they are few: what they have explains nothing, and costs a request each.
        """
        if snapshot.hypervisors.value is None:
            return snapshot
        land, scope = Landscape(snapshot), snapshot.scope
        named = {root.uuid for root in land.roots if land.covers(root.uuid)}
        strangers = named - set(land.nodes) if scope.wants("ghost_provider", "name_conflict") else set()
        if strangers and not snapshot.cloud.other_novas:
            # All of them, in scope or not: one whose host goes by another name is given away by its neighbours.
            snapshot = self._with_hosts_looked_up(snapshot, {root.uuid for root in land.roots} - set(land.nodes))
        asked_for = named & set(land.nodes) if scope.narrow or "capacity_drift" in scope.kinds else set()
        held = {provider for uuid in snapshot.nominated for provider in snapshot.holdings.get(uuid, ())}
        if scope.shard:
            held = {provider for provider in held if land.covers(snapshot.providers[provider].root)}
        wanted = (asked_for | (held if len(held) <= _DETAILED else set())) & set(snapshot.providers)
        details = self._placement.details(sorted(wanted), ("inventories",))
        return d.replace(snapshot, details={**details, **self._placement.details(sorted(strangers), ("inventories", "traits"))})

    def _with_traits(self, snapshot: Snapshot, holdings: Iterable[Holding]) -> Snapshot:
        """Add the traits of those roots of `holdings` that are no compute node's: whether they were one's, these say."""
        land = Landscape(snapshot)
        if snapshot.hypervisors.value is None:
            return snapshot
        held = (snapshot.providers[provider] for holding in holdings for provider in holding if provider in snapshot.providers)
        roots = {provider.root for provider in held if not provider.sharing}
        wanted = sorted(root for root in roots if root not in land.nodes and not land.was_novas(root))
        if not wanted:
            return snapshot
        told = self._placement.details(wanted, ("traits",))
        known = {root: snapshot.details.get(root, Details()) for root in told}
        return d.replace(
            snapshot,
            details={**snapshot.details, **{root: d.replace(known[root], traits=details.traits) for root, details in told.items()}},
        )

    def _control(self, samples: Sequence[Answer[Server]]) -> Answer[tuple[Server, ...]] | None:
        """Ask the listing of the deleted for a live server, which must not be in it; one that was deleted just then tells nothing."""
        control = None
        for server in (sample.value for sample in samples if sample.value):
            control = self._nova.deleted_listing(server.uuid)
            if not control.value or self._nova.server(server.uuid).status != 404:
                break
        return control

    def _samples(self, hypervisors: Answer[tuple[Hypervisor, ...]]) -> tuple[tuple[Answer[Server], ...], tuple[str | None, ...]]:
        """Look directly at some servers of hosts that have any, those of other projects first; return also their projects.

        The newest servers of the cloud are taken only where no host shows one: they may be failed boots, which have no host.
        """
        hosts = sorted({node.host for node in hypervisors.value or () if node.servers or (node.servers is None and node.running_vms)})
        apart = hosts[:: max(1, len(hosts) // _SAMPLED_HOSTS)][:_SAMPLED_HOSTS]
        of_hosts = each(lambda host: self._nova.some_servers_at(host, _SAMPLED_FROM), apart)
        listed = [server for answer in of_hosts for server in answer.value or ()]
        if not listed:
            newest = self._nova.some_servers(_SAMPLED_FROM)
            listed = list(newest.value or ())
            unread = [answer for answer in (*of_hosts, newest) if answer.value is None]
            if not listed and unread:
                raise CloudError(f"Nova answered {unread[0].status} when asked for some servers to look at ({unread[0].request}).")
        placed = [server for server in listed if server.host]
        chosen = choose_samples(placed, self._session.project, _SAMPLES)
        looked_up = each(lambda server: self._nova.server(server.uuid), chosen)
        return tuple(looked_up), tuple(server.project for server in chosen)


def _is_ours(answer: Answer[Allocation], land: Landscape, glances: Mapping[str, Server]) -> bool:
    """Tell whether what is found out about a consumer is told by the shard that is being read."""
    allocation = answer.value
    root = owner(allocation.consumer, allocation.resources, land, glances) if allocation else None
    return root is not None and land.covers(root)
