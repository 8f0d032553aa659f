# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The listings of a cloud, indexed, and what a finished snapshot adds to them. Pure.

`ListingsIndex` follows from the listings alone: trees, compute nodes, hosts and migrations. What
needs a direct lookup, such as whether a host is gone, is in `SnapshotIndex`.
"""

from __future__ import annotations

import dataclasses as d
import functools
import itertools
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from ..._common.errors import Reason
from ..._common.text import normalize_uuid, summarize_names
from ..._common.times import is_earlier, seconds_between
from ..models.nova import Migration, Server, Service
from ..models.placement import NOVA_TRAITS, Provider, ProviderDetails, Resources, sum_amounts_by_key
from ..models.snapshot import NOT_ASKED, Answer, Listings, Snapshot
from ..options.policy import Policy
from .agreement import get_hosts_in_every_listing, list_host_names
from .services import COMPUTE, list_unjudged_hosts, strip_domain
from .soundness import find_region_mismatch, list_failed_absence_checks, list_failed_checks

# What operators append to the name of a former provider that is in the way of the present one.
FORMER_SUFFIX = "-former"


class MigrationListing:
    """The listing of all migrations, by server."""

    def __init__(self, answer: Answer[tuple[Migration, ...]]) -> None:
        self._answer = answer
        # A page may repeat a migration of the one before: the last answer counts.
        migrations = {migration.uuid: migration for migration in answer.value or ()}
        self._by_server: dict[str, list[Migration]] = {}
        for migration in migrations.values():
            self._by_server.setdefault(migration.server, []).append(migration)

    def get_part(self, server: str) -> Answer[tuple[Migration, ...]]:
        """Return the part of the listing that is about one server.

        It is an answer of its own, as if Nova had been asked for the migrations of that server.
        """
        if self._answer.value is None:
            return self._answer
        return d.replace(self._answer, value=tuple(self._by_server.get(server, ())))


class ListingsIndex:
    """What the listings say of the cloud as a whole.

    A reading makes one when its listings are complete, and hands it on to everything that chooses
    or looks up candidates.
    """

    def __init__(self, listings: Listings) -> None:
        self.listings = listings
        # None stands for all trees; an empty set would stand for none.
        self._trees = None if listings.trees is None else frozenset(listings.trees)
        self.providers = listings.providers
        nodes = listings.hypervisors.value or ()
        self.nodes = {node.uuid: node for node in nodes}
        self.migrations = {row.uuid: row for row in listings.migrations.value or ()}
        self._by_address: dict[tuple[str, str], list[str]] = {}
        for node in nodes:
            self._by_address.setdefault((node.host, node.name), []).append(node.uuid)

    @property
    def roots(self) -> list[Provider]:
        """The root providers in the order of their names, sharing ones left out."""
        roots = [provider for provider in self.providers.values() if provider.is_host]
        return sorted(roots, key=lambda provider: provider.name)

    def covers(self, root: str) -> bool:
        """Return whether every consumer with an allocation in the tree `root` was read."""
        return self._trees is None or root in self._trees

    @functools.cached_property
    def unjudged_hosts(self) -> frozenset[str]:
        """The hosts about which a listing says nothing, although they exist."""
        return frozenset(list_unjudged_hosts(self.listings))

    @functools.cached_property
    def hosts_listed(self) -> frozenset[str]:
        """The hosts whose nova-compute and compute node are both listed.

        No other host can be behind a provider of such a name.
        """
        return get_hosts_in_every_listing(self.listings) & self._nodes_by_host.keys()

    def get_listed_migrations(self, server: str) -> Answer[tuple[Migration, ...]]:
        """Return the part of the listing of all migrations that is about one server."""
        return self._migration_listing.get_part(server)

    @functools.cached_property
    def _migration_listing(self) -> MigrationListing:
        return MigrationListing(self.listings.migrations)

    def find_tree_at(self, host: str | None, node: str | None) -> str | None:
        """Return the root of the one compute node at `(host, node)`.

        The result is None where there is none, or more than one.
        """
        matches = self._by_address.get((host or "", node or ""), [])
        # Of several nodes at one address, nothing says which one has the server.
        return matches[0] if len(matches) == 1 else None

    def is_at(self, root: str, host: str | None, node: str | None) -> bool:
        """Return whether the tree `root` is that of the compute node at `(host, node)`.

        It may be also when Nova no longer lists that compute node.
        """
        listed_node = self.nodes.get(root)
        if listed_node is not None:
            return (listed_node.host, listed_node.name) == (host, node)
        # nova-compute names the root provider after its compute node.
        provider = self.providers.get(root)
        return provider is not None and provider.name == node

    def may_be_at(self, root: str, host: str | None, node: str | None) -> bool:
        """Return whether the tree `root` may be that of the compute node at `(host, node)`.

        This is enough to leave the tree alone, and not enough to change it. Operators rename hosts
        in Nova's databases, and what is older keeps the old names: a name that no listing has may
        be that of any listed host.
        """
        # A migration without a destination has no name to compare.
        if not host and not node:
            return False
        is_renamed = root in self.nodes and not self.lists_node(host, node)
        return is_renamed or self.has_name(root, host, node)

    def has_name(self, root: str, host: str | None, node: str | None) -> bool:
        """Return whether the tree `root` has the name of that host or of that node."""
        names = {host, node} - {None, ""}
        listed_node, provider = self.nodes.get(root), self.providers.get(root)
        if listed_node is not None and not names.isdisjoint({listed_node.host, listed_node.name}):
            return True
        # A provider keeps its name when its compute node is renamed.
        return provider is not None and provider.name in names

    def get_listed_host(self, server: str) -> str | None:
        """Return the host on which the hypervisor listing shows the server with that uuid."""
        return self._host_by_server.get(server)

    def list_nodes_with(self, server: str) -> frozenset[str]:
        """Return the compute nodes of the host on which the hypervisor listing shows the server.

        It is one, or all that the host has.
        """
        return self.list_nodes_at(self._host_by_server.get(server, ""))

    def list_nodes_at(self, host: str) -> frozenset[str]:
        """Return the compute nodes of a host: one, or several of ironic's."""
        return frozenset(self._nodes_by_host.get(host, ()))

    def has_host_named(self, name: str) -> bool:
        """Return whether Nova lists the compute node or host of which a provider has the name.

        A former provider has the name of its host, or the one that `former_provider` advises.
        """
        name = strip_domain(name.removesuffix(FORMER_SUFFIX))
        names = {name for node in self.nodes.values() for name in (node.name, node.host)}
        return name in map(strip_domain, names)

    def lists_node(self, host: str | None, node: str | None) -> bool:
        """Return whether Nova lists a compute node of that name, or of any name, on that host."""
        names = {self.nodes[root].name for root in self.list_nodes_at(host or "")}
        return node in names if node else bool(names)

    @functools.cached_property
    def has_servers_of_every_host(self) -> bool:
        """Whether every host was asked for its servers."""
        return all(node.servers is not None for node in self.nodes.values())

    @functools.cached_property
    def _nodes_by_host(self) -> Mapping[str, list[str]]:
        by_host: dict[str, list[str]] = {}
        for node in self.nodes.values():
            by_host.setdefault(node.host, []).append(node.uuid)
        return by_host

    @functools.cached_property
    def _host_by_server(self) -> dict[str, str]:
        return {server: node.host for node in self.nodes.values() for server in node.servers or ()}

    @functools.cached_property
    def used(self) -> Mapping[str, Resources]:
        """The amounts that are allocated of each provider, by its uuid."""
        every = self.listings.allocations.values()
        return sum_amounts_by_key(one for allocations in every for one in allocations.items())

    @functools.cached_property
    def consumers_by_tree(self) -> Mapping[str, frozenset[str]]:
        """The consumers that have an allocation in each tree, by its root."""
        by_root: dict[str, set[str]] = {}
        for consumer, allocations in self.listings.allocations.items():
            # A provider that Placement did not list is of an unknown tree.
            for root in filter(None, map(self.get_root, allocations)):
                by_root.setdefault(root, set()).add(consumer)
        return {root: frozenset(consumers) for root, consumers in by_root.items()}

    def list_hosts_of(self, allocations: Iterable[str]) -> tuple[str, ...]:
        """Return the hosts behind the providers of `allocations`, sorted.

        A host that Nova no longer lists has the name of its root provider here.
        """
        roots = filter(None, group_by_tree(allocations, self))
        return tuple(sorted(map(self.get_host_name, roots)))

    def get_host_name(self, root: str) -> str:
        """Return the host behind a root provider, or the provider's own name without one."""
        return self.nodes[root].host if root in self.nodes else self.get_name(root)

    def list_host_names_of(self, allocations: Iterable[str]) -> tuple[str, ...]:
        """Return the names that Nova may have for the hosts behind providers of `allocations`."""
        hosts = self.list_hosts_of(allocations)
        # The name of a listed host is certain.
        named = ([host] if host in self.hosts_listed else list_host_names(host) for host in hosts)
        return tuple(sorted(set(itertools.chain.from_iterable(named))))

    def get_name(self, provider: str) -> str:
        """Return a provider's name, or its uuid where Placement did not list it."""
        return self.providers[provider].name if provider in self.providers else provider

    def get_root(self, provider: str) -> str | None:
        """Return the root of a provider's tree, or None where Placement did not list it."""
        return self.providers[provider].root if provider in self.providers else None

    def find_roots(self, name: str) -> AbstractSet[str]:
        """Return the roots of all that a user can mean by a name or uuid of a provider or host.

        Where nothing has exactly that name, letter case and domain do not matter.
        """
        roots = self._roots_by_name
        return roots.get(name) or roots.get(f"{strip_domain(name)}.") or frozenset()

    def list_unknown_names(self, names: Iterable[str]) -> list[str]:
        """Return the names that are of no provider and of no host, sorted."""
        return sorted(name for name in names if not self.find_roots(name))

    @functools.cached_property
    def _roots_by_name(self) -> Mapping[str, set[str]]:
        """The roots by each name and uuid, and by each name of a host without its domain."""
        roots: dict[str, set[str]] = {}
        for provider in self.providers.values():
            for name in (provider.uuid, provider.name, f"{strip_domain(provider.name)}."):
                roots.setdefault(name, set()).add(provider.root)
        for node in self.nodes.values():
            for name in (node.uuid, node.name, node.host, f"{strip_domain(node.host)}."):
                roots.setdefault(name, set()).add(node.uuid)
        return roots

    def is_sharing(self, provider: str) -> bool:
        """Return whether a provider shares what it has with other trees."""
        return provider in self.providers and self.providers[provider].sharing


