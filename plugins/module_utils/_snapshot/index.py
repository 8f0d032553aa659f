# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
# Do not use this from other collections or standalone plugins/modules!

"""A snapshot, so that one can find one's way in it: trees, nodes, hosts and who holds what. Pure."""

from __future__ import annotations

import dataclasses as d
import functools
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.errors import InvalidInput
from ansible_collections.osops.placement.plugins.module_utils._common.uuids import normalize_uuid
from ansible_collections.osops.placement.plugins.module_utils._models.placement import NOVA_TRAITS
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
    """What a snapshot says of the cloud as a whole, indexed once for all its cases."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._trees = None if snapshot.trees is None else frozenset(snapshot.trees)
        self.providers = snapshot.providers
        nodes = snapshot.hypervisors.value or ()
        self.nodes = {node.uuid: node for node in nodes}
        self.migrations = {
            migration.uuid: migration for migration in snapshot.migrations.value or ()
        }
        self._by_address: dict[tuple[str, str], list[Hypervisor]] = {}
        for node in nodes:
            self._by_address.setdefault((node.host, node.name), []).append(node)

    @property
    def roots(self) -> list[Provider]:
        """The root providers in the order of their names, sharing ones left out."""
        found = (provider for provider in self.providers.values() if provider.is_host)
        return sorted(found, key=lambda provider: provider.name)

    def covers(self, root: str) -> bool:
        """Tell whether everybody who holds a share of the tree `root` was read."""
        return self._trees is None or root in self._trees

    def is_in_shard(self, name: str) -> bool:
        """Tell whether a migration or a service is to be told of here, and not by another shard."""
        shard = self.snapshot.scope.shard
        return shard is None or shard.contains(name)

    @functools.cached_property
    def failed_checks(self) -> tuple[str, ...]:
        """Why nothing may be changed after this reading, a sentence each; nothing when it is sound."""
        return list_failed_checks(self.snapshot)

    @functools.cached_property
    def failed_absence_checks(self) -> tuple[str, ...]:
        """Why nothing may be concluded from absence, a sentence each; nothing when the reading is sound and every cell answered."""
        return list_failed_absence_checks(self.snapshot)

    @functools.cached_property
    def unjudged_hosts(self) -> frozenset[str]:
        """The hosts of cells that did not answer at some time of the reading."""
        return frozenset(list_unjudged_hosts(self.snapshot))

    @functools.cached_property
    def hosts_listed(self) -> frozenset[str]:
        """The hosts whose nova-compute and compute node are both listed: nobody else can stand behind a provider of such a name."""
        return get_hosts_in_every_listing(self.snapshot) & {
            node.host for node in self.nodes.values()
        }

    @property
    def has_servers_of_every_host(self) -> bool:
        """Whether every host was asked for its servers."""
        return all(node.servers is not None for node in self.nodes.values())

    def get_listed_migrations(self, server: str) -> Answer[tuple[Migration, ...]]:
        """Return what the listing of all migrations says of one server, as if it had been asked for that."""
        listing = self.snapshot.migrations
        return (
            listing
            if listing.value is None
            else d.replace(listing, value=tuple(self._migrations_by_server.get(server, ())))
        )

    @functools.cached_property
    def _migrations_by_server(self) -> Mapping[str, list[Migration]]:
        found: dict[str, list[Migration]] = {}
        for migration in self.migrations.values():
            found.setdefault(migration.server, []).append(migration)
        return found

    def find_tree_at(self, host: str | None, node: str | None) -> str | None:
        """Return the root of the one compute node at `(host, node)`; None where there is none, or more than one."""
        matches = self._by_address.get((host or "", node or ""), [])
        return matches[0].uuid if len(matches) == 1 else None

    def is_at(self, root: str, host: str | None, node: str | None) -> bool:
        """Tell whether the tree `root` is that of the compute node at `(host, node)`, also when Nova no longer lists that."""
        known = self.nodes.get(root)
        if known is not None:
            return (known.host, known.name) == (host, node)
        provider = self.providers.get(root)
        return provider is not None and provider.name == node

    def may_be_at(self, root: str, host: str | None, node: str | None) -> bool:
        """Tell whether the tree `root` has something of that host or of that node: enough to leave it alone."""
        known, provider = self.nodes.get(root), self.providers.get(root)
        names = {known.host, known.name} if known else {provider.name} if provider else set()
        return not names.isdisjoint({host, node} - {None, ""})

    def has_nova_trait(self, root: str) -> bool:
        """Tell whether the root provider has a trait that only Nova gives; it is not said of one whose traits were not read."""
        details = self.snapshot.details.get(root)
        return details is not None and bool(NOVA_TRAITS & details.traits)

    def is_gone(self, root: str) -> bool:
        """Tell whether the tree `root` was a compute node's, and neither a compute node nor a compute service stands behind it."""
        return (
            self.has_nova_trait(root)
            and root not in self.nodes
            and not self.find_possible_host(root)
        )

    def is_named(self, root: str) -> bool:
        """Tell whether the user named the host with the tree `root`."""
        provider = self.providers.get(root)
        return provider is not None and not {provider.uuid, provider.name}.isdisjoint(
            self.snapshot.scope.hosts
        )

    def find_possible_host(self, root: str) -> str:
        """Say who else may stand behind a root provider without a compute node; nothing if nobody."""
        if self._listing_doubt:
            return self._listing_doubt
        if doubt := self.find_doubtful_lookup(root):
            return doubt
        if normalize_uuid(self.get_name(root)):
            # The name of a node of ironic: no host has it, so that the look-up by it proves nothing.
            return "its name is a UUID, as that of a bare metal node, by which its host cannot be looked up directly"
        if regions := self.snapshot.cloud.other_novas:
            return f"region {', '.join(regions)} has a Nova of its own on this same Placement, and it may be one of its hosts"
        hosts = {node.host for node in self.nodes.values()}
        answers = (self.snapshot.services, self.snapshot.services_after)
        services = [service for answer in answers for service in answer.value or ()]
        unlisted = sorted(
            {service.host for service in services if _is_up_without_node(service, hosts)}
        )
        if unlisted:
            return f"the {COMPUTE} of {', '.join(unlisted)} runs and has no compute node yet (nova-manage cell_v2 discover_hosts)"
        name = self.get_name(root)
        if its_own := sorted(
            {service.host for service in services if may_have_unlisted_node(service, hosts, name)}
        ):
            return f"the {COMPUTE} of {', '.join(its_own)} is down and may be the one behind it: retire that host (osops.placement.decommission_host)"
        return ""

    def find_doubtful_lookup(self, root: str) -> str:
        """Say which direct look-up of the host behind a provider did not answer that there is none; nothing if all did."""
        for name in list_host_names(self.get_name(root)):
            lookup = self.snapshot.host_lookups.get(name)
            if name in self.hosts_listed or (lookup is not None and lookup.status == 404):
                continue
            answered = f"answered {lookup.status} when" if lookup else "was not"
            return f"Nova {answered} asked for host {name} directly"
        return ""

    @functools.cached_property
    def _listing_doubt(self) -> str:
        """Say why a compute node may be missing in Nova's listing of them as a whole; nothing when it is sound."""
        if (
            self.snapshot.hypervisors.value is None
            or not has_every_cell_answered(self.snapshot.services)
            or self.unjudged_hosts
        ):
            return "a cell is not answering, and it may be one of its hosts"
        return find_region_mismatch(self.snapshot.hypervisors.value, self.providers) or " ".join(
            self.failed_checks
        )

    def get_listed_host(self, server: str) -> str | None:
        """Return the host on which the hypervisor listing shows `format_server`."""
        return self._host_by_server.get(server)

    def list_nodes_with(self, server: str) -> frozenset[str]:
        """Return the compute nodes of the host on which the hypervisor listing shows `format_server`: one, or all that the host has."""
        return frozenset(self._nodes_by_host.get(self._host_by_server.get(server, ""), ()))

    @functools.cached_property
    def _nodes_by_host(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for node in self.nodes.values():
            found.setdefault(node.host, []).append(node.uuid)
        return found

    @functools.cached_property
    def used(self) -> Mapping[str, Resources]:
        """The amounts that are claimed of each provider."""
        if self.snapshot.usages:
            return self.snapshot.usages
        sums: dict[str, dict[str, int]] = {}
        for allocations in self.snapshot.allocations.values():
            for provider, share in allocations.items():
                held = sums.setdefault(provider, {})
                for cls, amount in share.items():
                    held[cls] = held.get(cls, 0) + amount
        return sums

    @functools.cached_property
    def _host_by_server(self) -> dict[str, str]:
        return {server: node.host for node in self.nodes.values() for server in node.servers or ()}

    @functools.cached_property
    def consumers_by_tree(self) -> Mapping[str, frozenset[str]]:
        """The consumers that hold a share of each tree, by its root."""
        by_root: dict[str, set[str]] = {}
        for consumer, allocations in self.snapshot.allocations.items():
            for provider in allocations:
                if root := self.get_root(provider):
                    by_root.setdefault(root, set()).add(consumer)
        return {root: frozenset(consumers) for root, consumers in by_root.items()}

    def list_hosts_of(self, allocations: Iterable[str]) -> tuple[str, ...]:
        """Return the hosts behind the providers of `holding`; one that Nova no longer lists goes by its root's name."""
        roots = {
            self.get_root(provider) for provider in allocations if not self.is_sharing(provider)
        }
        return tuple(
            sorted(
                self.nodes[root].host if root in self.nodes else self.get_name(root)
                for root in roots
                if root
            )
        )

    def list_host_names_of(self, allocations: Iterable[str]) -> tuple[str, ...]:
        """Return the names under which Nova may know the hosts behind the providers of `holding`."""
        names: set[str] = set()
        for host in self.list_hosts_of(allocations):
            names.update([host] if host in self.hosts_listed else list_host_names(host))
        return tuple(sorted(names))

    def get_name(self, provider: str) -> str:
        """Return a provider's name, or its uuid where Placement did not list it."""
        known = self.providers.get(provider)
        return known.name if known else provider

    def get_root(self, provider: str) -> str | None:
        known = self.providers.get(provider)
        return known.root if known else None

    def find_root(self, name: str) -> str | None:
        """Return the root of the provider that has that name or uuid."""
        return self.get_root(name) or self._roots_by_name.get(name)

    @functools.cached_property
    def _roots_by_name(self) -> Mapping[str, str]:
        return {provider.name: provider.root for provider in self.providers.values()}

    def is_sharing(self, provider: str) -> bool:
        known = self.providers.get(provider)
        return known is not None and known.sharing


def _is_up_without_node(service: Service, hosts: Collection[str]) -> bool:
    return service.binary == COMPUTE and service.state == "up" and service.host not in hosts


def group_by_tree(
    allocations: Allocations, index: SnapshotIndex
) -> dict[str | None, frozenset[str]]:
    """Return the providers of `holding` by their root (None where the provider was not listed), sharing ones left out."""
    by_root: dict[str | None, set[str]] = {}
    for provider in allocations:
        if not index.is_sharing(provider):
            by_root.setdefault(index.get_root(provider), set()).add(provider)
    return {root: frozenset(held) for root, held in by_root.items()}


def find_roots_of_hosts(
    hosts: Iterable[str], nodes: Iterable[Hypervisor], providers: Mapping[str, Provider]
) -> frozenset[str]:
    """Return the root providers of the named hosts: compute nodes by name, host or uuid, and providers that are none by name or uuid.

    Raises InvalidInput for a host that neither Nova nor Placement knows.
    """
    known: dict[str, set[str]] = {}
    for provider in providers.values():
        if provider.is_host:
            for name in (provider.uuid, provider.name):
                known.setdefault(name, set()).add(provider.uuid)
    for node in nodes:
        for name in (node.uuid, node.name, node.host):
            known.setdefault(name, set()).add(node.uuid)
    if unknown := sorted(set(hosts) - set(known)):
        raise InvalidInput(
            f"hosts names {', '.join(unknown)}, which neither Nova nor Placement knows: give hypervisor names or UUIDs."
        )
    return frozenset().union(*(known[name] for name in hosts))
