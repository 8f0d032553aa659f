# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""The kinds of finding that are about hosts, services and migrations and not about one consumer:
one function a kind, named as the kind.

Each looks at the whole snapshot and yields a finding for whatever it is true of.
"""

from __future__ import annotations

import typing as t

from ansible_collections.osops.placement.plugins.module_utils._common.text import summarize_names
from ansible_collections.osops.placement.plugins.module_utils._common.times import (
    format_duration,
    seconds_between,
)
from ansible_collections.osops.placement.plugins.module_utils._models.change import (
    ProviderRemoval,
    sort_children_first,
)
from ansible_collections.osops.placement.plugins.module_utils._models.verdict import (
    DRIFTED,
    PROTECTED,
    UNDECIDED,
    Finding,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.services import COMPUTE

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Iterator, Mapping

    from ansible_collections.osops.placement.plugins.module_utils._models.nova import (
        Hypervisor,
        Migration,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Inventory,
        Provider,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy
    from ansible_collections.osops.placement.plugins.module_utils._snapshot.index import (
        SnapshotIndex,
    )


def orphaned_provider(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """A provider that was a compute node's, with no compute node behind it.

    Proof: The reading is sound, and Nova lists no compute node of that uuid. It has the trait
    `COMPUTE_NODE` or `OWNER_NOVA`, which only Nova gives: a provider with processors and memory
    alone may be another service's. Undecided when another Nova, or a compute service without a
    node, may stand behind it.

    Needs: Every cell: it rests on no cell having the compute node. The host is also looked up
    directly, by its mapping.

    Change: its tree is deleted, children first, once nobody has an allocation of it.
    """
    conflicting = {provider.uuid for provider, node in _find_name_conflicts(index)}
    for root in _list_roots_without_node(index):
        if root.uuid not in conflicting and index.has_nova_trait(root.uuid):
            reason = (
                f"No compute node of this Nova stands behind provider {root.name}, which was "
                "one's by its traits."
            )
            yield _build_tree_finding("orphaned_provider", index, root, reason, policy)


def name_conflict(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """A provider has the name of a compute node that has no provider of its own.

    Proof: The reading is sound, and the compute node of that name has another uuid, for which
    Placement has no provider (LP 1817833). The provider has the trait `COMPUTE_NODE` or
    `OWNER_NOVA`, which only Nova gives; undecided without one.

    Needs: Every cell: it rests on no cell having a compute node with the UUID of the provider.

    Change: its tree is deleted, children first, once nobody has an allocation of it; restart
    nova-compute on the host afterwards.
    """
    for root, node in _find_name_conflicts(index):
        reason = (
            f"Compute node {node.name} is {node.uuid} now, and its name is held by provider "
            f"{root.uuid}, "
            "so that Placement refuses a provider to it and nothing can be scheduled there (LP "
            "1817833). "
            f"When that tree is deleted, restart nova-compute on {node.host}."
        )
        yield _build_tree_finding("name_conflict", index, root, reason, policy)


def capacity_mismatch(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """More is claimed than there is, or the inventory is not the host's.

    Proof: The claims on a provider exceed its capacity, or the total of its inventory is not what
    nova-compute reports. Looked for on the providers of other findings, on named hosts, and
    everywhere if this kind is named.

    Needs: Nothing more: it is only reported, of the providers and compute nodes that were read.

    Change: none.
    """
    used = index.used
    for uuid, details in sorted(index.snapshot.details.items()):
        inventory = details.inventories
        told = [
            f"{used.get(uuid, {}).get(cls, 0)} {cls} are claimed of a capacity of {stock.capacity}"
            for cls, stock in sorted(inventory.items())
            if used.get(uuid, {}).get(cls, 0) > stock.capacity
        ]
        node = index.nodes.get(uuid)
        if node is not None:
            told += _describe_inventory_differences(node, inventory)
        if told:
            reason = f"On {index.get_name(uuid)}, {'; '.join(told)}."
            yield Finding(
                "capacity_mismatch",
                DRIFTED,
                uuid,
                reason,
                providers=(uuid,),
                evidence=(index.snapshot.hypervisors,),
            )


def unconfirmed_resize(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """A resize waits to be confirmed or reverted for very long.

    Proof: Its migration has been `finished` for `orphan_cleanup_unconfirmed_min_age`.

    Needs: The cell of the server, which lists the migration.

    Change: none: confirm or revert it.
    """
    listing = index.snapshot.migrations
    for migration in _list_migrations_in_scope(index):
        age = seconds_between(migration.updated_at or migration.created_at, listing.at)
        if migration.status == "finished" and age is not None and age >= policy.unconfirmed_min_age:
            yield Finding(
                "unconfirmed_resize",
                DRIFTED,
                migration.uuid,
                f"Nova has had the resize of server {migration.server} from "
                f"{migration.source_compute} to {migration.dest_compute} as finished "
                f"for {format_duration(age)}, neither confirmed nor reverted: do one of both, "
                "and until then both hosts stay claimed.",
                migration=migration,
                evidence=(listing,),
            )


def stuck_migration(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """A migration is under way and has not changed for very long.

    Proof: It has not ended and has not been changed for `orphan_cleanup_stuck_min_age`.

    Needs: The cell of the server, which lists the migration.

    Change: none: see whether it runs, and abort it or reset the server's state if not.
    """
    listing = index.snapshot.migrations
    for migration in _list_migrations_in_scope(index):
        age = seconds_between(migration.updated_at or migration.created_at, listing.at)
        if (
            not migration.ended
            and migration.status != "finished"
            and age is not None
            and age >= policy.stuck_min_age
        ):
            yield Finding(
                "stuck_migration",
                DRIFTED,
                migration.uuid,
                f"Migration {migration.uuid} ({migration.type}) of server {migration.server} from "
                f"{migration.source_compute} to "
                f"{migration.dest_compute} is {migration.status} and has not changed for "
                f"{format_duration(age)}: see whether it still runs, and abort it "
                "or reset the server's state if not.",
                migration=migration,
                evidence=(listing,),
            )


def stale_service(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """A compute service is down, and is disabled, forced down or without a compute node.

    Proof: It has not reported for `orphan_cleanup_stale_min_age`.

    Needs: The cell of the service, which shows its last report.

    Change: none: retire the host.
    """
    listing = index.snapshot.services
    if index.snapshot.hypervisors.value is None:
        return
    hosts = {node.host for node in index.nodes.values()}
    named = _list_hosts_in_scope(index)
    for service in listing.value or ():
        if (named is not None and service.host not in named) or not index.is_in_shard(service.host):
            continue
        age = seconds_between(service.updated_at, listing.at)
        if (
            service.binary != COMPUTE
            or service.state != "down"
            or age is None
            or age < policy.stale_min_age
        ):
            continue
        if service.status == "disabled" or service.forced_down or service.host not in hosts:
            why = (
                "has no compute node"
                if service.host not in hosts
                else "is forced down"
                if service.forced_down
                else "is disabled"
            )
            yield Finding(
                "stale_service",
                DRIFTED,
                service.host,
                f"The {COMPUTE} of {service.host} {why} and has not reported for "
                f"{format_duration(age)}: if the host is gone, retire it "
                "(osops.placement.decommission_host).",
                service=service,
                evidence=(listing,),
            )


def _list_roots_without_node(index: SnapshotIndex) -> list[Provider]:
    """Return the roots in scope that are no compute node's; none when the reading is not sound or
    not of all cells.

    All of them may seem so then.
    """
    if index.failed_absence_checks:
        return []
    return [
        root for root in index.roots if root.uuid not in index.nodes and index.covers(root.uuid)
    ]


def _find_name_conflicts(index: SnapshotIndex) -> list[tuple[Provider, Hypervisor]]:
    """Return the strangers that have the name of a compute node which has no provider of its own."""
    named = {node.name: node for node in index.nodes.values() if node.uuid not in index.providers}
    return [
        (root, named[root.name]) for root in _list_roots_without_node(index) if root.name in named
    ]


def _list_hosts_in_scope(index: SnapshotIndex) -> set[str] | None:
    """Return the hosts that are named, by the names of services, compute nodes and providers; None
    when all are wanted.
    """
    if not index.snapshot.scope.is_narrow:
        return None
    roots = [root for root in index.roots if index.covers(root.uuid)]
    return {root.name for root in roots} | {
        index.nodes[root.uuid].host for root in roots if root.uuid in index.nodes
    }


def _list_migrations_in_scope(index: SnapshotIndex) -> list[Migration]:
    """Return the migrations in scope: those of named servers, and those from or to named hosts."""
    scope, hosts = index.snapshot.scope, _list_hosts_in_scope(index)
    rows = [row for row in index.migrations.values() if index.is_in_shard(row.uuid)]
    if hosts is None:
        return rows
    return [
        row
        for row in rows
        if row.server in scope.consumers or {row.source_compute, row.dest_compute} & hosts
    ]


def _explain_possible_use(index: SnapshotIndex, root: Provider) -> str:
    """Say why a provider without a compute node may still be needed; nothing if nobody needs it."""
    if not index.has_nova_trait(root.uuid):
        others = index.snapshot.cloud.allocators
        known = f", and this cloud has {', '.join(others)} in its catalogue" if others else ""
        return f"it has no trait COMPUTE_NODE, so nothing says that it is Nova's{known}"
    return index.find_possible_host(root.uuid)


def _build_tree_finding(
    kind: str, index: SnapshotIndex, root: Provider, reason: str, policy: Policy
) -> Finding:
    tree = sort_children_first(root.uuid, index.providers.values())
    if excluded := policy.explain_exclusion(
        name for provider in tree for name in (provider.uuid, provider.name)
    ):
        return Finding("excluded", PROTECTED, root.uuid, f"{reason} {excluded}")
    holders = index.consumers_by_tree.get(root.uuid, frozenset())
    doubt = _explain_possible_use(index, root)
    if doubt:
        reason += f" But {doubt}."
    if holders:
        reason += f" {_describe_consumers(holders)}"
    return Finding(
        kind,
        UNDECIDED if doubt else DRIFTED,
        root.uuid,
        reason,
        providers=tuple(provider.uuid for provider in tree),
        evidence=(index.snapshot.hypervisors, index.snapshot.services),
        change=None if doubt or holders else ProviderRemoval(tree),
    )


def _describe_consumers(holders: Collection[str]) -> str:
    """Say who has an allocation of a tree that is to be deleted."""
    if len(holders) == 1:
        return (
            f"1 consumer holds an allocation of its tree ({min(holders)}), and before that is "
            "gone it cannot be deleted."
        )
    return (
        f"{len(holders)} consumers hold allocations of its tree "
        f"({summarize_names(sorted(holders))}), and before these are gone it cannot be deleted."
    )


def _describe_inventory_differences(
    node: Hypervisor, inventory: Mapping[str, Inventory]
) -> list[str]:
    """Say where the inventory of a root is not what nova-compute reports of its host."""
    told = []
    for cls, members in node.PLACEMENT_CLASSES.items():
        stocks = [inventory[member].total for member in members if member in inventory]
        if stocks and node.has.get(cls) and sum(stocks) != node.has[cls]:
            told.append(
                f"the inventory has {sum(stocks)} {'+'.join(members)} and the hypervisor reports "
                f"{node.has[cls]}"
            )
    return told