def group_by_tree(
    allocations: Iterable[str], index: ListingsIndex
) -> dict[str | None, frozenset[str]]:
    """Return the providers of `allocations` by their root, sharing ones left out.

    The root is None where Placement did not list the provider.
    """
    by_root: dict[str | None, set[str]] = {}
    for provider in allocations:
        # What a sharing provider has is not that of one host.
        if not index.is_sharing(provider):
            by_root.setdefault(index.get_root(provider), set()).add(provider)
    return {root: frozenset(providers) for root, providers in by_root.items()}


# Much longer than any `report_interval`: a service that is forced down and reports still runs.
_SILENCE = 300


class SnapshotIndex(ListingsIndex):
    """What a finished snapshot says of the cloud as a whole, indexed once for all its consumers."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self.snapshot = snapshot

    def get_server_lookup(self, uuid: str) -> Answer[Server]:
        """Return the direct lookup of a server; `NOT_ASKED` without one."""
        evidence = self.snapshot.evidence.get(uuid)
        return evidence.server if evidence else NOT_ASKED

    def is_in_shard(self, name: str) -> bool:
        """Return whether a migration or a service is reported by this shard and not by another."""
        shard = self.snapshot.scope.shard
        return shard is None or shard.contains(name)

    @functools.cached_property
    def failed_checks(self) -> tuple[Reason, ...]:
        """Why nothing may be changed after this reading, a sentence each.

        It is empty when the reading is sound.
        """
        return list_failed_checks(self.snapshot)

    @functools.cached_property
    def failed_absence_checks(self) -> tuple[Reason, ...]:
        """Why nothing may be concluded from absence, a sentence each.

        It is empty when the reading is sound and every cell answered.
        """
        return list_failed_absence_checks(self.snapshot)

    @functools.cached_property
    def nova_roots(self) -> frozenset[str]:
        """The root providers with a trait that only Nova sets, of those whose traits were read."""
        return find_nova_roots(self.snapshot.details)

    def has_nova_trait(self, root: str) -> bool:
        """Return whether the root provider has a trait that only Nova sets.

        It is False where the traits of the provider were not read.
        """
        return root in self.nova_roots

    def is_gone(self, root: str) -> bool:
        """Return whether the tree `root` was that of a compute node that is gone.

        Neither a compute node nor a compute service is behind it now.
        """
        return (
            self.has_nova_trait(root)
            and root not in self.nodes
            and not self.find_possible_host(root)
        )

    def is_named(self, root: str) -> bool:
        """Return whether the user named the host with the tree `root`."""
        return any(root in self.find_roots(name) for name in self.snapshot.scope.hosts)

    def find_possible_host(self, root: str) -> Reason | None:
        """Return which host may be behind a root provider without a compute node.

        The result is None where it is proven that there is none.
        """
        if self._listing_doubt:
            return self._listing_doubt
        # Before the lookups: beside another Nova no host is looked up.
        if regions := self.snapshot.cloud.other_novas or self.snapshot.other_novas.value:
            return Reason(
                "other_nova_on_placement",
                f"region {', '.join(regions)} has another Nova that uses this Placement, "
                "and it may be one of the hosts there",
            )
        if doubt := self.find_doubtful_lookup(root):
            return doubt
        name = self.get_name(root)
        if normalize_uuid(name):
            # The name of a node of ironic: no host has it, so that the lookup by it proves nothing.
            return Reason(
                "name_is_a_uuid",
                "its name is a UUID, like that of a bare metal node, so its host cannot be "
                "looked up by name",
            )
        return self.find_possible_service(name)

    def find_possible_service(self, name: str) -> Reason | None:
        """Return which compute node or service may be behind a provider of that name, or None.

        Nova does not list the compute nodes of a host that it has not discovered, up or down. The
        service of a host may have any name, and its compute node that of the provider.
        """
        search = self.snapshot.node_searches.get(name)
        if search is not None and search.value == ():
            return Reason(
                "node_not_listed",
                f"Nova has a compute node {name}, and leaves it out of its listings because it "
                "finds no compute service of it: run nova-manage cell_v2 discover_hosts, or start "
                f"{COMPUTE} there. If it is gone for good, decommission its host "
                "(osops.placement.decommission_host)",
            )
        if search is not None and search.status not in (200, 404):
            return Reason(
                "node_search_failed",
                f"Nova answered {search.status} when compute node {name} was searched for",
            )
        # A service that only one of the two answers has is there as well.
        every = itertools.chain.from_iterable(self._services_by_listing)
        nodeless = {service.host for service in every if service.host not in self._nodes_by_host}
        if not nodeless:
            return None
        return Reason(
            "service_without_node",
            f"{COMPUTE} on {summarize_names(sorted(nodeless))} has no compute node that Nova "
            "lists, and the provider may be its: run nova-manage cell_v2 discover_hosts, or "
            "decommission a host that is gone (osops.placement.decommission_host)",
        )

    def find_possible_nova(self, policy: Policy) -> Reason | None:
        """Return why a Nova that no answer names may use this Placement, or None."""
        answer = self.snapshot.other_novas
        if policy.sole_nova or answer.value is not None:
            return None
        return Reason(
            "other_nova_possible",
            f"Keystone answered {answer.status} when asked for all endpoints, so another Nova that "
            "the service catalogue does not name may use this Placement. If there is none, set "
            "sole_nova (orphan_cleanup_sole_nova: true)",
        )

    def list_compute_states(self, host: str | None) -> set[str | None]:
        """Return the states of nova-compute on `host` in the two listings of services.

        They have None if a listing lacks it.
        """
        listings = self.list_compute_services(host)
        states: set[str | None] = {row.state for services in listings for row in services}
        return states if all(listings) else {*states, None}

    def is_reporting(self, host: str, since: str | None) -> bool:
        """Return whether nova-compute on `host` is up, or reports although it is forced down.

        Nova says `down` of each service that is forced down (nova/servicegroup/api.py,
        service_is_up), while its driver goes on writing the time of each report.

        since: a time after which nobody has a reason to change the service.
        """
        if "up" in self.list_compute_states(host):
            return True
        times = (self.snapshot.services.at, self.snapshot.services_after.at)
        for moment, services in zip(times, self.list_compute_services(host), strict=True):
            for service in services:
                silence = seconds_between(service.updated_at, moment)
                is_recent = silence is not None and silence < _SILENCE
                if service.forced_down and is_recent and is_earlier(since, service.updated_at):
                    return True
        return False

    def list_compute_services(self, host: str | None) -> list[list[Service]]:
        """Return the services nova-compute on `host` in each of the two listings of services.

        An API worker that does not know one of the cells hides a service in one of them.
        """
        return [[one for one in rows if one.host == host] for rows in self._services_by_listing]

    @functools.cached_property
    def _services_by_listing(self) -> list[list[Service]]:
        answers = (self.snapshot.services, self.snapshot.services_after)
        return [[one for one in rows.value or () if one.binary == COMPUTE] for rows in answers]

    def find_doubtful_lookup(self, root: str) -> Reason | None:
        """Return which direct lookup of the host behind a provider did not say that there is none.

        The result is None where all lookups said so.
        """
        for name in list_host_names(self.get_name(root)):
            lookup = self.snapshot.host_lookups.get(name)
            # A listed host has a compute node of its own, which is not this provider's.
            if name in self.hosts_listed:
                continue
            if lookup is None:
                return Reason("host_not_looked_up", f"host {name} was not looked up")
            if lookup.status != 404:
                return Reason(
                    "host_lookup_failed",
                    f"Nova answered {lookup.status} when host {name} was looked up",
                )
        return None

    @functools.cached_property
    def _listing_doubt(self) -> Reason | None:
        """Why a compute node may be missing in Nova's listing; None when the listing is sound."""
        nodes = self.snapshot.hypervisors.value
        if nodes is None or self.snapshot.services.value is None or self.unjudged_hosts:
            return Reason(
                "may_be_host_of_down_cell",
                "Nova does not list all of its hosts, and it may be one of the others",
            )
        mismatch = find_region_mismatch(nodes, self.providers)
        if mismatch or not self.failed_checks:
            return mismatch
        return self.failed_checks[0].extend(*self.failed_checks[1:])


