# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The allocations in the scope, read from Placement while Nova lists its compute nodes.

A cloud can be cut into shards. A shard has the trees whose root uuids fall to it, and lists the
allocations of these. Every shard reads all listings of Nova, so that it knows where each server is,
and the allocations of all sharing providers, which belong to no tree.

A consumer with allocations of several trees is seen by several shards, and seems healthy to the one
that has its host. So it belongs to the lowest of the trees where it is not, because it is a
candidate in that shard for certain, and to the tree of its own host only when it has only that.
"""

from __future__ import annotations

import collections
import dataclasses as d
from collections.abc import Callable, Collection, Iterable, Mapping

from ..._common.errors import CloudError, InvalidInput
from ..._common.parallel import map_parallel, run_parallel
from ..._common.text import normalize_uuid, suggest_names, summarize_names
from ..clients.nova import NovaReader
from ..clients.placement import PlacementReader
from ..facts.index import ListingsIndex, group_by_tree
from ..models.nova import Hypervisor, Server
from ..models.placement import Allocations, Provider, sum_amounts
from ..models.snapshot import Answer, Scope, Shard

# Placement's project of a consumer whose owner it does not know, such as one from before Rocky
# ([placement]incomplete_consumer_project_id).
NO_PROJECT = "00000000-0000-0000-0000-000000000000"
# So many consumers are looked up for it at most, as many at once, and until so many were found. A
# cloud in which more are wrong has another fault.
_MAX_LOOKUPS, _BATCH, _MAX_UNOWNED = 2000, 100, 100


def find_unowned(
    placement: PlacementReader, consumers: Iterable[str]
) -> tuple[list[str], dict[str, int]]:
    """Return the consumers of no project, and what those have that were not looked up.

    Raises CloudError when Placement does not say what is allocated for no project.
    """
    left = collections.Counter(placement.get_usages(NO_PROJECT))
    found: list[str] = []
    uuids = sorted(consumers) if +left else []
    for start in range(0, len(uuids), _BATCH):
        if not +left or start >= _MAX_LOOKUPS or len(found) >= _MAX_UNOWNED:
            return found, dict(+left)
        for allocation in placement.get_allocations(uuids[start : start + _BATCH]):
            if allocation.project == NO_PROJECT:
                found.append(allocation.consumer)
                left.subtract(sum_amounts(allocation.resources.values()))
    return found, {}


@d.dataclass(frozen=True)
class AllocationListing:
    """The allocations that were read, by consumer.

    trees: the roots of the trees of which they were read, None for all.
    """

    allocations: Mapping[str, Allocations] = d.field(default_factory=dict)
    trees: Collection[str] | None = None


class AllocationReader:
    """Reads the allocations of hosts, of consumers, of a shard or of the whole cloud."""

    def __init__(self, placement: PlacementReader, nova: NovaReader) -> None:
        self._placement = placement
        self._nova = nova

    def read(
        self,
        scope: Scope | None,
        providers: Mapping[str, Provider],
        list_nodes: Callable[[], Answer[tuple[Hypervisor, ...]]],
    ) -> tuple[Answer[tuple[Hypervisor, ...]], AllocationListing]:
        """Read the allocations in `scope`, and list Nova's compute nodes.

        The nodes are listed meanwhile, or before where they say what to read.
        """
        if scope is None:
            return list_nodes(), AllocationListing()
        if scope.is_limited_to_hosts:
            # Which trees are those of the hosts, only the compute nodes say.
            hypervisors = list_nodes()
            trees = self._find_named_roots(scope, hypervisors, providers)
            if scope.is_narrow:
                return hypervisors, self._read_named_allocations(scope, trees, providers)
            return hypervisors, self._read_allocations_of_groups(trees, providers)
        shard = scope.shard
        wanted = list_providers_to_read(shard.contains, providers) if shard else providers
        allocations_by_consumer, hypervisors = self._read_meanwhile(wanted, list_nodes)
        if shard is None:
            return hypervisors, AllocationListing(allocations_by_consumer)
        return hypervisors, AllocationListing(
            select_allocations(shard.contains, allocations_by_consumer, providers),
            list_roots_in_shard(shard, providers, hypervisors.value or ()),
        )

    def _read_meanwhile(
        self, wanted: Iterable[str], list_nodes: Callable[[], Answer[tuple[Hypervisor, ...]]]
    ) -> tuple[dict[str, Allocations], Answer[tuple[Hypervisor, ...]]]:
        """Read the allocations on the `wanted` providers while Nova lists its compute nodes.

        Placement waits until Nova has shown at which pace it lists them best.
        """

        def read_undisturbing() -> dict[str, Allocations]:
            self._nova.undisturbed.wait()
            return self._placement.list_allocations_on_providers(wanted)

        def list_nodes_to_the_end() -> Answer[tuple[Hypervisor, ...]]:
            try:
                return list_nodes()
            finally:
                self._nova.undisturbed.set()

        return run_parallel(read_undisturbing, list_nodes_to_the_end)

    def _read_named_allocations(
        self, scope: Scope, trees: frozenset[str], providers: Mapping[str, Provider]
    ) -> AllocationListing:
        """Read the allocations of the hosts and of the consumers that a narrow scope names."""
        in_trees = self._placement.list_allocations_on_providers(
            uuid for uuid, provider in providers.items() if provider.root in trees
        )
        # Of a named consumer the whole allocation was read, and in the trees only a part of it.
        return AllocationListing({**in_trees, **self._read_named_consumers(scope)}, trees)

    def _read_allocations_of_groups(
        self, trees: frozenset[str], providers: Mapping[str, Provider]
    ) -> AllocationListing:
        """Read the allocations of the hosts in groups, as a reading of the whole cloud does."""
        wanted = list_providers_to_read(trees.__contains__, providers)
        allocations = self._placement.list_allocations_on_providers(wanted)
        # Of these, a sharing provider lists also the consumers of all other hosts.
        selected = select_allocations(trees.__contains__, allocations, providers)
        return AllocationListing(selected, trees)

    @staticmethod
    def _find_named_roots(
        scope: Scope, nodes: Answer[tuple[Hypervisor, ...]], providers: Mapping[str, Provider]
    ) -> frozenset[str]:
        """Return the roots of the hosts that are named, each by itself or with a group.

        Raises CloudError when Nova does not list its compute nodes, and InvalidInput when no host
        is left.
        """
        names_hosts = scope.hosts or not scope.groups.is_empty
        if names_hosts and nodes.value is None:
            raise CloudError(
                f"Nova answered {nodes.status} when asked for its compute nodes, so the named "
                "hosts cannot be found: a cell is not answering."
            )
        roots = find_roots_of_hosts(scope.hosts, nodes.value or (), providers)
        if scope.groups.is_empty:
            return roots
        in_groups = find_roots_of_members(scope.groups.hosts, nodes.value or (), providers)
        if not scope.hosts:
            roots = in_groups
        if not roots & in_groups:
            raise InvalidInput(_explain_empty_scope(scope))
        return roots & in_groups

    def _read_named_consumers(self, scope: Scope) -> dict[str, Allocations]:
        """Return the allocations of the named consumers, and of the migrations of named servers."""
        consumers = set(scope.consumers)
        for answer in map_parallel(self._nova.list_migrations_of_server, scope.consumers):
            consumers.update(migration.uuid for migration in answer.value or ())
        return {
            allocation.consumer: allocation.resources
            for allocation in self._placement.get_allocations(consumers)
        }


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
        host_names = [name for name in roots_by_name if not normalize_uuid(name)]
        raise InvalidInput(
            f"hosts: neither Nova nor Placement knows {summarize_names(unknown_names)}. "
            "Give the names or UUIDs of hypervisors. "
            f"{suggest_names(unknown_names[0], host_names)}".rstrip()
        )
    # A host of ironic has several compute nodes, each with a root provider.
    return frozenset().union(*(roots_by_name[name] for name in hosts))


def find_roots_of_members(
    hosts: Collection[str], nodes: Iterable[Hypervisor], providers: Mapping[str, Provider]
) -> frozenset[str]:
    """Return the root providers of hosts that are members of a group.

    A group names the host of a compute service. It has the compute nodes of that host, and the root
    providers of the same name that are not a compute node of another host: Nova names the provider
    of a host that it no longer lists, or that is in a cell that does not answer, after its node.
    """
    members = set(hosts)
    roots: set[str] = set()
    names, elsewhere = set(members), set()
    for node in nodes:
        if node.host in members:
            roots.add(node.uuid)
            names.add(node.name)
        else:
            elsewhere.add(node.uuid)
    for uuid, provider in providers.items():
        if provider.is_host and provider.name in names and uuid not in elsewhere:
            roots.add(uuid)
    return frozenset(roots)


def _explain_empty_scope(scope: Scope) -> str:
    """Return why no host is left to read."""
    if scope.hosts:
        return (
            f"hosts: {summarize_names(scope.hosts)} is not in {scope.groups}. A host must be in "
            "hosts and in one of each of these groups: leave out hosts, or correct the groups."
        )
    return (
        f"Neither Nova nor Placement knows a compute node of {scope.groups}, so there is nothing "
        "to read: correct the names."
    )


def list_roots_in_shard(
    shard: Shard, providers: Mapping[str, Provider], nodes: Iterable[Hypervisor]
) -> frozenset[str]:
    """Return the roots in the shard, and with them the compute nodes that have no provider."""
    roots = {provider.root for provider in providers.values()}
    roots.update(node.uuid for node in nodes)
    return frozenset(filter(shard.contains, roots))


def list_providers_to_read(
    contains: Callable[[str], bool], providers: Mapping[str, Provider]
) -> list[str]:
    """Return the providers whose allocations a part of a cloud lists.

    contains: whether the tree with a root is in the part, such as `Shard.contains`.
    """
    wanted = []
    for uuid, provider in providers.items():
        # A sharing provider belongs to no tree, so every part reads it.
        if provider.sharing or contains(provider.root):
            wanted.append(uuid)
    return wanted


def select_allocations(
    contains: Callable[[str], bool],
    allocations_by_consumer: Mapping[str, Allocations],
    providers: Mapping[str, Provider],
) -> dict[str, Allocations]:
    """Return the allocations of the consumers in a part of a cloud, as far as the part reads them.

    contains: whether the tree with a root is in the part.
    """
    wanted = set(list_providers_to_read(contains, providers))
    selected: dict[str, Allocations] = {}
    for consumer, allocations in allocations_by_consumer.items():
        part = {uuid: amounts for uuid, amounts in allocations.items() if uuid in wanted}
        # A consumer of which only sharing providers are read is another part's.
        if any(contains(providers[uuid].root) for uuid in part):
            selected[consumer] = part
    return selected


def is_left_to_other_shard(consumer: str, allocations: Allocations, index: ListingsIndex) -> bool:
    """Return whether the shard of a consumer's host sees all that this shard does.

    The consumer is then on a host of another shard, and this one sees only its shared disk.
    """
    nodes = index.list_nodes_with(consumer)
    if not nodes or group_by_tree(allocations, index):
        return False
    return not any(map(index.covers, nodes))


def find_owning_root(
    consumer: str,
    allocations: Allocations,
    index: ListingsIndex,
    server_details: Mapping[str, Server],
) -> str | None:
    """Return the root whose shard reports a consumer; None when it is a candidate of no shard.

    allocations: all that the consumer holds, in whichever shard.
    server_details: servers by uuid, read by every shard that has a compute node of their host
        where that has several. The listing does not say on which of these a server is.
    """
    roots = {root for root in group_by_tree(allocations, index) if root is not None}
    homes = index.list_nodes_with(consumer)
    server = server_details.get(consumer)
    # An incremental reading has no listing that shows the servers of all hosts.
    if not homes and server is not None and server.host:
        homes = index.list_nodes_at(server.host)
    elsewhere = roots - homes
    if elsewhere:
        return min(elsewhere)
    if not homes:
        return min(filter(None, map(index.get_root, allocations)), default=None)
    home = None
    if server is not None and len(homes) > 1:
        home = index.find_tree_at(server.host, server.node)
    return min((roots - {home}) or roots or homes)
