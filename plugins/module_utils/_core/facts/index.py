# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A finished snapshot, indexed: its soundness, and which hosts are proven to be gone. Pure."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping

from ..._common.errors import Reason
from ..._common.times import is_earlier, seconds_between
from ..._common.uuids import normalize_uuid
from ..models.nova import Migration, Service
from ..models.placement import NOVA_TRAITS, ProviderDetails
from ..models.snapshot import Snapshot
from .agreement import list_host_names
from .listings_index import ListingsIndex
from .services import COMPUTE, may_have_unlisted_node
from .soundness import (
    find_region_mismatch,
    has_every_cell_answered,
    list_failed_absence_checks,
    list_failed_checks,
)

# Much longer than any `report_interval`: a service that is forced down and reports still runs.
_SILENCE = 300


class SnapshotIndex(ListingsIndex):
    """What a finished snapshot says of the cloud as a whole, indexed once for all its consumers."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self.snapshot = snapshot

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
        regions = self.snapshot.cloud.other_novas
        if regions:
            return Reason(
                "other_nova_on_placement",
                f"region {', '.join(regions)} has its own Nova that uses this Placement, "
                "and it may be one of the hosts there",
            )
        lookup_doubt = self.find_doubtful_lookup(root)
        if lookup_doubt:
            return lookup_doubt
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
        """Return which compute service may be behind a provider of that name; None if none is.

        Nova lists no compute node of it.
        """
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
            return Reason(
                "service_without_node",
                f"{COMPUTE} on {', '.join(sorted(unlisted))} is up and has no compute node yet "
                "(nova-manage cell_v2 discover_hosts)",
            )
        if possible:
            return Reason(
                "service_may_be_of_provider",
                f"{COMPUTE} on {', '.join(sorted(possible))} is down, and the provider may be its "
                "compute node: decommission that host (osops.placement.decommission_host)",
            )
        return None

    def list_compute_states(self, host: str | None) -> set[str | None]:
        """Return the states of nova-compute on `host` in the two listings of services.

        They have None if a listing lacks it.
        """
        states: set[str | None] = set()
        for services in self.list_compute_services(host):
            states.update(service.state for service in services)
            if not services:
                states.add(None)
        return states

    def is_reporting(self, host: str, since: str | None) -> bool:
        """Return whether nova-compute on `host` is up, or reports although it is forced down.

        Nova says `down` of each service that is forced down (nova/servicegroup/api.py,
        service_is_up), while its driver goes on writing the time of each report.

        since: a time after which nobody has a reason to change the service.
        """
        if "up" in self.list_compute_states(host):
            return True
        for answer, services in zip(
            (self.snapshot.services, self.snapshot.services_after),
            self.list_compute_services(host),
            strict=True,
        ):
            for service in services:
                silence = seconds_between(service.updated_at, answer.at)
                is_recent = silence is not None and silence < _SILENCE
                if service.forced_down and is_recent and is_earlier(since, service.updated_at):
                    return True
        return False

    def list_compute_services(self, host: str | None) -> list[list[Service]]:
        """Return the services nova-compute on `host` in each of the two listings of services.

        An API worker that does not know one of the cells hides a service in one of them.
        """
        found = []
        for answer in (self.snapshot.services, self.snapshot.services_after):
            services = answer.value or ()
            found.append([one for one in services if one.binary == COMPUTE and one.host == host])
        return found

    def find_doubtful_lookup(self, root: str) -> Reason | None:
        """Return which direct lookup of the host behind a provider did not say that there is none.

        The result is None where all lookups said so.
        """
        for name in list_host_names(self.get_name(root)):
            lookup = self.snapshot.host_lookups.get(name)
            # A listed host has a compute node of its own, which is not this provider's.
            if name in self.hosts_listed or (lookup is not None and lookup.status == 404):
                continue
            if lookup is None:
                return Reason("host_not_looked_up", f"host {name} was not looked up")
            return Reason(
                "host_lookup_failed",
                f"Nova answered {lookup.status} when host {name} was looked up",
            )
        return None

    @functools.cached_property
    def _listing_doubt(self) -> Reason | None:
        """Why a compute node may be missing in Nova's listing; None when the listing is sound."""
        nodes = self.snapshot.hypervisors.value
        has_every_cell = has_every_cell_answered(self.snapshot.services)
        if nodes is None or not has_every_cell or self.unjudged_hosts:
            return Reason(
                "may_be_host_of_down_cell",
                "a cell is not answering, and it may be one of its hosts",
            )
        mismatch = find_region_mismatch(nodes, self.providers)
        if mismatch or not self.failed_checks:
            return mismatch
        return self.failed_checks[0].extend(*self.failed_checks[1:])


def _is_up_without_node(service: Service, hosts: Collection[str]) -> bool:
    return service.binary == COMPUTE and service.state == "up" and service.host not in hosts


def find_nova_roots(details: Mapping[str, ProviderDetails]) -> frozenset[str]:
    """Return the root providers that have a trait which only Nova sets."""
    return frozenset(root for root, read in details.items() if NOVA_TRAITS & read.traits)


def list_hosts_in_scope(index: SnapshotIndex) -> set[str] | None:
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


def list_migrations_in_scope(index: SnapshotIndex) -> list[Migration]:
    """Return the migrations in scope: those of named servers, and those from or to named hosts."""
    consumers, hosts = index.snapshot.scope.consumers, list_hosts_in_scope(index)
    migrations = [row for row in index.migrations.values() if index.is_in_shard(row.uuid)]
    if hosts is None:
        return migrations
    in_scope = []
    for migration in migrations:
        ends = {migration.source_compute, migration.dest_compute}
        if migration.server in consumers or ends & hosts:
            in_scope.append(migration)
    return in_scope
