# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One reading of what changed since an earlier one.

The order of the requests is that of a full reading (`reading.order`): Placement, then Nova,
then the candidates. A memory says which providers, servers and migrations did not change, and so
which consumers need no lookup. Each candidate is looked up as ever, and so is every compute node
that a candidate names: nothing that is concluded rests on memory.

A consumer has to be looked up if its allocation changed, if Nova changed its server or a migration
of it, or if it was not in order at the last reading. Every other consumer is as it was.

Placement gives a provider a new generation with each `PUT` and `POST` of an allocation
(placement/objects/allocation.py, _set_allocations), but not with `DELETE`. So under an old
generation the remembered allocations of a provider may be too many, and never too few.
"""

from __future__ import annotations

import dataclasses as d
from collections.abc import Collection, Mapping, Sequence

from ..._common.clock import get_utc_now
from ..._common.parallel import map_parallel, run_parallel
from ..._common.times import is_earlier
from ..expected.amounts import NO_FLAVOR, compare_listed
from ..facts.consumer import build_views
from ..facts.gaps import list_touched_hosts, list_touched_roots
from ..facts.index import ListingsIndex, SnapshotIndex
from ..facts.services import get_compute_hosts, has_every_cell_answered, list_unjudged_hosts
from ..facts.soundness import list_failed_checks
from ..models import snapshot as q
from ..models.kinds import collect_needs
from ..models.memory import Memory, RememberedNode
from ..models.nova import Hypervisor, Migration, Server
from ..models.other_services import PciAlias
from ..models.placement import Allocations, Provider, Resources
from ..models.snapshot import (
    NOT_ASKED,
    READ_OR_REMEMBERED,
    Answer,
    Listings,
    Reading,
    Scope,
    Snapshot,
)
from ..options.scope import is_needed
from .allocations import list_providers_to_read, list_roots_in_shard, select_allocations
from .candidates import AmountNominator, HostChoice
from .compute_nodes import list_compute_nodes, list_services_with_retry, read_nodes
from .others import is_wanted
from .reading import Collector

# How often the evidence may name further compute nodes before all are listed.
_MAX_ROUNDS = 3
# A single compute node costs Nova more than one in a listing: from this part of all on, the listing
# is cheaper, unless there are only a few.
_MAX_FRACTION = 0.25
_MIN_NODES = 10
# What every consumer or every provider has to be read for. Neither Nova nor Placement records a
# change when a port is deleted.
_NEEDS_OF_ALL = frozenset({q.EVERY_CONSUMER, q.INVENTORIES, q.BANDWIDTH})


class FullReadingNeeded(Exception):
    """The whole cloud has to be read; the text is the reason, as a sentence."""


class IncrementalCollector(Collector):
    """Reads snapshots of a cloud, also of what changed since an earlier one."""

    def collect_changes(self, scope: Scope, memory: Memory) -> Snapshot:
        """Read what changed in `scope` since `memory` was written.

        Raises FullReadingNeeded where that is not enough to find what a full reading finds, and
        CloudError when the listings cannot be read.
        """
        self._require_filters(scope)
        started = get_utc_now()
        services = list_services_with_retry(self._nova)
        if not has_every_cell_answered(services):
            raise FullReadingNeeded("A cell does not answer.")
        providers = self._placement.list_providers()
        reason = explain_changed_hosts(memory, providers, get_compute_hosts(services))
        if reason:
            raise FullReadingNeeded(reason)
        # In parallel, because these listings only name candidates.
        allocations, (servers, migrations) = run_parallel(
            lambda: self._read_allocations(scope, memory, providers),
            lambda: (
                self._nova.list_changed_servers(memory.changes_since),
                self._nova.list_changed_migrations(memory.changes_since),
            ),
        )
        changes = _build_changes(memory, providers, servers, migrations)
        allocations = self._look_up_remembered(changes, allocations, memory)
        candidates = choose_consumers(memory, changes, allocations, scope, self._pci_aliases)
        begun = Listings(
            cloud=self._cloud,
            scope=scope,
            started_at=started,
            reading=Reading("incremental", memory.full_at, memory.read_at),
            providers=providers,
            allocations=allocations,
            trees=_list_trees(scope, memory, providers),
            services=services,
            hypervisors=NOT_ASKED,
            migrations=self._complete_migrations(migrations, memory, candidates),
            services_after=NOT_ASKED,
            samples=(),
            control=None,
            # All of them, because no memory says which of Nova's host aggregates have changed.
            mirror=self._mirror.read(scope) if is_wanted(scope) else None,
        )
        details = {server.uuid: server for server in changes.servers}
        snapshot = self._read_candidates(begun, memory, candidates, details)
        failed_checks = list_failed_checks(snapshot)
        if failed_checks:
            raise FullReadingNeeded(f"What changed could not be read soundly. {failed_checks[0]}")
        if list_unjudged_hosts(snapshot):
            raise FullReadingNeeded("A cell stopped answering.")
        return _drop_settled(snapshot)

    def _require_filters(self, scope: Scope) -> None:
        if not self._nova.lists_changed_migrations:
            raise FullReadingNeeded(
                "This Nova cannot list the migrations that have changed: that needs compute "
                "microversion 2.59."
            )
        for kind in scope.kinds or scope.also_kinds:
            if not _NEEDS_OF_ALL.isdisjoint(collect_needs((kind,), ())):
                raise FullReadingNeeded(f"The kind {kind} needs everything to be read.")

    def _read_allocations(
        self, scope: Scope, memory: Memory, providers: Mapping[str, Provider]
    ) -> Mapping[str, Allocations]:
        """Return all allocations in scope, of which those of the changed providers are read now."""
        wanted = list_changed_providers(memory, providers)
        if scope.shard:
            in_shard = set(list_providers_to_read(scope.shard.contains, providers))
            wanted = [uuid for uuid in wanted if uuid in in_shard]
        current = self._placement.list_allocations_on_providers(wanted)
        merged = merge_allocations(memory, wanted, current)
        if scope.shard:
            return select_allocations(scope.shard.contains, merged, providers)
        return merged

    def _look_up_remembered(
        self, changes: Changes, allocations: Mapping[str, Allocations], memory: Memory
    ) -> dict[str, Allocations]:
        """Return the allocations with those of the changed servers as they are now.

        Placement gives no new generation to a provider when an allocation is deleted, so what is
        remembered of a changed server may be gone.
        """
        current = dict(allocations)
        remembered = [
            server.uuid
            for server in changes.servers
            if server.uuid in allocations
            and memory.allocations.get(server.uuid) == allocations[server.uuid]
        ]
        answers = map_parallel(self._placement.get_allocation, remembered, self._placement.workers)
        for uuid, answer in zip(remembered, answers, strict=True):
            # One that cannot be read now is looked up again as a candidate.
            if answer.value is not None:
                current[uuid] = answer.value.resources
        return {uuid: held for uuid, held in current.items() if held}

    def _complete_migrations(
        self, changed: Answer[tuple[Migration, ...]], memory: Memory, candidates: Sequence[str]
    ) -> Answer[tuple[Migration, ...]]:
        """Return all migrations, or those that changed where no other one can matter.

        That a candidate is no migration is proven by the whole listing alone.
        """
        is_open = any(not migration.ended for migration in changed.value or ())
        if candidates or is_open or memory.has_open_migrations:
            return self._nova.list_migrations()
        return changed

    def _read_candidates(
        self,
        begun: Listings,
        memory: Memory,
        candidates: Sequence[str],
        details: Mapping[str, Server],
    ) -> Snapshot:
        """Look up the candidates, and every compute node that they name."""
        nodes = {node.uuid: _recall_node(node) for node in memory.nodes}
        roots = {provider.uuid for provider in begun.providers.values() if provider.is_host}
        if not roots <= set(nodes):
            # Only a listing of all compute nodes shows that a provider has none.
            return self._read_with_all_nodes(begun, candidates, details)
        wanted = _list_named_nodes(begun, nodes, candidates, details)
        read: set[str] = set()
        listings: Listings | None = None
        for _round in range(_MAX_ROUNDS):
            if len(read | wanted) > max(_MIN_NODES, len(nodes) * _MAX_FRACTION):
                break
            found = read_nodes(self._nova, wanted)
            if found is None:
                break
            nodes.update(found)
            read |= wanted
            hypervisors = Answer(READ_OR_REMEMBERED, "", 200, get_utc_now(), tuple(nodes.values()))
            if listings is None:
                listings = self._listings.complete(d.replace(begun, hypervisors=hypervisors))
                if listings.hypervisors.request != READ_OR_REMEMBERED:
                    # No live server was found, and so every host was asked for its servers.
                    return self._finish(listings, candidates, details)
            listings = d.replace(listings, hypervisors=hypervisors)
            snapshot = self._finish(listings, candidates, details)
            more = find_nodes_to_read(SnapshotIndex(snapshot), read)
            if more is None:
                break
            if not more:
                return snapshot
            wanted = set(more)
        return self._read_with_all_nodes(begun, candidates, details)

    def _read_with_all_nodes(
        self, begun: Listings, candidates: Sequence[str], details: Mapping[str, Server]
    ) -> Snapshot:
        hypervisors = list_compute_nodes(self._nova, begun.services, begun.providers, False)
        listings = self._listings.complete(d.replace(begun, hypervisors=hypervisors))
        return self._finish(listings, candidates, details)

    def _finish(
        self, listings: Listings, candidates: Sequence[str], details: Mapping[str, Server]
    ) -> Snapshot:
        index = ListingsIndex(listings)
        reader = self._make_evidence_reader(index, listings.started_at, listings.scope, fresh=False)
        listed = {uuid: row for uuid, row in details.items() if row.host}
        amounts = AmountNominator(index, listed, HostChoice(), self._pci_aliases)
        reader.read_providers()
        if listings.scope.shard:
            details = {**details, **self._look_up_servers(set(candidates) - set(details))}
        return reader.finish(candidates, details, listed_amounts=amounts.summarize(candidates))

    def _look_up_servers(self, uuids: Collection[str]) -> dict[str, Server]:
        """Return those of the consumers that are servers: their hosts say which shard has them."""
        answers = map_parallel(self._nova.get_server, sorted(uuids), self._nova.workers)
        return {answer.value.uuid: answer.value for answer in answers if answer.value is not None}


def _build_changes(
    memory: Memory,
    providers: Mapping[str, Provider],
    servers: Answer[tuple[Server, ...]],
    migrations: Answer[tuple[Migration, ...]],
) -> Changes:
    """Return what changed. Raises FullReadingNeeded where the answers do not say that."""
    for answer in (servers, migrations):
        if answer.value is None:
            raise FullReadingNeeded(
                f"Nova answered {answer.status} when asked for what has changed ({answer.request})."
            )
    for server in servers.value or ():
        if is_earlier(server.updated, memory.changes_since):
            raise FullReadingNeeded(
                f"Nova listed servers that have not changed ({servers.request}): a proxy or a "
                "role seems to ignore changes-since."
            )
    return Changes(providers, servers.value or (), migrations.value or ())


def _list_trees(
    scope: Scope, memory: Memory, providers: Mapping[str, Provider]
) -> tuple[str, ...] | None:
    """Return the roots of the trees in scope, None for all."""
    if scope.shard is None:
        return None
    nodes = map(_recall_node, memory.nodes)
    return tuple(sorted(list_roots_in_shard(scope.shard, providers, nodes)))


def _recall_node(node: RememberedNode) -> Hypervisor:
    return Hypervisor(
        node.uuid, node.name, node.host, "", "", servers=None, running_vms=node.servers
    )


def _list_named_nodes(
    begun: Listings,
    nodes: Mapping[str, Hypervisor],
    candidates: Sequence[str],
    details: Mapping[str, Server],
) -> set[str]:
    """Return the compute nodes that are already known to have to do with a candidate."""
    providers = begun.providers
    allocated = set().union(*(begun.allocations.get(consumer, ()) for consumer in candidates))
    named = {providers[uuid].root for uuid in allocated if uuid in providers}
    hosts = {details[consumer].host for consumer in candidates if consumer in details}
    for migration in begun.migrations.value or ():
        if migration.uuid in candidates or migration.server in candidates:
            hosts |= {migration.source_compute, migration.dest_compute}
    named.update(node.uuid for node in nodes.values() if node.host in hosts)
    return named & set(nodes)


def _drop_settled(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without the candidates that a full reading would not have.

    A full reading learns of a consumer without an allocation only from the host of a server. The
    allocations become those that the lookups have shown.
    """
    allocations = dict(snapshot.allocations)
    candidates = []
    for uuid in snapshot.candidates:
        evidence = snapshot.evidence[uuid]
        allocation, server = evidence.allocation.value, evidence.server.value
        if allocation is not None:
            allocations.pop(uuid, None)
            if allocation.resources:
                allocations[uuid] = allocation.resources
        if allocation is None or allocation.resources or (server is not None and server.host):
            candidates.append(uuid)
    return d.replace(snapshot, allocations=allocations, candidates=tuple(candidates))


