# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the listings, in their order."""

from __future__ import annotations

import dataclasses as d
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence

from ..._common.clock import get_utc_now
from ..._common.errors import CloudError
from ..._common.parallel import look_up_each, map_parallel, run_parallel
from ..clients.nova import NovaReader
from ..clients.placement import PlacementReader
from ..clients.session import Session
from ..facts.agreement import list_host_names, list_hosts_to_look_up
from ..facts.index import ListingsIndex, group_by_tree
from ..facts.services import get_compute_hosts, has_every_cell_answered
from ..facts.soundness import list_failed_checks
from ..models.nova import Hypervisor, Server, Service
from ..models.placement import Allocations, Provider
from ..models.snapshot import NOT_ASKED, READ_ONE_BY_ONE, Answer, Listings, Mirror, Scope
from .allocations import AllocationListing, AllocationReader
from .candidates import choose_nodes_for_server_listing
from .compute_nodes import (
    add_servers,
    list_compute_nodes,
    list_services,
    list_services_with_retry,
    read_nodes,
)
from .others import MirrorReader, is_wanted

# For at most so many hosts that a listing lacks Nova is asked for the reason.
_MAX_SEARCHES = 20


class HostLookups:
    """The direct lookups of hosts in one reading; each host is looked up once."""

    def __init__(self, nova: NovaReader, listings: Listings) -> None:
        self._nova = nova
        self._listings = listings
        self.answers = dict(listings.host_lookups)
        self.searches = dict(listings.node_searches)

    def look_up(self, names: Iterable[str]) -> None:
        """Look up the hosts of those names that were not looked up yet."""
        answers = look_up_each(self._nova.get_host, sorted(set(names) - set(self.answers)))
        self.answers.update(answers)
        # A whole cell may be missing in the listings, and then the reason is another one.
        found = [name for name, answer in answers.items() if answer.status == 200]
        left_out = sorted(set(found) - get_compute_hosts(self._listings.services))
        searches = look_up_each(self._nova.search_nodes, left_out[:_MAX_SEARCHES])
        self.searches.update(searches)

    def look_up_roots(self, index: ListingsIndex, roots: Iterable[str]) -> None:
        """Look up the hosts that root providers without a compute node may belong to."""
        # In an unsound reading any root may seem to have no compute node. The lookups so far count:
        # they may show that the listings leave hosts out.
        if list_failed_checks(self.add_to(index.listings)):
            return
        names = map(index.get_name, roots)
        wanted = set(itertools.chain.from_iterable(map(list_host_names, names)))
        self.look_up(wanted - index.hosts_listed)

    def search_roots(self, index: ListingsIndex, roots: Iterable[str]) -> None:
        """Search for the compute nodes of root providers that are not a listed compute node's.

        nova-compute names the root provider after its compute node, whatever its host is called.
        """
        names = set(map(index.get_name, roots)) - self.searches.keys()
        self.searches.update(look_up_each(self._nova.search_nodes, sorted(names)))

    def add_to(self, listings: Listings) -> Listings:
        """Return the listings with all lookups."""
        return d.replace(listings, host_lookups=self.answers, node_searches=self.searches)


def find_roots_without_node(
    index: ListingsIndex, allocations_by_consumer: Iterable[Allocations]
) -> set[str]:
    """Return the root providers of the allocations that are not a listed compute node's."""
    roots: set[str] = set()
    for allocations in allocations_by_consumer:
        roots.update(filter(None, group_by_tree(allocations, index)))
    return roots - set(index.nodes)


