# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The listings of one reading, in their order: first Placement, then Nova."""

from __future__ import annotations

import dataclasses as d
from collections.abc import Collection, Mapping

from ..._common.clock import get_utc_now
from ..._common.parallel import run_parallel
from ..clients.nova import NovaReader
from ..clients.placement import PlacementReader
from ..clients.session import Session
from ..facts.agreement import list_hosts_to_look_up
from ..facts.soundness import has_every_cell_answered
from ..models.nova import Hypervisor, Service
from ..models.placement import Provider
from ..models.snapshot import NOT_ASKED, READ_ONE_BY_ONE, Answer, Listings, Mirror, Scope
from .allocations import AllocationListing, AllocationReader
from .compute_nodes import add_servers, list_compute_nodes, read_nodes
from .host_lookups import look_up_hosts
from .hosts_to_ask import choose_nodes_for_server_listing
from .mirror import MirrorReader, is_wanted
from .samples import read_control, read_samples
from .services import list_services, list_services_with_retry


class ListingReader:
    """Reads everything that concerns the cloud as a whole."""

    def __init__(
        self,
        session: Session,
        placement: PlacementReader,
        nova: NovaReader,
        mirror: MirrorReader,
    ) -> None:
        self._session = session
        self._placement = placement
        self._nova = nova
        self._allocations = AllocationReader(placement, nova)
        self._mirror = mirror

    def read(
        self, scope: Scope | None, with_servers: bool, named: Collection[str] | None = None
    ) -> Listings:
        """Read all listings, and the allocations in `scope`; no allocations without a scope.

        with_servers: whether the compute nodes come with the servers of their hosts.
        named: the providers of which the compute nodes are enough; None for all compute nodes.
        """
        started = get_utc_now()
        services = list_services_with_retry(self._nova)
        providers = self._placement.list_providers()

        def read_allocations() -> tuple[Answer[tuple[Hypervisor, ...]], AllocationListing]:
            try:
                return self._allocations.read(
                    scope,
                    providers,
                    lambda: self._list_nodes(services, providers, with_servers, named),
                )
            finally:
                self._nova.undisturbed.set()

        (hypervisors, listing), mirror = run_parallel(
            read_allocations, lambda: self._read_mirror(scope)
        )
        begun = Listings(
            cloud=self._session.cloud,
            scope=scope or Scope(),
            started_at=started,
            providers=providers,
            allocations=listing.allocations,
            trees=listing.sorted_trees,
            services=services,
            hypervisors=hypervisors,
            migrations=self._nova.list_migrations(),
            services_after=NOT_ASKED,
            samples=(),
            control=None,
            mirror=mirror,
        )
        return self.complete(begun)

    def _read_mirror(self, scope: Scope | None) -> Mirror | None:
        """Read how the hosts are grouped while Nova lists its compute nodes; None if not wanted."""
        if scope is None or not is_wanted(scope):
            return None
        self._nova.undisturbed.wait()
        return self._mirror.read(scope)

    def _list_nodes(
        self,
        services: Answer[tuple[Service, ...]],
        providers: Mapping[str, Provider],
        with_servers: bool,
        named: Collection[str] | None,
    ) -> Answer[tuple[Hypervisor, ...]]:
        # While a cell is down, Nova searches in vain for a single compute node beyond it.
        if named is not None and has_every_cell_answered(services):
            roots = {providers[uuid].root for uuid in named if uuid in providers}
            nodes = read_nodes(self._nova, roots)
            if nodes:
                return Answer(READ_ONE_BY_ONE, "", 200, get_utc_now(), tuple(nodes.values()))
        return list_compute_nodes(self._nova, services, providers, with_servers)

    def complete(self, begun: Listings) -> Listings:
        """Return the listings with what is read last: the steps 4 and 5.

        begun: the listings of the steps before.
        """
        # A cell that is down is missing from the listing of migrations, and the answer does not
        # say so.
        services_after = list_services(self._nova)
        own_project, hypervisors = self._session.project, begun.hypervisors
        samples, projects = read_samples(self._nova, hypervisors, own_project)
        without_servers = any(node.servers is None for node in hypervisors.value or ())
        if without_servers and not any(sample.value for sample in samples):
            # Only the hosts can say whether there is no live server or these credentials see none:
            # nova-compute updates its number of servers only now and then.
            hypervisors = list_compute_nodes(self._nova, begun.services, begun.providers, True)
            if any(node.servers for node in hypervisors.value or ()):
                samples, projects = read_samples(self._nova, hypervisors, own_project)
        listings = d.replace(
            begun,
            hypervisors=hypervisors,
            services_after=services_after,
            samples=samples,
            sampled_projects=projects,
            control=read_control(self._nova, samples),
            aggregates=self._nova.list_aggregates(),
        )
        return self.add_hosts(listings)

    def add_hosts(self, listings: Listings) -> Listings:
        """Return the listings with the lookups of single hosts.

        These show whether hosts exist that the listings lack, and which servers the hosts in scope
        have.
        """
        # No consumer was looked up yet, so there is no evidence that names more hosts.
        names = list_hosts_to_look_up(listings, ())
        host_lookups = look_up_hosts(self._nova, names)
        nodes = choose_nodes_for_server_listing(listings)
        hypervisors = add_servers(self._nova, listings.hypervisors, nodes)
        return d.replace(listings, host_lookups=host_lookups, hypervisors=hypervisors)
