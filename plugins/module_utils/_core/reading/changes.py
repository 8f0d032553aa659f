# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What to look up after a few changes, instead of reading the whole cloud again. Pure.

A consumer has to be looked up if its allocation changed, if Nova changed its server or a migration
of it, or if it was not in order at the last reading. Every other consumer is as it was.

Placement gives a provider a new generation with each `PUT` and `POST` of an allocation
(placement/objects/allocation.py, _set_allocations), but not with `DELETE`. So under an old
generation the remembered allocations of a provider may be too many, and never too few.
"""

from __future__ import annotations

import dataclasses as d
from collections.abc import Collection, Mapping

from ..expected.listed import NO_FLAVOR, compare_listed
from ..facts.agreement import get_compute_hosts
from ..facts.consumer import build_views
from ..facts.gaps import list_touched_hosts, list_touched_roots
from ..facts.index import SnapshotIndex
from ..models.memory import Memory
from ..models.nova import Migration, Server
from ..models.placement import Allocations, Provider, Resources
from ..models.resource_request import PciAlias
from ..models.snapshot import Scope

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
    changed = []
    for uuid, provider in providers.items():
        is_changed = memory.generations.get(uuid) != provider.generation
        if is_changed or (provider.root not in roots_of_nodes and not provider.sharing):
            changed.append(uuid)
    return sorted(changed)


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
    chosen = set(memory.watched)
    servers = {server.uuid: server for server in changes.servers}
    for consumer in memory.allocations.keys() | allocations.keys():
        is_changed = memory.allocations.get(consumer, {}) != allocations.get(consumer, {})
        # What a changed server says of itself decides below.
        if is_changed and consumer not in servers:
            chosen.add(consumer)
    trees = _index_trees(memory)
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


def _index_trees(memory: Memory) -> dict[tuple[str, str], str]:
    """Return the root providers of the compute nodes by their hosts and names."""
    return {(node.host, node.name): node.uuid for node in memory.nodes}


def _has_roots_only(allocations: Allocations, providers: Mapping[str, Provider]) -> bool:
    """Return whether no allocation is on a child provider, or on one that was not listed."""
    return all(uuid in providers and providers[uuid].root == uuid for uuid in allocations)


def _is_in_order(
    server: Server,
    allocations: Allocations,
    tree: str | None,
    providers: Mapping[str, Provider],
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
    for uuid in allocations:
        provider = providers.get(uuid)
        is_sharing = provider is not None and provider.sharing
        # What is on a child provider, a listing does not explain.
        if uuid != tree and not is_sharing:
            return False
    return True


def _has_its_amounts(
    server: Server,
    allocations: Allocations,
    scope: Scope,
    pci_aliases: Mapping[str, PciAlias],
) -> bool:
    """Return whether a changed server has the amounts that its flavor and image request."""
    if not allocations:
        return True
    compared = compare_listed(server, allocations, pci_aliases)
    if NO_FLAVOR in compared.missing:
        return False
    if scope.names_amounts and (compared.missing or len(allocations) > 1):
        return False
    return compared.fits