class ListingReader:
    """Reads everything that concerns the cloud as a whole."""

    def __init__(
        self, session: Session, placement: PlacementReader, nova: NovaReader, mirror: MirrorReader
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
            trees=None if listing.trees is None else tuple(sorted(listing.trees)),
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
        # They may have been deleted since they were listed.
        are_gone = bool(samples) and all(sample.status == 404 for sample in samples)
        if are_gone or (without_servers and not any(sample.value for sample in samples)):
            # Only the hosts can say whether there is no live server or these credentials see none:
            # nova-compute updates its number of servers only now and then.
            hypervisors = list_compute_nodes(self._nova, begun.services, begun.providers, True)
            if are_gone or any(node.servers for node in hypervisors.value or ()):
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
        lookups = HostLookups(self._nova, listings)
        lookups.look_up(list_hosts_to_look_up(listings, ()))
        nodes = choose_nodes_for_server_listing(listings)
        hypervisors = add_servers(self._nova, listings.hypervisors, nodes)
        return d.replace(lookups.add_to(listings), hypervisors=hypervisors)


# How many servers are looked up to test the credentials, from how many hosts they are taken, and
# from how many servers of each: from more where too few of the first are of other projects.
_SAMPLES = 3
_SAMPLED_HOSTS = 3
_SAMPLED_FROM = (4, 20)


def read_samples(
    nova: NovaReader, hypervisors: Answer[tuple[Hypervisor, ...]], own_project: str | None
) -> tuple[tuple[Answer[Server], ...], tuple[str | None, ...]]:
    """Read some servers directly, those of other projects first, and return their projects too.

    They are taken from hosts that have servers. The newest servers of the cloud are taken only
    where no host shows one: they may be failed boots, which have no host. Raises CloudError when
    no listing can be read.
    """
    hosts = _choose_hosts_to_sample(hypervisors.value or ())
    placed: list[Server] = []
    for count in _SAMPLED_FROM:
        servers = _list_servers_to_sample(nova, hosts, count)
        placed = [server for server in servers if server.host]
        if sum(server.project != own_project for server in placed) >= _SAMPLES:
            break
    chosen = choose_samples(placed, own_project, _SAMPLES)
    looked_up = map_parallel(lambda server: nova.get_server(server.uuid), chosen)
    return tuple(looked_up), tuple(server.project for server in chosen)


def _choose_hosts_to_sample(nodes: Iterable[Hypervisor]) -> list[str]:
    """Return some hosts that have servers, far apart in the order of their names."""
    # Where the servers were not asked for, what nova-compute last wrote has to do.
    with_servers = (
        node for node in nodes if (node.running_vms if node.servers is None else node.servers)
    )
    hosts = sorted({node.host for node in with_servers})
    step = max(1, len(hosts) // _SAMPLED_HOSTS)
    return hosts[::step][:_SAMPLED_HOSTS]


def _list_servers_to_sample(nova: NovaReader, hosts: Sequence[str], count: int) -> list[Server]:
    """Return the `count` newest servers of each host or, where these have none, of the cloud."""
    answers = map_parallel(lambda host: nova.list_newest_servers_on_host(host, count), hosts)
    servers = [server for answer in answers for server in answer.value or ()]
    if servers:
        return servers
    newest = nova.list_newest_servers(count)
    if newest.value:
        return list(newest.value)
    unread = [answer for answer in (*answers, newest) if answer.value is None]
    if unread:
        raise CloudError(
            f"Nova answered {unread[0].status} when asked for some servers to test the permissions "
            f"with ({unread[0].request})."
        )
    return []


def choose_samples(servers: Sequence[Server], own_project: str | None, count: int) -> list[Server]:
    """Return `count` of `servers`, of as many projects as possible, our own project last."""
    by_project: dict[str | None, list[Server]] = {}
    for server in servers:
        by_project.setdefault(server.project, []).append(server)
    own = by_project.pop(own_project, [])
    # One server of each project in turn.
    turns = itertools.zip_longest(*by_project.values())
    return [*filter(None, itertools.chain.from_iterable(turns)), *own][:count]


def read_control(
    nova: NovaReader, samples: Sequence[Answer[Server]]
) -> Answer[tuple[Server, ...]] | None:
    """Look for a live server in the listing of deleted servers, where it must not be.

    A server that was deleted meanwhile proves nothing, so the next one is taken.
    """
    control = None
    for sample in samples:
        if not sample.value:
            continue
        control = nova.find_deleted_server(sample.value.uuid)
        if not control.value or nova.get_server(sample.value.uuid).status != 404:
            break
    return control
