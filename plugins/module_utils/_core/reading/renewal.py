# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The renewed proof right before a write, which reads only what the steps of a run touch.

Detection has listed the compute nodes of all hosts. Of these, a renewed proof needs only those that
the candidates and the lookups about them name, and reads each of them directly.
"""

from __future__ import annotations

import collections
import dataclasses as d
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ..._common.errors import Reason
from ..facts.consumer import ConsumerView, build_views
from ..facts.gaps import choose_providers, explain_contradictions, explain_loss, list_touched_roots
from ..facts.index import ListingsIndex, SnapshotIndex
from ..facts.services import COMPUTE, get_compute_hosts
from ..models.nova import Hypervisor
from ..models.placement import Allocations
from ..models.snapshot import Listings, Snapshot
from .compute_nodes import list_compute_nodes, read_nodes
from .reading import Collector

# How often the lookups may name further compute nodes before all are listed.
_MAX_ROUNDS = 3

# A single compute node costs Nova more than one in a listing, so more than these are listed.
_MAX_NODES = 100


class RenewingCollector(Collector):
    """Reads the snapshots of a run that changes something.

    Call `begin_renewal` once, and then `renew` right before each change.
    """

    _index: ListingsIndex
    # What the shared providers list, by consumer; None before it is needed.
    _on_shared: Mapping[str, Allocations] | None = None

    def begin_renewal(
        self, consumers: Collection[str], providers: Collection[str] | None
    ) -> Listings:
        """Read the listings (the steps 1 to 5), without allocations.

        consumers: those that the steps change.
        providers: those on which the steps have an allocation; None reads all compute nodes.
        Raises CloudError when the listings cannot be read.
        """
        if providers is not None and len(providers) > _MAX_NODES:
            providers = None
        self._index = ListingsIndex(self._listings.read(None, False, providers))
        if not self._index.listings.every_node_listed:
            # Otherwise the lookups of the first proof would name them, and be repeated.
            nodes = read_nodes(self._nova, _find_roots_of_migrations(self._index, consumers))
            if nodes:
                self._replace_nodes([*self._index.nodes.values(), *nodes.values()])
        return self._index.listings

    def renew(self, consumers: Sequence[str]) -> Snapshot:
        """Look up `consumers` again, and every compute node that the lookups name."""
        for _round in range(_MAX_ROUNDS):
            snapshot = self.refresh_evidence(self._index, consumers, with_amounts=True)
            if self._index.listings.every_node_listed:
                return snapshot
            unread = find_unread_nodes(SnapshotIndex(snapshot))
            if unread is None:
                break
            if not unread:
                return snapshot
            nodes = read_nodes(self._nova, unread)
            if nodes is None:
                break
            self._replace_nodes([*self._index.nodes.values(), *nodes.values()])
        self._list_all_nodes()
        return self.refresh_evidence(self._index, consumers, with_amounts=True)

    def explain_contradictions(self, snapshot: Snapshot) -> dict[str, Reason]:
        """Return by consumer why the answers about its allocations cannot be relied on.

        The providers are listed after the consumers were looked up, so that what has just changed
        counts as a contradiction.
        Raises CloudError when a provider cannot be listed.
        """
        providers = choose_providers(snapshot, self._index)
        listed = self._placement.list_allocations_on_providers(providers)
        losses = self._explain_losses(snapshot)
        if losses:
            # A change of this run may have made the difference.
            self._on_shared = None
            losses = self._explain_losses(snapshot)
        return {**losses, **explain_contradictions(snapshot, self._index, providers, listed)}

    def _explain_losses(self, snapshot: Snapshot) -> dict[str, Reason]:
        """Return by consumer what its answer lacks of what the shared providers list."""
        if self._on_shared is None:
            shared = [uuid for uuid, known in self._index.providers.items() if known.sharing]
            self._on_shared = self._placement.list_allocations_on_providers(shared)
        reasons = {}
        for consumer in snapshot.evidence:
            loss = explain_loss(consumer, self._on_shared, snapshot, self._index)
            if loss:
                reasons[consumer] = loss
        return reasons

    def _replace_nodes(self, nodes: Iterable[Hypervisor]) -> None:
        listings = self._index.listings
        hypervisors = d.replace(listings.hypervisors, value=tuple(nodes))
        self._index = ListingsIndex(d.replace(listings, hypervisors=hypervisors))

    def _list_all_nodes(self) -> None:
        listings = self._index.listings
        hypervisors = list_compute_nodes(self._nova, listings.services, listings.providers, False)
        # The hosts that only aggregates name are to be looked up now, as in any reading.
        completed = self._listings.add_hosts(d.replace(listings, hypervisors=hypervisors))
        self._index = ListingsIndex(completed)


def find_unread_nodes(index: SnapshotIndex) -> frozenset[str] | None:
    """Return the compute nodes that the evidence names and that were not read, as roots. Pure.

    The result is None where only a listing of all compute nodes can say which these are.
    """
    hosts = get_compute_hosts(index.snapshot.services)
    ambiguous = _find_hosts_with_several_services(index)
    roots_by_name = {root.name: root.uuid for root in index.roots}
    unread: set[str] = set()
    for view in build_views(index):
        unread |= list_touched_roots(view) - set(index.nodes)
        for host, name in _list_addresses(view):
            if host in ambiguous:
                return None
            # Nova has no compute node of a host without a service.
            if host not in hosts or _has_node_at(index, host, name):
                continue
            # nova-compute names the root provider after its compute node.
            root = roots_by_name.get(name or "")
            if root is None or root in index.nodes:
                return None
            unread.add(root)
    return frozenset(unread)


def _find_roots_of_migrations(index: ListingsIndex, consumers: Collection[str]) -> set[str]:
    """Return the unread root providers at both ends of the migrations of `consumers`."""
    names: set[str | None] = set()
    for migration in index.migrations.values():
        if not {migration.uuid, migration.server}.isdisjoint(consumers):
            names |= {migration.source_node, migration.dest_node}
    return {root.uuid for root in index.roots if root.name in names} - set(index.nodes)


def _find_hosts_with_several_services(index: SnapshotIndex) -> set[str]:
    """Return the hosts that may have another compute node of the same name in another cell."""
    found = set()
    # An API worker that does not know one of the cells hides it in one answer.
    for answer in (index.snapshot.services, index.snapshot.services_after):
        services = answer.value or ()
        counts = collections.Counter(row.host for row in services if row.binary == COMPUTE)
        found |= {host for host, count in counts.items() if count > 1}
    return found


def _has_node_at(index: SnapshotIndex, host: str, name: str | None) -> bool:
    return any(index.nodes[uuid].name == name for uuid in index.list_nodes_at(host))


def _list_addresses(view: ConsumerView) -> Iterator[tuple[str, str | None]]:
    """Yield the hosts and compute nodes that the server and its migrations name."""
    server = view.server
    if server is not None and server.host:
        yield server.host, server.node
    for migration in view.server_migrations:
        # No destination is set before one is chosen.
        if migration.source_compute:
            yield migration.source_compute, migration.source_node
        if migration.dest_compute:
            yield migration.dest_compute, migration.dest_node
