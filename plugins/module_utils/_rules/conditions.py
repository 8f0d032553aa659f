# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at
# any time.
# Do not use this from other collections or standalone plugins/modules!

"""The kinds of finding about hosts, services and migrations: one function of the name of each kind.

Each checks the whole snapshot and yields a finding for everything that is of its kind.
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
        Service,
    )
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import (
        Inventory,
        Provider,
        Resources,
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
            f"{root.uuid}, so that Placement refuses a provider to it and nothing can be "
            "scheduled there (LP 1817833). When that tree is deleted, restart nova-compute on "
            f"{node.host}."
        )
        yield _build_tree_finding("name_conflict", index, root, reason, policy)


def capacity_mismatch(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """More is allocated than there is, or the inventory is not the host's.

    Proof: The claims on a provider exceed its capacity, or the total of its inventory is not what
    nova-compute reports. Looked for on the providers of other findings, on named hosts, and
    everywhere if this kind is named.

    Needs: Nothing more: it is only reported, of the providers and compute nodes that were read.

    Change: none.
    """
    for uuid, details in sorted(index.snapshot.details.items()):
        mismatches = _describe_overuse(index.used.get(uuid, {}), details.inventories)
        # Only the root of a compute node has an inventory that nova-compute reports.
        node = index.nodes.get(uuid)
        if node is not None:
            mismatches += _describe_inventory_differences(node, details.inventories)
        if not mismatches:
            continue
        yield Finding(
            "capacity_mismatch",
            DRIFTED,
            uuid,
            f"On {index.get_name(uuid)}, {'; '.join(mismatches)}.",
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
        # Nova calls a resize that waits for its confirmation `finished`.
        if migration.status != "finished":
            continue
        age = seconds_between(migration.changed_at, listing.at)
        if age is None or age < policy.unconfirmed_min_age:
            continue
        yield Finding(
            "unconfirmed_resize",
            DRIFTED,
            migration.uuid,
            f"Nova has had the resize of server {migration.server} from "
            f"{migration.source_compute} to {migration.dest_compute} as finished for "
            f"{format_duration(age)}, neither confirmed nor reverted: do one of both, and until "
            "then both hosts stay claimed.",
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
        # `finished` waits for the user, which is the kind unconfirmed_resize.
        if migration.ended or migration.status == "finished":
            continue
        age = seconds_between(migration.changed_at, listing.at)
        if age is None or age < policy.stuck_min_age:
            continue
        yield Finding(
            "stuck_migration",
            DRIFTED,
            migration.uuid,
            f"Migration {migration.uuid} ({migration.type}) of server {migration.server} from "
            f"{migration.source_compute} to {migration.dest_compute} is {migration.status} and "
            f"has not changed for {format_duration(age)}: see whether it still runs, and abort "
            "it or reset the server's state if not.",
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
    # Without the listing of compute nodes, every service would seem to have none.
    if index.snapshot.hypervisors.value is None:
        return
    hosts_with_node = {node.host for node in index.nodes.values()}
    for service in _list_services_in_scope(index):
        if service.binary != COMPUTE or service.state != "down":
            continue
        age = seconds_between(service.updated_at, listing.at)
        if age is None or age < policy.stale_min_age:
            continue
        state = _describe_stale_state(service, hosts_with_node)
        if not state:
            continue
        yield Finding(
            "stale_service",
            DRIFTED,
            service.host,
            f"The {COMPUTE} of {service.host} {state} and has not reported for "
            f"{format_duration(age)}: if the host is gone, retire it "
            "(osops.placement.decommission_host).",
            service=service,
            evidence=(listing,),
        )


def _list_services_in_scope(index: SnapshotIndex) -> list[Service]:
    """Return the services of the hosts that are in scope and in the shard."""
    hosts_in_scope = _list_hosts_in_scope(index)
    services = []
    for service in index.snapshot.services.value or ():
        in_scope = hosts_in_scope is None or service.host in hosts_in_scope
        if in_scope and index.is_in_shard(service.host):
            services.append(service)
    return services


def _describe_stale_state(service: Service, hosts_with_node: Collection[str]) -> str:
    """Say why a service that is down is not expected to come back; '' if nothing says so."""
    if service.host not in hosts_with_node:
        return "has no compute node"
    if service.forced_down:
        return "is forced down"
    if service.status == "disabled":
        return "is disabled"
    return ""


def _list_roots_without_node(index: SnapshotIndex) -> list[Provider]:
    """Return the roots in scope that are not a compute node's.

    The list is empty when the reading is not sound or not of all cells, because then all
    roots may seem to be without a node.
    """
    if index.failed_absence_checks:
        return []
    return [
        root for root in index.roots if root.uuid not in index.nodes and index.covers(root.uuid)
    ]


def _find_name_conflicts(index: SnapshotIndex) -> list[tuple[Provider, Hypervisor]]:
    """Return the roots that have the name of a compute node without a provider, with that node."""
    nodes_by_name = {}
    for node in index.nodes.values():
        if node.uuid not in index.providers:
            nodes_by_name[node.name] = node
    conflicts = []
    for root in _list_roots_without_node(index):
        if root.name in nodes_by_name:
            conflicts.append((root, nodes_by_name[root.name]))
    return conflicts


def _list_hosts_in_scope(index: SnapshotIndex) -> set[str] | None:
    """Return the hosts in a narrow scope, by the names of nodes and roots; None for all hosts."""
    if not index.snapshot.scope.is_narrow:
        return None
    hosts = set()
    for root in index.roots:
        if not index.covers(root.uuid):
            continue
        hosts.add(root.name)
        # A service and its migrations go by the name of the host, which may be another.
        if root.uuid in index.nodes:
            hosts.add(index.nodes[root.uuid].host)
    return hosts


def _list_migrations_in_scope(index: SnapshotIndex) -> list[Migration]:
    """Return the migrations in scope: those of named servers, and those from or to named hosts."""
    consumers, hosts = index.snapshot.scope.consumers, _list_hosts_in_scope(index)
    migrations = [row for row in index.migrations.values() if index.is_in_shard(row.uuid)]
    if hosts is None:
        return migrations
    in_scope = []
    for migration in migrations:
        ends = {migration.source_compute, migration.dest_compute}
        if migration.server in consumers or ends & hosts:
            in_scope.append(migration)
    return in_scope


def _explain_possible_use(index: SnapshotIndex, root: Provider) -> str:
    """Say why a provider without a compute node may still be needed; '' if it is not."""
    if index.has_nova_trait(root.uuid):
        return index.find_possible_host(root.uuid)
    reason = "it has no trait COMPUTE_NODE, so nothing says that it is Nova's"
    allocators = index.snapshot.cloud.allocators
    if allocators:
        reason += f", and this cloud has {', '.join(allocators)} in its catalogue"
    return reason


def _build_tree_finding(
    kind: str, index: SnapshotIndex, root: Provider, reason: str, policy: Policy
) -> Finding:
    """Return the finding about a root without a compute node, with the removal of its tree.

    There is a change only if the tree is certainly not needed and has no allocations.
    """
    tree = sort_children_first(root.uuid, index.providers.values())
    uuids = tuple(provider.uuid for provider in tree)
    names = [provider.name for provider in tree]
    # Excluding one provider of a tree excludes the whole tree.
    excluded = policy.explain_exclusion((*uuids, *names))
    if excluded:
        return Finding("excluded", PROTECTED, root.uuid, f"{reason} {excluded}")
    verdict = DRIFTED
    change: ProviderRemoval | None = None
    consumers = index.consumers_by_tree.get(root.uuid, frozenset())
    doubt = _explain_possible_use(index, root)
    if doubt:
        verdict = UNDECIDED
        reason += f" But {doubt}."
    if consumers:
        reason += f" {_describe_consumers(consumers)}"
    if not doubt and not consumers:
        change = ProviderRemoval(tree)
    return Finding(
        kind,
        verdict,
        root.uuid,
        reason,
        providers=uuids,
        evidence=(index.snapshot.hypervisors, index.snapshot.services),
        change=change,
    )


def _describe_consumers(consumers: Collection[str]) -> str:
    """Say which consumers have an allocation of a tree that is to be deleted."""
    if len(consumers) == 1:
        return (
            f"1 consumer holds an allocation of its tree ({min(consumers)}), "
            "and before that is gone it cannot be deleted."
        )
    return (
        f"{len(consumers)} consumers hold allocations of its tree "
        f"({summarize_names(sorted(consumers))}), and before these are gone it cannot be deleted."
    )


def _describe_overuse(used: Resources, inventory: Mapping[str, Inventory]) -> list[str]:
    """Say of which resource classes of a provider more is used than its inventory has."""
    overused = []
    for cls, stock in sorted(inventory.items()):
        amount = used.get(cls, 0)
        if amount > stock.capacity:
            overused.append(f"{amount} {cls} are claimed of a capacity of {stock.capacity}")
    return overused


def _describe_inventory_differences(
    node: Hypervisor, inventory: Mapping[str, Inventory]
) -> list[str]:
    """Say where the inventory of a root is not what nova-compute reports of its host."""
    differences = []
    for cls, members in node.PLACEMENT_CLASSES.items():
        totals = [inventory[member].total for member in members if member in inventory]
        # A node that reports nothing of a class says nothing about its inventory of it.
        if totals and node.has.get(cls) and sum(totals) != node.has[cls]:
            differences.append(
                f"the inventory has {sum(totals)} {'+'.join(members)} "
                f"and the hypervisor reports {node.has[cls]}"
            )
    return differences