# Nova lists a deleted server with this status among the changed ones.
_DELETED = "DELETED"


@d.dataclass(frozen=True)
class Changes:
    """What changed since a memory was written.

    providers: all resource providers as they are now, by uuid.
    servers: the servers that Nova has changed since, deleted ones included.
    migrations: the migrations that Nova has changed since.
    """

    providers: Mapping[str, Provider]
    servers: tuple[Server, ...]
    migrations: tuple[Migration, ...]


def explain_changed_hosts(
    memory: Memory, providers: Collection[str], hosts: Collection[str]
) -> str:
    """Return why the memory is of other hosts than the cloud has now; "" if it is not.

    providers: the uuids of all resource providers.
    hosts: those with a nova-compute service.
    """
    if set(providers) != set(memory.generations):
        return "Resource providers were created or deleted since the last reading."
    if set(hosts) != memory.hosts:
        return "Hosts were added or removed since the last reading."
    return ""


def list_changed_providers(memory: Memory, providers: Mapping[str, Provider]) -> list[str]:
    """Return the providers whose allocations may have been written since, sorted.

    Those in a tree without a compute node are among them, because such a tree may be deleted once
    it has no allocations.
    """
    roots_of_nodes = {node.uuid for node in memory.nodes}
    return sorted(
        uuid
        for uuid, provider in providers.items()
        if memory.generations.get(uuid) != provider.generation
        or (provider.root not in roots_of_nodes and not provider.sharing)
    )


