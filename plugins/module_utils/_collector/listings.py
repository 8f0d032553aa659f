# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""The listings of one reading, in their order: first Placement, then Nova."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._collector.allocations import (
    AllocationReader,
)
from ansible_collections.osops.placement.plugins.module_utils._collector.compute_nodes import (
    add_servers,
    list_compute_nodes,
)
from ansible_collections.osops.placement.plugins.module_utils._collector.host_lookups import (
    look_up_hosts,
)
from ansible_collections.osops.placement.plugins.module_utils._collector.hosts_to_ask import (
    choose_nodes_for_server_listing,
)
from ansible_collections.osops.placement.plugins.module_utils._collector.samples import (
    read_control,
    read_samples,
)
from ansible_collections.osops.placement.plugins.module_utils._collector.services import (
    list_services,
    list_services_with_retry,
)
from ansible_collections.osops.placement.plugins.module_utils._common.clock import get_utc_now
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import (
    Listings,
    Scope,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.agreement import (
    list_hosts_to_look_up,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from ansible_collections.osops.placement.plugins.module_utils._clients.nova import NovaReader
    from ansible_collections.osops.placement.plugins.module_utils._clients.placement import (
        PlacementReader,
    )
    from ansible_collections.osops.placement.plugins.module_utils._clients.session import Session


class ListingReader:
    """Reads everything that concerns the cloud as a whole."""

    def __init__(self, session: Session, placement: PlacementReader, nova: NovaReader) -> None:
        self._session = session
        self._placement = placement
        self._nova = nova
        self._allocations = AllocationReader(placement, nova)

    def read(self, scope: Scope | None, with_servers: bool) -> Listings:
        """Read all listings, and the allocations in `scope`; no allocations without a scope.

        with_servers: whether the compute nodes come with the servers of their hosts.
        """
        started = get_utc_now()
        services = list_services_with_retry(self._nova)
        providers = self._placement.list_providers()
        hypervisors, listing = self._allocations.read(
            scope,
            providers,
            lambda: list_compute_nodes(self._nova, services, providers, with_servers),
        )
        migrations = self._nova.list_migrations()
        # A cell that is down is missing from that listing, and the answer does not say so.
        services_after = list_services(self._nova)
        own_project = self._session.project
        samples, projects = read_samples(self._nova, hypervisors, own_project)
        if hypervisors.value and not with_servers and not any(sample.value for sample in samples):
            # Only the hosts can say whether there is no live server or these credentials see none:
            # nova-compute updates its number of servers only now and then.
            hypervisors = list_compute_nodes(self._nova, services, providers, True)
            if any(node.servers for node in hypervisors.value or ()):
                samples, projects = read_samples(self._nova, hypervisors, own_project)
        control = read_control(self._nova, samples)
        listings = Listings(
            cloud=self._session.cloud,
            scope=scope or Scope(),
            started_at=started,
            providers=providers,
            allocations=listing.allocations,
            trees=listing.sorted_trees,
            usages=listing.usages,
            services=services,
            hypervisors=hypervisors,
            migrations=migrations,
            services_after=services_after,
            samples=samples,
            sampled_projects=projects,
            control=control,
            aggregates=self._nova.list_aggregates(),
        )
        return self._add_hosts(listings)

    def _add_hosts(self, listings: Listings) -> Listings:
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