def find_nova_roots(details: Mapping[str, ProviderDetails]) -> frozenset[str]:
    """Return the root providers that have a trait which only Nova sets."""
    return frozenset(root for root, read in details.items() if NOVA_TRAITS & read.traits)


def list_hosts_in_scope(index: SnapshotIndex) -> set[str] | None:
    """Return the hosts in the scope, by the names of nodes and roots; None for all hosts."""
    scope = index.snapshot.scope
    if not scope.is_limited_to_hosts:
        return None
    # A host of a group can have a service and neither a compute node nor a provider.
    hosts = set() if scope.hosts else set(scope.groups.hosts)
    for root in index.roots:
        # Services and migrations name the host, and its name may differ from the node's.
        if index.covers(root.uuid):
            hosts |= {root.name, index.get_host_name(root.uuid)}
    return hosts


def list_migrations_in_scope(index: SnapshotIndex) -> list[Migration]:
    """Return the migrations in scope: those of named servers, and those from or to named hosts."""
    consumers, hosts = index.snapshot.scope.consumers, list_hosts_in_scope(index)
    migrations = [row for row in index.migrations.values() if index.is_in_shard(row.uuid)]
    if hosts is None:
        return migrations
    return [
        row
        for row in migrations
        if row.server in consumers or hosts & {row.source_compute, row.dest_compute}
    ]