def merge_allocations(
    memory: Memory, read: Collection[str], allocations: Mapping[str, Allocations]
) -> dict[str, Allocations]:
    """Return all allocations by consumer: those read now, and the remembered ones elsewhere.

    read: the providers whose `allocations` were read now.
    """
    read = set(read)
    merged: dict[str, dict[str, Resources]] = {}
    for consumer, remembered in memory.allocations.items():
        kept = {uuid: amounts for uuid, amounts in remembered.items() if uuid not in read}
        if kept:
            merged[consumer] = kept
    for consumer, current in allocations.items():
        merged.setdefault(consumer, {}).update(current)
    # A type checker does not take one mapping for the other.
    return dict(merged)


def choose_consumers(
    memory: Memory,
    changes: Changes,
    allocations: Mapping[str, Allocations],
    scope: Scope,
    pci_aliases: Mapping[str, PciAlias] | None = None,
) -> list[str]:
    """Return the consumers that have to be looked up, sorted.

    allocations: all of them by consumer, as `merge_allocations` returns them.
    scope: what is read, and for which kinds. pci_aliases: as in the policy.
    """
    shard = scope.shard
    held_before = memory.allocations
    # What a changed server says of itself decides below.
    servers = {server.uuid for server in changes.servers}
    others = (held_before.keys() | allocations.keys()) - servers
    chosen = {uuid for uuid in others if held_before.get(uuid, {}) != allocations.get(uuid, {})}
    chosen |= memory.watched
    trees = {(node.host, node.name): node.uuid for node in memory.nodes}
    for server in changes.servers:
        held = allocations.get(server.uuid, {})
        tree = trees.get((server.host or "", server.node or ""))
        # Another shard has the host, and this one has nothing of the server.
        if shard and not held and tree and not shard.contains(tree):
            continue
        in_order = _is_in_order(server, held, tree, changes.providers)
        if not in_order or not _has_its_amounts(server, held, scope, pci_aliases or {}):
            chosen.add(server.uuid)
    for migration in changes.migrations:
        held = allocations.get(migration.server, {})
        # An ended migration without an allocation leaves nothing to look up, but what a server has
        # of a child provider may have been explained by where it was.
        if not migration.ended or not _has_roots_only(held, changes.providers):
            chosen.add(migration.server)
        if migration.uuid in allocations:
            chosen.update((migration.uuid, migration.server))
    return sorted(chosen)


