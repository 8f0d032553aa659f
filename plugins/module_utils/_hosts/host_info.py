# Copyright (c) 2026, osops.placement contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any
# time. Do not use this from other collections or standalone plugins/modules!

"""Looks at compute hosts that are to be retired: everything that is asked of Placement and Nova about them."""

from __future__ import annotations

import dataclasses as d
import typing as t

from ansible_collections.osops.placement.plugins.module_utils._clients.nova import NovaReader
from ansible_collections.osops.placement.plugins.module_utils._clients.placement import (
    PlacementReader,
)
from ansible_collections.osops.placement.plugins.module_utils._collector.collector import Collector
from ansible_collections.osops.placement.plugins.module_utils._common.errors import CloudError
from ansible_collections.osops.placement.plugins.module_utils._hosts.blockers import (
    Host,
    HostDetails,
    find_blockers,
    find_host,
    find_leftovers,
    list_host_providers,
)
from ansible_collections.osops.placement.plugins.module_utils._hosts.preconditions import (
    require_compute_nodes,
)
from ansible_collections.osops.placement.plugins.module_utils._models.snapshot import Scope
from ansible_collections.osops.placement.plugins.module_utils._resources.migrations import (
    describe_migration,
)
from ansible_collections.osops.placement.plugins.module_utils._snapshot.services import (
    get_listed_services,
)

if t.TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Collection, Mapping, Sequence

    from ansible_collections.osops.placement.plugins.module_utils._clients.session import Session
    from ansible_collections.osops.placement.plugins.module_utils._models.placement import Provider
    from ansible_collections.osops.placement.plugins.module_utils._models.policy import Policy


class HostReader:
    """Reads hosts from one session, and says what holds each of them back."""

    def __init__(self, session: Session, policy: Policy, kinds: Collection[str]) -> None:
        self._reading = Collector(session)
        self._placement = PlacementReader(session.placement)
        self._nova = NovaReader(session.compute)
        self._policy = policy
        self._kinds = kinds

    def read_hosts(
        self, names: Sequence[str], remembered: Collection[str] = ()
    ) -> list[dict[str, t.Any]]:
        """Return everything about the hosts `names`, as `compute_host_info` returns it.

        remembered: uuids of root providers of the one host in `names` that an earlier look found.
        """
        services = get_listed_services(self._nova.list_services())
        nodes = require_compute_nodes(self._nova.list_hypervisors(with_servers=False))
        providers = self._placement.list_providers()
        hosts = [find_host(name, services, nodes, providers, remembered) for name in names]
        return [
            self._describe_host(name, host, providers)
            for name, host in zip(names, hosts, strict=True)
        ]

    def _describe_host(
        self, name: str, host: Host, providers: Mapping[str, Provider]
    ) -> dict[str, t.Any]:
        told: dict[str, t.Any] = {
            "name": name,
            "host": host.name,
            "known": host.exists,
            "service": d.asdict(host.service) if host.service else None,
            "nodes": [],
            "providers": [],
            "aggregates": [],
            "servers": [],
            "migrations": [],
            "left_over": [],
            "blockers": [],
        }
        if not host.exists:
            return told
        snapshot = (
            self._reading.collect(Scope(hosts=tuple(root.uuid for root in host.roots)))
            if host.roots
            else self._reading.collect_listings(False)
        )
        now = {node.uuid: node for node in snapshot.hypervisors.value or ()}
        host = d.replace(host, nodes=tuple(now.get(node.uuid, node) for node in host.nodes))
        aggregates = tuple(
            known for known in self._nova.list_aggregates() if host.name in known.hosts
        )
        servers = self._nova.query_servers_on_host(host.name)
        if servers.value is None:
            raise CloudError(
                f"Nova answered {servers.status} when asked for the servers of {host.name} ({servers.request})."
            )
        seen = HostDetails(servers.value, self._nova.list_migrations_of_host(host.name), aggregates)
        left = find_leftovers(host, snapshot, self._policy, self._kinds)
        return {
            **told,
            "nodes": [
                {
                    "uuid": node.uuid,
                    "name": node.name,
                    "state": node.state,
                    "status": node.status,
                    "running_vms": node.running_vms,
                }
                for node in host.nodes
            ],
            "providers": [
                {
                    "uuid": provider.uuid,
                    "name": provider.name,
                    "root": provider.root,
                    "parent": provider.parent,
                }
                for provider in list_host_providers(host, snapshot.providers or providers)
            ],
            "aggregates": [
                {"uuid": known.uuid, "name": known.name, "zone": known.zone} for known in aggregates
            ],
            "servers": [
                {
                    "uuid": server.uuid,
                    "name": server.name,
                    "status": server.status,
                    "task_state": server.task_state,
                }
                for server in seen.servers
            ],
            "migrations": [
                describe_migration(row, seen.migrations.at)
                for row in seen.migrations.value or ()
                if not row.ended
            ],
            "left_over": [
                {
                    "id": finding.id,
                    "kind": finding.kind,
                    "consumer": finding.consumer,
                    "reason": finding.reason,
                }
                for finding in left
            ],
            "blockers": [
                d.asdict(blocker)
                for blocker in find_blockers(host, seen, snapshot, self._policy, self._kinds)
            ],
        }
