# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""A snapshot, indexed: trees, nodes, hosts and the consumers with allocations on them. Pure."""

from __future__ import annotations

import dataclasses as d
import functools
import itertools
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import normalize_uuid
from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
    NOVA_TRAITS,
    sum_amounts_by_key,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.agreement import (
    get_hosts_in_every_listing,
    list_host_names,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.services import (
    COMPUTE,
    may_have_unlisted_node,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.soundness import (
    find_region_mismatch,
    has_every_cell_answered,
    list_failed_absence_checks,
    list_failed_checks,
    list_unjudged_hosts,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterable, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Hypervisor,
        Migration,
        Service,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Allocations,
        Provider,
        Resources,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import (
        Answer,
        Snapshot,
    )


class SnapshotIndex:
    """What a snapshot says of the cloud as a whole, indexed once for all its consumers."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        # None stands for all trees; an empty set would stand for none.
        self._trees: frozenset[str] | None = None
        if snapshot.trees is not None:
            self._trees = frozenset(snapshot.trees)
        self.providers = snapshot.providers
        nodes = snapshot.hypervisors.value or ()
        migrations = snapshot.migrations.value or ()
        self.nodes = {node.uuid: node for node in nodes}
        self.migrations = {migration.uuid: migration for migration in migrations}
        self._by_address: dict[tuple[str, str], list[Hypervisor]] = {}
        for node in nodes:
            self._by_address.setdefault((node.host, node.name), []).append(node)

    @property
    def roots(self) -> list[Provider]:
        """The root providers in the order of their names, sharing ones left out."""
        roots = [provider for provider in self.providers.values() if provider.is_host]
        return sorted(roots, key=lambda provider: provider.name)

    def covers(self, root: str) -> bool:
        """Return whether every consumer with an allocation in the tree `root` was read."""
        return self._trees is None or root in self._trees

    def is_in_shard(self, name: str) -> bool:
        """Return whether a migration or a service is reported by this shard and not by another."""
        shard = self.snapshot.scope.shard
        return shard is None or shard.contains(name)

    @functools.cached_property
    def failed_checks(self) -> tuple[str, ...]:
        """Why nothing may be changed after this reading, a sentence each.

        It is empty when the reading is sound.
        """
        return list_failed_checks(self.snapshot)

    @functools.cached_property
    def failed_absence_checks(self) -> tuple[str, ...]:
        """Why nothing may be concluded from absence, a sentence each.

        It is empty when the reading is sound and every cell answered.
        """
        return list_failed_absence_checks(self.snapshot)

    @functools.cached_property
    def unjudged_hosts(self) -> frozenset[str]:
        """The hosts of cells that did not answer at some time of the reading."""
        return frozenset(list_unjudged_hosts(self.snapshot))

    @functools.cached_property
    def hosts_listed(self) -> frozenset[str]:
        """The hosts whose nova-compute and compute node are both listed.

        No other host can be behind a provider of such a name.
        """
        hosts_of_nodes = {node.host for node in self.nodes.values()}
        return get_hosts_in_every_listing(self.snapshot) & hosts_of_nodes

    @property
    def has_servers_of_every_host(self) -> bool:
        """Whether every host was asked for its servers."""
        return all(node.servers is not None for node in self.nodes.values())

    def get_listed_migrations(self, server: str) -> Answer[tuple[Migration, ...]]:
        """Return the part of the listing of all migrations that is about one server.

        It is an answer of its own, as if Nova had been asked for the migrations of that server.
        """
        listing = self.snapshot.migrations
        if listing.value is None:
            return listing
        migrations = self._migrations_by_server.get(server, ())
        return d.replace(listing, value=tuple(migrations))

    @functools.cached_property
    def _migrations_by_server(self) -> Mapping[str, list[Migration]]:
        by_server: dict[str, list[Migration]] = {}
        for migration in self.migrations.values():
            by_server.setdefault(migration.server, []).append(migration)
        return by_server

    def find_tree_at(self, host: str | None, node: str | None) -> str | None:
        """Return the root of the one compute node at `(host, node)`.

        The result is None where there is none, or more than one.
        """
        matches = self._by_address.get((host or "", node or ""), [])
        # Of several nodes at one address, nothing says which one has the server.
        if len(matches) != 1:
            return None
        return matches[0].uuid

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
        """Return whether the tree `root` has the name of that host or of that node.

        This is enough to leave the tree alone, and not enough to change it.
        """
        listed_node, provider = self.nodes.get(root), self.providers.get(root)
        names: set[str] = set()
        if listed_node is not None:
            names = {listed_node.host, listed_node.name}
        elif provider is not None:
            names = {provider.name}
        # A migration without a destination has no name to compare.
        return not names.isdisjoint({host, node} - {None, ""})

    def has_nova_trait(self, root: str) -> bool:
        """Return whether the root provider has a trait that only Nova sets.

        It is False where the traits of the provider were not read.
        """
        details = self.snapshot.details.get(root)
        return details is not None and bool(NOVA_TRAITS & details.traits)

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
        provider = self.providers.get(root)
        if provider is None:
            return False
        return not {provider.uuid, provider.name}.isdisjoint(self.snapshot.scope.hosts)

    def find_possible_host(self, root: str) -> str:
        """Return which host may be behind a root provider without a compute node.

        The result is empty where it is proven that there is none.
        """
        if self._listing_doubt:
            return self._listing_doubt
        lookup_doubt = self.find_doubtful_lookup(root)
        if lookup_doubt:
            return lookup_doubt
        name = self.get_name(root)
        if normalize_uuid(name):
            # The name of a node of ironic: no host has it, so that the lookup by it proves nothing.
            return (
                "its name is a UUID, as that of a bare metal node, by which its host cannot be "
                "looked up directly"
            )
        regions = self.snapshot.cloud.other_novas
        if regions:
            return (
                f"region {', '.join(regions)} has a Nova of its own on this same Placement, "
                "and it may be one of its hosts"
            )
        return self._find_possible_service(name)

    def _find_possible_service(self, name: str) -> str:
        """Return which compute service may be behind a provider of that name; empty if none."""
        hosts = {node.host for node in self.nodes.values()}
        unlisted: set[str] = set()
        possible: set[str] = set()
        # A service that only one of the two answers has is there as well.
        for answer in (self.snapshot.services, self.snapshot.services_after):
            for service in answer.value or ():
                if _is_up_without_node(service, hosts):
                    unlisted.add(service.host)
                if may_have_unlisted_node(service, hosts, name):
                    possible.add(service.host)
        if unlisted:
            return (
                f"the {COMPUTE} of {', '.join(sorted(unlisted))} runs and has no compute node yet "
                "(nova-manage cell_v2 discover_hosts)"
            )
        if possible:
            return (
                f"the {COMPUTE} of {', '.join(sorted(possible))} is down and may be the one behind "
                "it: retire that host (osops.placement.decommission_host)"
            )
        return ""

    def find_doubtful_lookup(self, root: str) -> str:
        """Return which direct lookup of the host behind a provider did not say that there is none.

        The result is empty where all lookups said so.
        """
        for name in list_host_names(self.get_name(root)):
            lookup = self.snapshot.host_lookups.get(name)
            # A listed host has a compute node of its own, which is not this provider's.
            if name in self.hosts_listed or (lookup is not None and lookup.status == 404):
                continue
            answered = f"answered {lookup.status} when" if lookup else "was not"
            return f"Nova {answered} asked for host {name} directly"
        return ""

    @functools.cached_property
    def _listing_doubt(self) -> str:
        """Why a compute node may be missing in Nova's listing; empty when the listing is sound."""
        nodes = self.snapshot.hypervisors.value
        has_every_cell = has_every_cell_answered(self.snapshot.services)
        if nodes is None or not has_every_cell or self.unjudged_hosts:
            return "a cell is not answering, and it may be one of its hosts"
        return find_region_mismatch(nodes, self.providers) or " ".join(self.failed_checks)

    def get_listed_host(self, server: str) -> str | None:
        """Return the host on which the hypervisor listing shows the server with that uuid."""
        return self._host_by_server.get(server)

    def list_nodes_with(self, server: str) -> frozenset[str]:
        """Return the compute nodes of the host on which the hypervisor listing shows the server.

        It is one, or all that the host has.
        """
        host = self._host_by_server.get(server, "")
        return frozenset(self._nodes_by_host.get(host, ()))

    @functools.cached_property
    def _nodes_by_host(self) -> Mapping[str, list[str]]:
        by_host: dict[str, list[str]] = {}
        for node in self.nodes.values():
            by_host.setdefault(node.host, []).append(node.uuid)
        return by_host

    @functools.cached_property
    def used(self) -> Mapping[str, Resources]:
        """The amounts that are allocated of each provider, by its uuid."""
        # Usages were read instead of all allocations where only they are needed.
        if self.snapshot.usages:
            return self.snapshot.usages
        allocations = self.snapshot.allocations.values()
        pairs = itertools.chain.from_iterable(amounts.items() for amounts in allocations)
        return sum_amounts_by_key(pairs)

    @functools.cached_property
    def _host_by_server(self) -> dict[str, str]:
        by_server: dict[str, str] = {}
        for node in self.nodes.values():
            for server in node.servers or ():
                by_server[server] = node.host
        return by_server

    @functools.cached_property
    def consumers_by_tree(self) -> Mapping[str, frozenset[str]]:
        """The consumers that have an allocation in each tree, by its root."""
        by_root: dict[str, set[str]] = {}
        for consumer, allocations in self.snapshot.allocations.items():
            for provider in allocations:
                root = self.get_root(provider)
                # A provider that Placement did not list is of an unknown tree.
                if root:
                    by_root.setdefault(root, set()).add(consumer)
        return {root: frozenset(consumers) for root, consumers in by_root.items()}

    def list_hosts_of(self, allocations: Iterable[str]) -> tuple[str, ...]:
        """Return the hosts behind the providers of `allocations`, sorted.

        A host that Nova no longer lists has the name of its root provider here.
        """
        roots: set[str] = set()
        for provider in allocations:
            root = self.get_root(provider)
            if root and not self.is_sharing(provider):
                roots.add(root)
        return tuple(sorted(self._get_host_name(root) for root in roots))

    def _get_host_name(self, root: str) -> str:
        if root in self.nodes:
            return self.nodes[root].host
        return self.get_name(root)

    def list_host_names_of(self, allocations: Iterable[str]) -> tuple[str, ...]:
        """Return the names that Nova may have for the hosts behind providers of `allocations`."""
        names: set[str] = set()
        for host in self.list_hosts_of(allocations):
            # The name of a listed host is certain.
            names.update([host] if host in self.hosts_listed else list_host_names(host))
        return tuple(sorted(names))

    def get_name(self, provider: str) -> str:
        """Return a provider's name, or its uuid where Placement did not list it."""
        listed_provider = self.providers.get(provider)
        if listed_provider is None:
            return provider
        return listed_provider.name

    def get_root(self, provider: str) -> str | None:
        """Return the root of a provider's tree, or None where Placement did not list it."""
        listed_provider = self.providers.get(provider)
        if listed_provider is None:
            return None
        return listed_provider.root

    def find_root(self, name: str) -> str | None:
        """Return the root of the provider that has that name or uuid."""
        return self.get_root(name) or self._roots_by_name.get(name)

    @functools.cached_property
    def _roots_by_name(self) -> Mapping[str, str]:
        return {provider.name: provider.root for provider in self.providers.values()}

    def is_sharing(self, provider: str) -> bool:
        """Return whether a provider shares what it has with other trees."""
        listed_provider = self.providers.get(provider)
        return listed_provider is not None and listed_provider.sharing


def _is_up_without_node(service: Service, hosts: Collection[str]) -> bool:
    return service.binary == COMPUTE and service.state == "up" and service.host not in hosts


def group_by_tree(
    allocations: Allocations, index: SnapshotIndex
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


def find_roots_of_hosts(
    hosts: Iterable[str], nodes: Iterable[Hypervisor], providers: Mapping[str, Provider]
) -> frozenset[str]:
    """Return the root providers of the named hosts.

    A compute node can be named by its name, host or uuid, and a root provider without one by its
    name or uuid.

    Raises InvalidInput for a host that neither Nova nor Placement has.
    """
    roots_by_name: dict[str, set[str]] = {}
    for provider in providers.values():
        if provider.is_host:
            for name in (provider.uuid, provider.name):
                roots_by_name.setdefault(name, set()).add(provider.uuid)
    for node in nodes:
        for name in (node.uuid, node.name, node.host):
            roots_by_name.setdefault(name, set()).add(node.uuid)
    unknown_names = sorted(set(hosts) - set(roots_by_name))
    if unknown_names:
        raise InvalidInput(
            f"hosts names {', '.join(unknown_names)}, which neither Nova nor Placement knows: "
            "give hypervisor names or UUIDs."
        )
    roots: set[str] = set()
    for name in hosts:
        # A host of ironic has several compute nodes, each with a root provider.
        roots.update(roots_by_name[name])
    return frozenset(roots)