def find_nodes_to_read(index: SnapshotIndex, read: Collection[str]) -> frozenset[str] | None:
    """Return the compute nodes that the evidence names, other than those in `read`.

    The result is None where only a listing of all compute nodes can say which these are: a
    candidate has an allocation of a provider without a compute node, or names a host of which no
    compute node is remembered.
    """
    hosts = get_compute_hosts(index.snapshot.services)
    named: set[str] = set()
    for view in build_views(index):
        named |= list_touched_roots(view)
        for host in list_touched_hosts(view):
            at_host = index.list_nodes_at(host)
            if not at_host and host in hosts:
                return None
            named |= at_host
    if not named <= set(index.nodes):
        return None
    return frozenset(named - set(read))


def _has_roots_only(allocations: Allocations, providers: Mapping[str, Provider]) -> bool:
    """Return whether no allocation is on a child provider, or on one that was not listed."""
    return all(uuid in providers and providers[uuid].root == uuid for uuid in allocations)


def _is_in_order(
    server: Server, allocations: Allocations, tree: str | None, providers: Mapping[str, Provider]
) -> bool:
    """Return whether a changed server has its host and nothing else, as far as providers say it.

    tree: the root provider of the compute node that the server names, if it is remembered.
    """
    if server.status == _DELETED:
        return not allocations
    if not server.host or not server.node:
        # Without a host and without an allocation there is nothing to judge.
        return not allocations and not server.host
    if tree is None or not allocations:
        return False
    others = [providers.get(uuid) for uuid in allocations if uuid != tree]
    # What is on a child provider, a listing does not explain.
    return all(provider is not None and provider.sharing for provider in others)


def _has_its_amounts(
    server: Server, allocations: Allocations, scope: Scope, pci_aliases: Mapping[str, PciAlias]
) -> bool:
    """Return whether a changed server has the amounts that its flavor and image request."""
    if not allocations:
        return True
    compared = compare_listed(server, allocations, pci_aliases)
    if NO_FLAVOR in compared.missing:
        return False
    if is_needed(q.FLAVORS, scope) and (compared.missing or len(allocations) > 1):
        return False
    return compared.fits
