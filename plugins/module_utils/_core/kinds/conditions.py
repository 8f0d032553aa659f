# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kinds about providers, services and migrations: one function for each, with the kind's name.

Each function checks the whole snapshot and yields a finding for everything that is of its kind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ..._common.text import summarize_names
from ..._common.times import format_duration, seconds_between
from ..facts.index import SnapshotIndex
from ..facts.services import COMPUTE
from ..models.change import ProviderRemoval, sort_children_first
from ..models.nova import Hypervisor, Migration, Server, Service
from ..models.placement import Provider
from ..models.verdict import DRIFTED, PROTECTED, UNDECIDED, Finding
from ..options.policy import Policy


def orphaned_provider(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the providers that belonged to a compute node which no longer exists.

    Proof: All soundness checks pass, and Nova lists no compute node with the UUID of the root
    provider. The provider has the trait `COMPUTE_NODE` or `OWNER_NOVA`, which only Nova sets:
    without it, a provider with VCPU and MEMORY_MB may be another service's. The finding is
    undecided if another Nova, or a compute service without a compute node, may be behind the
    provider.

    Needs: Every cell, because the proof is that no cell has the compute node. The host is also
    looked up directly, by its host mapping.

    Change: The tree is deleted, children first, once it has no allocations.
    """
    conflicting = {provider.uuid for provider, node in _find_name_conflicts(index)}
    for root in _list_roots_without_node(index):
        if root.uuid not in conflicting and index.has_nova_trait(root.uuid):
            reason = (
                f"By its traits, provider {root.name} belonged to a compute node, but Nova lists "
                f"no compute node with its UUID {root.uuid}."
            )
            yield _build_tree_finding("orphaned_provider", index, root, reason, policy)


def name_conflict(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the providers that have the name of a compute node without a provider of its own.

    Proof: All soundness checks pass, and the compute node of that name has another UUID, for which
    Placement has no provider (LP 1817833). The provider has the trait `COMPUTE_NODE` or
    `OWNER_NOVA`, which only Nova sets; without one the finding is undecided.

    Needs: Every cell, because the proof is that no cell has a compute node with the UUID of the
    provider.

    Change: The tree is deleted, children first, once it has no allocations. Restart nova-compute on
    the host afterwards.
    """
    for root, node in _find_name_conflicts(index):
        reason = (
            f"Compute node {node.name} has the UUID {node.uuid}, but provider {root.uuid} already "
            "has its name, so Placement refuses to create the compute node's own provider and "
            "nothing can be scheduled there (LP 1817833). Once that tree is deleted, restart "
            f"nova-compute on {node.host}."
        )
        yield _build_tree_finding("name_conflict", index, root, reason, policy)


def unconfirmed_resize(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the resizes that have waited very long to be confirmed or reverted.

    Proof: The migration has had the status `finished` for at least
    `orphan_cleanup_unconfirmed_min_age`.

    Needs: The cell of the server, which lists the migration.

    Change: None. Confirm or revert the resize.
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
            f"The resize of server {migration.server} from {migration.source_compute} to "
            f"{migration.dest_compute} finished {format_duration(age)} ago and is neither "
            "confirmed nor reverted. Confirm or revert it: until then its allocations on both "
            "hosts remain.",
            migration=migration,
            evidence=(listing,),
        )


def stuck_migration(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the migrations that are under way but have not changed for very long.

    Proof: The migration has not ended, is not `finished`, and has not changed for at least
    `orphan_cleanup_stuck_min_age`.

    Needs: The cell of the server, which lists the migration.

    Change: None. Check whether the migration still runs; if not, abort it or reset the server's
    state.
    """
    listing = index.snapshot.migrations
    for migration in _list_migrations_in_scope(index):
        # A `finished` migration waits for the user, and is of the kind unconfirmed_resize.
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
            f"has not changed for {format_duration(age)}. Check whether it still runs; if not, "
            "abort it or reset the server's state.",
            migration=migration,
            evidence=(listing,),
        )


def unfinished_evacuation(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the servers on the source of their own evacuation that Nova has not completed.

    Proof: A direct lookup, after the listing of migrations, shows the server on the host or node
    that one of its evacuations names as its source. That evacuation is `done`, or it is `accepted`
    or `pre-migrating` and the server has no task. At its next start, nova-compute there destroys
    the server and takes its allocation: a host that was decommissioned and deployed again does not
    complete the evacuations from it at its first start.

    Needs: The cell of the server, which lists the migration.

    Change: None. Move the server to another host before anybody restarts nova-compute. Then restart
    it until Nova lists each evacuation from there as completed, then move the server back. If the
    host or its compute node has another name than in the evacuation, no start completes it: the
    server must stay away, or somebody sets the status in the table migrations to completed.
    """
    listing = index.snapshot.migrations
    lookups = index.snapshot.surroundings.evacuated
    for migration in _list_migrations_in_scope(index):
        lookup = lookups.get(migration.server)
        if lookup is None or lookup.value is None or not migration.is_unfinished_evacuation:
            continue
        server = lookup.value
        is_over = migration.ended or (server.task_known and server.task_state is None)
        if not is_over or not migration.has_source((server.host, server.node)):
            continue
        yield Finding(
            "unfinished_evacuation",
            DRIFTED,
            migration.uuid,
            f"Server {server.uuid} is on {server.host}, and its evacuation from there "
            f"({migration.uuid}) is still {migration.status}: at its next start, nova-compute on "
            f"{server.host} destroys the server and removes its allocation. Do not restart it. "
            f"Move the server to another host first. {_advise_on_return(migration, server)}",
            server=server,
            migration=migration,
            evidence=(listing, lookup),
        )


def _advise_on_return(evacuation: Migration, server: Server) -> str:
    if evacuation.is_completed_at(server.host, [server.node]):
        return (
            "Move it back only when Nova lists each of its evacuations from there as completed: a "
            "restart of nova-compute completes one of each server."
        )
    return (
        "Do not move it back: no start of nova-compute there completes the evacuation, which names "
        f"the source {evacuation.source_compute} with compute node {evacuation.source_node}, "
        "unless its status is set to completed in the table migrations of the cell's database."
    )


def stale_service(index: SnapshotIndex, policy: Policy) -> Iterator[Finding]:
    """Yield the compute services that are down, and disabled, forced down or without a node.

    Proof: The service is down and has not reported for at least `orphan_cleanup_stale_min_age`, and
    it is disabled, is forced down or has no compute node.

    Needs: The cell of the service, which shows its last report.

    Change: None. Decommission the host.
    """
    listing = index.snapshot.services
    # Without the listing of compute nodes, every service would seem to have none.
    if index.snapshot.hypervisors.value is None:
        return
    hosts_with_node = {node.host for node in index.nodes.values()}
    for service in _list_services_in_scope(index):
        # The other services have neither compute nodes nor providers to decommission.
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
            f"{format_duration(age)}. If the host is gone, decommission it "
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
    """Return why a service that is down will hardly come back; '' if nothing says so."""
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
    """Return the hosts in the scope, by the names of nodes and roots; None for all hosts."""
    scope = index.snapshot.scope
    if not scope.is_limited_to_hosts:
        return None
    hosts: set[str] = set()
    # A host of a group can have a service and neither a compute node nor a provider.
    if not scope.hosts:
        hosts.update(scope.groups.hosts)
    for root in index.roots:
        if not index.covers(root.uuid):
            continue
        hosts.add(root.name)
        # Services and migrations name the host, and its name may differ from the node's.
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
    """Return why a provider without a compute node may still be needed; '' if it is not."""
    if index.has_nova_trait(root.uuid):
        return index.find_possible_host(root.uuid)
    reason = "it has neither the trait COMPUTE_NODE nor OWNER_NOVA, so it may not be Nova's"
    allocators = index.snapshot.cloud.allocators
    if allocators:
        reason += f", and the service catalogue has {', '.join(allocators)}"
    return reason


def _build_tree_finding(
    kind: str, index: SnapshotIndex, root: Provider, reason: str, policy: Policy
) -> Finding:
    """Return the finding about a root without a compute node, with the removal of its tree.

    There is a change only if the tree is certainly not needed and has no allocations.
    """
    tree = sort_children_first(root.uuid, index.providers.values())
    uuids = tuple(provider.uuid for provider in tree)
    # Excluding one provider of a tree excludes the whole tree.
    excluded = policy.explain_exclusion(
        name for name in policy.exclude_providers if root.uuid in index.find_roots(name)
    )
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
    """Return a sentence about the consumers that keep a tree from being deleted."""
    if len(consumers) == 1:
        return (
            f"Consumer {min(consumers)} still has an allocation on this tree, and as long as it "
            "does, the tree cannot be deleted."
        )
    return (
        f"{len(consumers)} consumers still have allocations on this tree "
        f"({summarize_names(sorted(consumers))}), and as long as they do, the tree cannot be "
        "deleted."
    )
